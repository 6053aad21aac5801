package handlers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/workspaces"
)

// statusFor is the status with which an error is answered: that of its kind,
// unless it is HTTP's own.
func statusFor(err error) int {
	if he := (*echo.HTTPError)(nil); errors.As(err, &he) && he.Code >= 400 && he.Code < 500 {
		return he.Code
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return http.StatusRequestEntityTooLarge
	}
	e := publicError(err)
	return e.Status()
}

func kindOfStatus(status int) models.Kind {
	switch {
	case status == http.StatusUnauthorized:
		return models.KindUnauthenticated
	case status == http.StatusNotFound:
		return models.KindNotFound
	case status >= 500:
		return models.KindInternal
	default:
		return models.KindInvalid
	}
}

// Problem is an error as application/problem+json (RFC 9457).
type Problem struct {
	Type   string         `json:"type" doc:"problem type; always about:blank"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail" doc:"human-readable explanation"`
	Kind   models.Kind    `json:"kind" enum:"invalid,unauthenticated,forbidden,not_found,conflict,no_capacity,rate_limited,unavailable,internal"`
	Errors []ProblemField `json:"errors,omitempty" doc:"invalid fields and reasons"`
	header http.Header
	Offer  *Offer `json:"offer,omitempty" doc:"alternatives, if the pool has insufficient capacity"`
}

// ProblemField is one refused field of the input.
type ProblemField struct {
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus makes a Problem an error that huma writes as it is.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is the media type of RFC 9457. huma calls it.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders are the headers that the status requires. huma calls it.
func (p *Problem) GetHeaders() http.Header {
	if p.Status == http.StatusUnauthorized && p.header.Get("WWW-Authenticate") == "" {
		return http.Header{"Www-Authenticate": {"Bearer"}}
	}
	return p.header
}

// setHeaders sets them on the response of a page.
func setHeaders(c echo.Context, err error) {
	maps.Copy(c.Response().Header(), headersOf(publicError(err)))
}

// headersOf are the headers that tell a program what to do about an error.
func headersOf(e models.Error) http.Header {
	h := http.Header{}
	if e.Scope != "" {
		h.Set("WWW-Authenticate", e.Scope.Challenge())
	}
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(e.RetryAfter.Seconds())), 10))
	}
	return h
}

// write writes the problem as a response outside of huma.
func (p *Problem) write(w http.ResponseWriter) error {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	return writeJSON(w, p)
}

// problemOf converts an error for programs, in English. Internal errors are not
// disclosed.
func problemOf(err error) *Problem {
	e := publicError(err)
	status := statusFor(err)
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: e.Message.String(), Kind: e.Kind,
		header: headersOf(e)}
	for _, f := range e.Fields {
		p.Errors = append(p.Errors, ProblemField{f.Name, f.Reason.String()})
	}
	if insufficient := (*workspaces.Insufficient)(nil); errors.As(err, &insufficient) {
		p.Offer = offerOf(insufficient.Decision)
	}
	return p
}

// publicError is the part of an error that a user may see.
func publicError(err error) models.Error {
	var e *models.Error
	if errors.As(err, &e) && e.Kind != models.KindInternal {
		public := *e
		public.Err = nil
		return public
	}
	var he *echo.HTTPError
	if errors.As(err, &he) {
		return fromHTTP(he)
	}
	return models.Error{Kind: models.KindInternal, Message: models.Say("Something went wrong. No changes were made.")}
}

func fromHTTP(he *echo.HTTPError) models.Error {
	switch he.Code {
	case http.StatusNotFound:
		return *models.NotFound("page")
	case http.StatusMethodNotAllowed:
		return models.Error{Kind: models.KindInvalid, Message: models.Say("This method is not allowed.")}
	case http.StatusMisdirectedRequest:
		return models.Error{Kind: models.KindInvalid,
			Message: models.Say("This portal is not served under this host name. Add the name to the setting hosts (WEIR_HOSTS) of the server.")}
	case http.StatusRequestEntityTooLarge:
		size, _ := he.Message.(string) // of bodyLimit
		return models.Error{Kind: models.KindInvalid, Message: models.Say("The request exceeds the maximum size of %s.", size)}
	}
	if he.Code >= 400 && he.Code < 500 {
		return models.Error{Kind: models.KindInvalid, Message: models.Say("The request is malformed.")}
	}
	return models.Error{Kind: models.KindInternal, Message: models.Say("Something went wrong. No changes were made.")}
}

// refuse is a refusal of one field outside the services' own.
func refuse(location, reason string) error {
	return newProblem(http.StatusUnprocessableEntity, "", &huma.ErrorDetail{Location: location, Message: reason})
}

// Offer lists the alternatives to a refusal by the pool.
type Offer struct {
	Outcome      string    `json:"outcome" enum:"partial,delayed,refused"`
	Cores        int64     `json:"cores,omitempty" doc:"available GPU cores per GPU; to accept, launch with when_insufficient=fewer"`
	GPUMemoryMiB int64     `json:"gpu_memory_mib,omitempty"`
	CanWait      bool      `json:"can_wait" doc:"can be queued; to accept, launch with when_insufficient=wait"`
	Waiting      int       `json:"waiting" doc:"number of queued requests"`
	Reasons      []string  `json:"reasons,omitempty"`
	Estimate     *Estimate `json:"estimate,omitempty" doc:"estimated start of a new queued request; in previews only"`
}

// Estimate is the estimated start of a demand.
type Estimate struct {
	Outcome string     `json:"outcome" enum:"placed,never,unknown"`
	At      *time.Time `json:"at,omitempty" doc:"estimated start time"`
	Known   bool       `json:"known" doc:"based on scheduled end times; otherwise on past share durations"`
	Text    string     `json:"text" doc:"human-readable estimate"`
}

func offerOf(d models.Decision) *Offer {
	o := &Offer{Outcome: d.Outcome, Waiting: d.Waiting, CanWait: d.Outcome != models.OutcomeRefused,
		Reasons: models.Map(d.Reasons, models.Text.String)}
	if d.Fewer != nil {
		o.Cores, o.GPUMemoryMiB = d.Fewer.Cores, d.Fewer.GPUMemoryMiB
	}
	return o
}

const (
	maxProblemFields = 50
	maxFieldName     = 200
)

// newProblem converts the errors that huma finds: malformed JSON, and input that
// violates the schema.
func newProblem(status int, message string, errs ...error) huma.StatusError {
	if status == http.StatusInternalServerError && len(errs) > 0 { // the body could not be read to its end
		status = http.StatusBadRequest
		if he := (*echo.HTTPError)(nil); errors.As(errs[0], &he) {
			status = he.Code
		} else if errors.Is(errs[0], os.ErrDeadlineExceeded) {
			status, message, errs = http.StatusRequestTimeout, "The request was not received in time.", nil
		}
	}
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: message, Kind: kindOfStatus(status)}
	switch status {
	case http.StatusRequestEntityTooLarge:
		p.Detail = "The request is larger than the maximum size."
		if limit := 0; len(errs) == 0 && message != "" {
			if n, _ := fmt.Sscanf(message, "request body is too large limit=%d bytes", &limit); n == 1 {
				p.Detail = fmt.Sprintf("The request exceeds the maximum size of %d bytes.", limit)
			}
		}
		return p
	case http.StatusUnsupportedMediaType:
		p.Detail = "The body must be JSON, with Content-Type: application/json."
		return p
	case http.StatusUnprocessableEntity:
		p.Detail = "Some fields are invalid."
	}
	p.Errors = models.Map(errs, problemField)
	if status == http.StatusBadRequest {
		p.Detail = "The body must be JSON."
	}
	slices.SortFunc(p.Errors, func(a, b ProblemField) int { return cmp.Compare(a.Field, b.Field) })
	p.Errors = p.Errors[:min(len(p.Errors), maxProblemFields)]
	return p
}

var missingProperty = regexp.MustCompile(`^expected required property (.+) to be present$`)

// problemField turns huma's place of an error, body.quota.gpu_cores, into the
// field's name, quota.gpu_cores.
func problemField(err error) ProblemField {
	var d huma.ErrorDetailer
	if !errors.As(err, &d) {
		return ProblemField{Reason: err.Error()}
	}
	detail := d.ErrorDetail()
	where, field, _ := strings.Cut(detail.Location, ".")
	reason := detail.Message
	switch m := missingProperty.FindStringSubmatch(reason); {
	case m != nil:
		field, reason = strings.TrimPrefix(field+"."+m[1], "."), "is required"
	case reason == "unexpected property", reason == "unknown query parameter":
		reason = "is unknown here"
	}
	if field == "" {
		field = where
	}
	if len(field) > maxFieldName {
		field = strings.ToValidUTF8(field[:maxFieldName], "") + "…"
	}
	return ProblemField{Field: field, Reason: reason}
}

// logged logs a response that was not written, unless its client has gone: clients could fill the log.
func (a *App) logged(r *http.Request, err error) {
	if err != nil && r.Context().Err() == nil {
		a.Logger.WarnContext(r.Context(), "response not written", "err", err)
	}
}
