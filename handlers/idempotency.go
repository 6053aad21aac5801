package handlers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"

	"weir/handlers/reference"
	"weir/models"
	"weir/models/store"
)

const (
	idempotencyHeader = "Idempotency-Key"
	maxIdempotencyKey = 255
)

var idempotencyParam = &huma.Param{Name: idempotencyHeader, In: "header", Example: "8e03978e-40d5-43dd-bc93-6894a57f9324",
	Description: "Unique key of this request, such as a UUID. Within 24 hours, the same request with the same key is not carried out again: " +
		"it gets the first response, with the header Idempotent-Replayed. Another request with the key is rejected with 422, " +
		"and with 409 while the first is in progress or if its response cannot be repeated, such as one with a secret.",
	Schema: &huma.Schema{Type: huma.TypeString, MinLength: new(1), MaxLength: new(maxIdempotencyKey)}}

// creates reports whether an operation creates or starts something, so that carrying it
// out twice would do harm.
func creates(method string, status int) bool {
	return method == http.MethodPost && (status == http.StatusCreated || status == http.StatusAccepted)
}

// parametersOf are the parameters of an operation that its input type does not have.
func parametersOf(r route) []*huma.Param {
	if creates(r.method, r.status) {
		return []*huma.Param{idempotencyParam}
	}
	return nil
}

// idempotent carries out a request with an Idempotency-Key once, and gives its response
// to those that repeat it.
func (a *App) idempotent(hc huma.Context, next func(huma.Context)) {
	op, c := hc.Operation(), humaecho.Unwrap(hc)
	if hc.Header(idempotencyHeader) == "" || !creates(op.Method, op.DefaultStatus) {
		next(hc)
		return
	}
	ctx := hc.Context()
	key, err := idempotencyKeyOf(c.Request())
	var earlier store.IdempotencyKey
	var repeated bool
	if err == nil {
		key.UserID = actorOf(ctx).User.ID
		earlier, repeated, err = a.Accounts.EarlierResponse(ctx, actorOf(ctx), requiredScope(op), key)
	}
	switch {
	case err != nil:
		a.logged(c.Request(), asProblem(err).write(c.Response()))
		return
	case repeated:
		a.logged(c.Request(), replay(c.Response(), earlier))
		return
	}
	r := &recorder{humaContext: huma.WithContext(hc, store.WithIdempotencyKey(ctx, &key)), header: map[string]string{}}
	next(r)
	models.Failpoint("request.committed")
	if !r.repeatable(key) || hasSecrets(c.Path()) {
		return
	}
	key.Status, key.Header, key.Body = r.status, r.header, r.body.String()
	if err := a.Accounts.KeepResponse(context.WithoutCancel(ctx), key); err != nil {
		a.Logger.WarnContext(ctx, "the response to a request with an idempotency key is not kept", "err", err)
	}
}

// idempotencyKeyOf reads the key and the body, which can be read again.
func idempotencyKeyOf(r *http.Request) (k store.IdempotencyKey, err error) {
	k.Key = r.Header.Get(idempotencyHeader)
	if len(k.Key) > maxIdempotencyKey || strings.ContainsFunc(k.Key, func(c rune) bool { return c < ' ' || c > '~' }) {
		return k, models.Invalid(idempotencyHeader, "must be 1 to %d printable ASCII characters", maxIdempotencyKey)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return k, newProblem(http.StatusInternalServerError, "", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	hash := sha256.New()
	fmt.Fprintf(hash, "%s %s\n", r.Method, r.URL.RequestURI())
	hash.Write(body)
	k.Request = hex.EncodeToString(hash.Sum(nil))
	return k, nil
}

// replay writes an earlier response.
func replay(w http.ResponseWriter, earlier store.IdempotencyKey) error {
	for name, value := range earlier.Header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Idempotent-Replayed", "true")
	w.WriteHeader(earlier.Status)
	_, err := io.WriteString(w, earlier.Body)
	return err
}

type humaContext huma.Context // its name is free for its method Context

// recorder keeps a copy of the response.
type recorder struct {
	humaContext
	status int
	header map[string]string
	body   bytes.Buffer
}

func (r *recorder) Unwrap() huma.Context { return r.humaContext }

func (r *recorder) SetStatus(status int) {
	r.status = status
	r.humaContext.SetStatus(status)
}

func (r *recorder) SetHeader(name, value string) {
	r.header[name] = value
	r.humaContext.SetHeader(name, value)
}

func (r *recorder) AppendHeader(name, value string) {
	r.header[name] = value
	r.humaContext.AppendHeader(name, value)
}

func (r *recorder) BodyWriter() io.Writer { return io.MultiWriter(r.humaContext.BodyWriter(), &r.body) }

// repeatable reports whether the response is the result of the operation: it was carried
// out, or its state or input was refused. Who may not do it now, or failed to, can try
// again with the same key.
func (r *recorder) repeatable(k store.IdempotencyKey) bool {
	switch r.status {
	case http.StatusConflict, http.StatusUnprocessableEntity:
		return r.header["Retry-After"] == ""
	}
	return k.Claimed && r.status < 300
}

// asProblem is the problem of an error.
func asProblem(err error) *Problem {
	if p := (*Problem)(nil); errors.As(err, &p) {
		return p
	}
	return problemOf(err)
}

// documentHeaders adds the headers of responses that no output type has.
func documentHeaders(doc *huma.OpenAPI) {
	for op := range reference.Operations(doc) {
		if limited := op.Responses["429"]; limited != nil {
			limited.Headers = map[string]*huma.Param{"Retry-After": {Description: "seconds after which to try again",
				Schema: &huma.Schema{Type: huma.TypeInteger}}}
		}
		if refused := op.Responses["403"]; refused != nil {
			refused.Headers = map[string]*huma.Param{"WWW-Authenticate": {Schema: &huma.Schema{Type: huma.TypeString},
				Description: `if the access token lacks a scope: Bearer error="insufficient_scope" and the scope`}}
		}
		if done := op.Responses[strconv.Itoa(op.DefaultStatus)]; done != nil && creates(op.Method, op.DefaultStatus) {
			headers := maps.Clone(done.Headers)
			if headers == nil {
				headers = map[string]*huma.Param{}
			}
			headers["Idempotent-Replayed"] = &huma.Param{Schema: &huma.Schema{Type: huma.TypeBoolean},
				Description: "true if this is the response to an earlier request with the same Idempotency-Key"}
			done.Headers = headers
		}
	}
}
