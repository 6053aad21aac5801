package handlers

import (
	"context"
	"net/http"
	"strings"

	"weir/models"
)

// insideOperations are what programs inside a workspace can reach without a token.
var insideOperations = []string{"GET /runs", "POST /runs", "POST /runs/preview", "GET /runs/{id}", "DELETE /runs/{id}",
	"GET /runs/{id}/log", "POST /runs/{id}/signal", "POST /runs/{id}/stop", "POST /runs/{id}/renew"}

type insideKey struct{}

// insideOf is the workspace from inside which a request comes; 0: from elsewhere.
func insideOf(ctx context.Context) int64 {
	workspace, _ := ctx.Value(insideKey{}).(int64)
	return workspace
}

// InsidePods serves the REST API to programs in workspaces that reach this server over the network: the
// credential of a request says from which one it comes.
func (a *App) InsidePods() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		workspace, err := a.Workspaces.Inside(r.Context(), bearer(r.Header.Get("Authorization")))
		if err != nil {
			a.logged(r, problemOf(err).write(w))
			return
		}
		a.Inside(workspace).ServeHTTP(w, r)
	})
}

// Inside serves the REST API to programs inside a workspace, for its runs only. They act as
// its owner by the socket that they use, whatever credentials they send.
func (a *App) Inside(workspace int64) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		err := models.Forbidden("Programs in a workspace can reach its runs only. Use an access token for everything else.")
		a.logged(r, problemOf(err).write(w))
	})
	for _, operation := range insideOperations {
		method, path, _ := strings.Cut(operation, " ")
		mux.HandleFunc(method+" "+apiPrefix+path, func(w http.ResponseWriter, r *http.Request) {
			r = r.WithContext(context.WithValue(r.Context(), insideKey{}, workspace))
			r.Host = "localhost" // never the origin of a workspace
			for _, name := range []string{"Authorization", "Cookie", "X-Forwarded-For"} {
				r.Header.Del(name)
			}
			a.ServeHTTP(w, r)
		})
	}
	return mux
}
