package web

import (
	"context"
	"net/http"

	"weir/models"
)

// ErrorView is a request that could not be served.
type ErrorView struct {
	Status int
	Err    models.Error
}

// WorkspaceErrorView is shown at a workspace's own address when a request is refused or
// nothing answers there.
type WorkspaceErrorView struct {
	ErrorView
	State  models.WorkspaceState // empty: it is not the reason, or not for this reader
	Name   string                // shown only to those who may see it
	Portal string                // origin of the portal, such as https://weir.example.org
	Link   string                // path in the portal, such as /workspaces/5; empty: its start page

	LaunchAgain string // path of a launch with the same values; empty while it has not stopped
}

func (v ErrorView) title(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Sign in to continue")
	case v.Status == http.StatusForbidden:
		return T(ctx, "Access denied")
	case v.Status == http.StatusNotFound:
		return T(ctx, "Not found")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "Conflicting change")
	case v.Status == http.StatusTooManyRequests:
		return T(ctx, "Too many attempts")
	case v.Status == http.StatusServiceUnavailable || v.Status == http.StatusInsufficientStorage:
		return T(ctx, "Service unavailable")
	case v.Status >= 500:
		return T(ctx, "Something went wrong")
	}
	return T(ctx, "Invalid request")
}

// advice is the suggested action.
func (v ErrorView) advice(ctx context.Context) string {
	switch {
	case v.Status == http.StatusUnauthorized:
		return T(ctx, "Your session has expired or you are not signed in.")
	case v.Status == http.StatusForbidden:
		return "" // the message says whom to ask
	case v.Status == http.StatusNotFound:
		return T(ctx, "The address is wrong, the item was deleted, or you do not have access to it.")
	case v.Status == http.StatusConflict || v.Status == http.StatusPreconditionFailed:
		return T(ctx, "No changes were made. Go back, reload the page and try again.")
	case v.Status == http.StatusTooManyRequests || v.Status == http.StatusServiceUnavailable || v.Status == http.StatusInsufficientStorage:
		return T(ctx, "Try again later.")
	case v.Status >= 500:
		return T(ctx, "If it happens again, tell an administrator when it happened.")
	}
	return T(ctx, "Go back and correct your input.")
}

func (v WorkspaceErrorView) title(ctx context.Context) string {
	switch {
	case v.State == "":
		return v.ErrorView.title(ctx)
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "Workspace %s has stopped", v.Name)
	case v.State == models.StateRunning:
		return T(ctx, "Workspace %s is not responding", v.Name)
	}
	return T(ctx, "Workspace %s is not ready yet", v.Name)
}

func (v WorkspaceErrorView) advice(ctx context.Context) string {
	switch {
	case v.Status == http.StatusNotFound:
		return v.ErrorView.advice(ctx)
	case v.State == "":
		return TT(ctx, v.Err.Message)
	case v.State.Ended() || v.State == models.StateStopping:
		return T(ctx, "Its files are kept.")
	}
	return T(ctx, "Check its status and open it from its page in Weir.")
}

func (v WorkspaceErrorView) linkLabel(ctx context.Context) string {
	if v.State == "" && v.Link != "" {
		return T(ctx, "Open workspace")
	}
	return T(ctx, "Go to Weir")
}
