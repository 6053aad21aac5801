package handlers

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
)

// register adds one operation. also are statuses of refusals that do not follow from
// its route.
func register[I, O any](a rest, s section, r route, do func(context.Context, *I) (*O, error), also ...int) {
	registerAs(a, s, r, nil, do, also...)
}

// registerPublic is register for an operation that needs no authentication.
func registerPublic[I, O any](a rest, s section, r route, do func(context.Context, *I) (*O, error), also ...int) {
	registerAs(a, s, r, []map[string][]string{{}, {"token": {}}, {"session": {}}}, do, append(also, http.StatusNotFound)...)
}

func registerAs[I, O any](a rest, s section, r route, security []map[string][]string, do func(context.Context, *I) (*O, error),
	also ...int) {
	input := reflect.TypeFor[I]()
	op := huma.Operation{OperationID: r.id, Method: r.method, Path: r.path, DefaultStatus: r.status, Summary: r.summary.String(),
		Metadata: map[string]any{summaryKey: r.summary}, Parameters: parametersOf(r), Tags: []string{s.tag}, Security: security,
		Errors: append(errorsOf(r, input),
			also...), BodyReadTimeout: bodyReadTimeout}
	if security == nil {
		op.Extensions = map[string]any{scopeExtension: scopeOf(r, s.tag)}
	}
	if strings.HasSuffix(r.path, "/import") || r.path == inferPath || r.path == embeddingsPath {
		op.MaxBodyBytes = maxImportBody
	}
	_, readsBody := input.FieldByName("Body")
	huma.Register(s.api, op, func(ctx context.Context, in *I) (*O, error) {
		if connection, ok := ctx.Value(connectionKey{}).(*http.ResponseController); ok {
			r := httpRequestOf(ctx)
			extendReadDeadline(connection, readsBody || r != nil && r.ContentLength == 0)
		}
		out, err := do(ctx, in)
		if err != nil {
			return nil, a.refusal(ctx, err, input)
		}
		return out, nil
	})
}

const maxImportBody = 4_000_000 // bytes, as tableLimit

// errorsOf lists the statuses with which an operation may refuse; 422 and 500
// are added to all.
func errorsOf(r route, input reflect.Type) []int {
	list := []int{http.StatusUnauthorized, http.StatusForbidden}
	if _, ok := input.FieldByName("Body"); ok {
		list = append(list, http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	if strings.Contains(r.path, "{") {
		list = append(list, http.StatusNotFound)
	}
	if r.method != http.MethodGet {
		list = append(list, http.StatusConflict)
	}
	if conditional(input) {
		list = append(list, http.StatusPreconditionFailed)
	}
	return list
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
	if conditional(input) && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "") && errors.Is(err, models.ErrStale) {
		p.Status, p.Title = http.StatusPreconditionFailed, http.StatusText(http.StatusPreconditionFailed)
	}
	return p
}
