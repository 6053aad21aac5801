package handlers

import (
	"context"
	"net/http"
)

// ServeHTTP answers HEAD like GET; net/http leaves the body out. Workspaces and
// uploads get HEAD as it is, and no event stream begins for it.
//
// A connection ends after a request in chunks: beside them, there may have been a
// Content-Length, which net/http removes, and by which a proxy in front could take what
// follows for a part of the same request.
func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close")
	}
	if _, ofWorkspace := a.Proxy.Host(r.Host); r.Method == http.MethodHead && !ofWorkspace && r.URL.Path != eventsPath &&
		!isUpload(r.URL.Path) {
		get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
		get.Method = http.MethodGet
		r = get
	}
	a.echo.ServeHTTP(w, r)
}

// headKey marks the context of a HEAD request that is answered like GET.
type headKey struct{}

// isHead reports whether nobody wants the body of the response.
func isHead(r *http.Request) bool { return r.Context().Value(headKey{}) != nil }
