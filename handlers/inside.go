package handlers

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

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

// InsidePods serves the REST API, and the program itself, to programs in workspaces that reach this server
// over the network: the credential of a request says from which one it comes.
func (a *App) InsidePods() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		workspace, err := a.Workspaces.Inside(r.Context(), bearer(r.Header.Get("Authorization")))
		if err != nil {
			a.logged(r, problemOf(err).write(w))
			return
		}
		if r.URL.Path != "/weir" {
			a.Inside(workspace).ServeHTTP(w, r)
		} else if err := sendProgram(w, r); err != nil {
			a.logged(r, problemOf(err).write(w))
		}
	})
}

// machines are the values of GOARCH by the names that uname has for them, where these are others.
var machines = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

// sendProgram sends the program that runs, which is the command line of workspaces, too: images of
// environments have none. The error is a conflict on a machine of another kind.
func sendProgram(w http.ResponseWriter, r *http.Request) error {
	machine := r.URL.Query().Get("machine")
	if cmp.Or(machines[machine], machine) != runtime.GOARCH {
		return models.Conflict("The program of this server is for %s, not for %s. Use an image with the program in /usr/local/bin/weir.", runtime.GOARCH, models.Excerpt(machine))
	}
	f, err := os.Open("/proc/self/exe") // also when the file was replaced meanwhile
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().UnixNano(), info.Size()))
	w.Header().Set("Content-Type", "application/octet-stream")
	http.ServeContent(w, r, "", time.Time{}, f)
	return nil
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
