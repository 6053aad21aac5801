package handlers

import (
	"bytes"
	"net/http"

	"weir/models"
	"weir/web"
)

// WorkspaceGone answers at a workspace's own origin when nobody is let
// through. It says no more than the error does, and loads nothing.
func (a *App) WorkspaceGone(w http.ResponseWriter, r *http.Request, status int, err *models.Error, portal string) {
	v := web.WorkspaceGoneView{Portal: portal}
	// Only who was admitted gets these kinds; others are told nothing.
	if id, ok := a.Proxy.Host(r.Host); ok && err != nil && (err.Kind == models.KindConflict || err.Kind == models.KindUnavailable) {
		if w, err := a.Store.Read(r.Context()).Workspace(models.Everything, id); err == nil {
			v.State, v.Name, v.Link = w.State, w.Name, path("workspaces", id)
		}
	}
	var body bytes.Buffer
	ctx := web.With(r.Context(), web.Page{Lang: a.language(r), Now: a.Store.Now()})
	if err := web.WorkspaceGonePage(v).Render(ctx, &body); err != nil {
		a.Logger.ErrorContext(ctx, "page not rendered", "err", err)
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, writeErr := w.Write(body.Bytes())
	a.logged(r, writeErr)
}
