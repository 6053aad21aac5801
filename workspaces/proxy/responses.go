package proxy

import (
	"encoding/json"
	"errors"
	"net/http"

	"weir/models"
)

// Errors of the proxy. None depends on whether a workspace of another user exists.
var (
	errNoCredential = &models.Error{Kind: models.KindUnauthenticated,
		Message: models.Say("Open this workspace from the portal, or send a personal access token.")}
	errBadOpening = models.Forbidden("This link has been used or has expired. Open the workspace from the portal again.")
	errCrossSite  = models.Forbidden("Cross-site requests are not allowed.")
	errMethod     = models.Forbidden("This method is not allowed.")
	errNoAnswer   = models.Unavailable(nil, "The workspace is not responding.")
	errStalled    = &models.Error{Kind: models.KindInvalid, Message: models.Say("The upload has paused for too long. Send it again.")}
	errLeaseLost  = models.Unavailable(nil, "This server is disconnected from the other portal servers. Try again in a moment.")
	errInternal   = &models.Error{Kind: models.KindInternal,
		Message: models.Say("Something went wrong. Try again in a moment.")}
)

// publicError returns what a visitor may see of an error of the gate.
func (c Config) publicError(id int64, err error) *models.Error {
	switch e, known := errors.AsType[*models.Error](err); {
	case !known || e.Kind == models.KindInternal:
		c.Logger.Error("workspace visitor cannot be admitted", "workspace", id, "error", err)
		return errInternal
	case e.Kind == models.KindNotFound:
		return models.NotFound("workspace")
	default:
		return &models.Error{Kind: e.Kind, Message: e.Message, Scope: e.Scope, NoSpace: e.NoSpace}
	}
}

func (c Config) respond(w http.ResponseWriter, r *http.Request, e *models.Error) {
	c.respondStatus(w, r, e.Status(), e)
}

// respondStatus responds to browsers with a page and to programs with a problem.
func (c Config) respondStatus(w http.ResponseWriter, r *http.Request, status int, e *models.Error) {
	setOwnHeaders(w.Header())
	switch {
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case e.Scope != "":
		w.Header().Set("WWW-Authenticate", e.Scope.Challenge())
	}
	if acceptsHTML(r) && !isWebSocket(r) {
		w.Header().Set("Content-Security-Policy", c.framePolicy())
		c.Page(w, r, status, e)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{"about:blank", http.StatusText(status), status, e.Message.String()})
}

// setOwnHeaders sets the headers of the proxy's own responses.
func setOwnHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
}
