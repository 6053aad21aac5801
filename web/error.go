package web

import (
	"context"
	"net/http"

	"weir/models"
)

// ErrorView is a request that could not be served.
type ErrorView struct {
	Status  int
	Err     models.Error
	Request string // id that the log knows it by, or empty
}

// WorkspaceGoneView is shown at a workspace's own address when nothing
// answers there.
type WorkspaceGoneView struct {
	State  models.WorkspaceState // empty: there is no such workspace, or not for this reader
	Name   string                // shown only to those who may see it
	Portal string                // origin of the portal, such as https://weir.example.org
	Link   string                // path in the portal, such as /workspaces/5
}

func (v ErrorView) title(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Please sign in")
	case v.Status == http.StatusForbidden:
		return T(ctx, "You may not do this")
	case v.Status == http.StatusNotFound:
		return T(ctx, "Nothing is here")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "It has changed meanwhile")
	case v.Status == http.StatusTooManyRequests:
		return T(ctx, "Too many attempts")
	case v.Status == http.StatusServiceUnavailable:
		return T(ctx, "Not available now")
	case v.Status >= 500:
		return T(ctx, "Something went wrong here")
	}
	return T(ctx, "This cannot be done")
}

// advice says what the reader can do about it.
func (v ErrorView) advice(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Your session has ended, or there was none.")
	case v.Status == http.StatusForbidden:
		return T(ctx, "A manager of the project or an administrator can give you the right.")
	case v.Status == http.StatusNotFound:
		return T(ctx, "The address is wrong, the thing was deleted, or it is not yours to see.")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "Nothing was changed. Go back, load the page again and repeat what you wanted to change.")
	case v.Status == http.StatusTooManyRequests || v.Status == http.StatusServiceUnavailable:
		return T(ctx, "Try again in a while.")
	case v.Status >= 500:
		return T(ctx, "It is not your fault. Try again; if it stays, tell an administrator the number of the request.")
	}
	return T(ctx, "Go back and correct the input.")
}

func (v WorkspaceGoneView) title(ctx context.Context) string {
	switch {
	case v.State == "":
		return T(ctx, "There is no workspace here")
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "The workspace %s has stopped", v.Name)
	case v.State == models.StateRunning:
		return T(ctx, "The workspace %s does not answer", v.Name)
	}
	return T(ctx, "The workspace %s is not ready yet", v.Name)
}

func (v WorkspaceGoneView) advice(ctx context.Context) string {
	switch {
	case v.State == "":
		return T(ctx, "It was never here, or it must be opened from Weir first.")
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "Its files are kept. It can be launched again from Weir.")
	}
	return T(ctx, "Its page in Weir says how far it is and opens it.")
}

func (v WorkspaceGoneView) link() string {
	if v.Link == "" {
		return "/"
	}
	return v.Link
}
