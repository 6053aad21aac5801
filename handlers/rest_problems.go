package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"weir/models"
)

func init() {
	huma.NewError = newProblem
	huma.ValidateStrictCasing = true
	huma.DefaultArrayNullable = false
}

const (
	maxProblemFields = 50
	maxFieldName     = 200
)

// GetHeaders makes huma send what a status needs.
func (p *Problem) GetHeaders() http.Header {
	if p.Status == http.StatusUnauthorized {
		return http.Header{"Www-Authenticate": {"Bearer"}}
	}
	return nil
}

// newProblem words what huma itself refuses: bodies that are not JSON, input
// that breaks its schema.
func newProblem(status int, message string, errs ...error) huma.StatusError {
	if status == http.StatusInternalServerError && len(errs) > 0 { // the body could not be read to its end
		status = http.StatusBadRequest
		if he := (*echo.HTTPError)(nil); errors.As(errs[0], &he) {
			status = he.Code
		}
	}
	p := &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: message, Kind: kindOfStatus(status)}
	switch status {
	case http.StatusRequestEntityTooLarge:
		p.Detail = "The request is larger than 1 MiB."
		return p
	case http.StatusUnsupportedMediaType:
		p.Detail = "The body must be JSON, with Content-Type: application/json."
		return p
	case http.StatusUnprocessableEntity:
		p.Detail = "Some of the input cannot be accepted."
	}
	for _, err := range errs {
		p.Errors = append(p.Errors, problemField(err))
	}
	if status == http.StatusBadRequest {
		p.Detail = "The body must be JSON."
	}
	sort.Slice(p.Errors, func(i, j int) bool { return p.Errors[i].Field < p.Errors[j].Field })
	p.Errors = p.Errors[:min(len(p.Errors), maxProblemFields)]
	return p
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

// refuse is a refusal of one field outside the services' own.
func refuse(location, reason string) error {
	return newProblem(http.StatusUnprocessableEntity, "", &huma.ErrorDetail{Location: location, Message: reason})
}

// refusal is a service's error as a problem. What is our fault is logged.
func (a *App) refusal(ctx context.Context, err error, input reflect.Type) error {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	p := problemOf(err)
	r := httpRequestOf(ctx)
	if p.Status >= 500 && ctx.Err() == nil {
		a.Logger.ErrorContext(ctx, "request failed", "method", r.Method, "path", r.URL.Path, "err", err)
	}
	if conditional(input) && r.Header.Get("If-Match") != "" && errors.Is(err, models.ErrStale) {
		p.Status, p.Title = http.StatusPreconditionFailed, http.StatusText(http.StatusPreconditionFailed)
	}
	return p
}

// IfMatch makes an update conditional.
type IfMatch struct {
	Match string `header:"If-Match" doc:"the ETag that was read; the update is refused with 412 when it is no longer the present one"`
}

func conditional(input reflect.Type) bool {
	_, ok := input.FieldByName("IfMatch")
	return ok
}

// version is the one that If-Match names: 0 when any will do, one that never
// is when the tag is not of this server.
func (m IfMatch) version() (int64, error) {
	tag := strings.TrimPrefix(strings.TrimSpace(m.Match), "W/")
	if tag == "" || tag == "*" {
		return 0, nil
	}
	if len(tag) < 2 || tag[0] != '"' || strings.IndexByte(tag[1:], '"') != len(tag)-2 {
		return 0, refuse("header.If-Match", `must be * or one ETag such as "3"`)
	}
	n, err := strconv.ParseInt(tag[1:len(tag)-1], 10, 64)
	if err != nil || n < 1 {
		return -1, nil
	}
	return n, nil
}

func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// jsonFormat reads and writes bodies.
var jsonFormat = huma.Format{Marshal: writeJSON, Unmarshal: readJSON}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

var errEncoding = errors.New("it is not UTF-8")

// readJSON reads a body into a type, or into any to be checked against a
// schema. There, a number that is no integer of 64 bits stays a json.Number,
// which no schema accepts: so the field is named that holds it, and nothing
// is rounded.
func readJSON(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errEncoding
	}
	loose, ok := v.(*any)
	if !ok {
		return json.Unmarshal(data, v)
	}
	if !json.Valid(data) {
		return json.Unmarshal(data, v) // says where
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(loose); err != nil {
		return err
	}
	*loose = integers(*loose)
	return nil
}

func integers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}
