package workspaces

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// MaxStopped is how many workspaces one call can stop.
const MaxStopped = 200

// maxStopReason is the longest reason, in characters.
const maxStopReason = 500

// StopInput names workspaces to stop, and why.
type StopInput struct {
	IDs    []int64
	Reason string // told to their owners; may be empty
}

// normalize checks the input, and cuts what surrounds the reason.
func (in *StopInput) normalize() error {
	var p models.Problems
	switch n := len(in.IDs); {
	case n == 0:
		p.Add("ids", "is required")
	case n > MaxStopped:
		p.Add("ids", "must be at most %d workspaces; has %d", MaxStopped, n)
	}
	in.Reason = models.CheckText("reason", in.Reason, maxStopReason, &p)
	return p.Err()
}

// Stop stops a workspace. A queued one ends at once; a running one is stopped by
// the reconciler, and its shares are released when it is gone.
func (s *Service) Stop(ctx context.Context, actor policies.Actor, id int64) (models.Workspace, error) {
	return s.stopOne(ctx, actor, id, "")
}

// Stopped is what a call has stopped, and what it could not stop.
type Stopped struct {
	Workspaces []models.Workspace
	Failed     []StopFailure
}

// StopFailure is a workspace that could not be stopped.
type StopFailure struct {
	ID     int64
	Reason models.Text
}

// StopAll stops those workspaces that it can. What has ended or stops already stays as it
// is. If it can stop none of them, the error is why it cannot stop the first. It does not stop half-way because
// the client has gone: a repeated request with the same key would not go on.
func (s *Service) StopAll(ctx context.Context, actor policies.Actor, in StopInput) (result Stopped, err error) {
	if err := in.normalize(); err != nil {
		return result, err
	}
	ctx = context.WithoutCancel(ctx)
	var first error
	for _, id := range in.IDs {
		w, err := s.stopOne(ctx, actor, id, in.Reason)
		e, known := errors.AsType[*models.Error](err)
		switch {
		case err == nil:
			result.Workspaces = append(result.Workspaces, w)
		case models.KindOf(err) == models.KindConflict: // it ends
		case (!known || e.Kind == models.KindInternal) && len(result.Workspaces) == 0:
			return result, err
		case !known || e.Kind == models.KindInternal:
			s.store.Log().ErrorContext(ctx, "a workspace could not be stopped with others", "workspace", id, "err", err)
			result.Failed = append(result.Failed, StopFailure{id, models.Say("Something went wrong. No changes were made.")})
		default:
			first = cmp.Or(first, err)
			result.Failed = append(result.Failed, StopFailure{id, e.Message})
		}
	}
	if len(result.Failed) == len(in.IDs) {
		return Stopped{}, first
	}
	return result, nil
}

func (s *Service) stopOne(ctx context.Context, actor policies.Actor, id int64, reason string) (models.Workspace, error) {
	w, err := s.authorize(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return w, err
	}
	return s.stop(ctx, actor, w, reason)
}

// stop stops a workspace, and tells its owner if that is somebody else.
func (s *Service) stop(ctx context.Context, actor policies.Actor, w models.Workspace, reason string) (models.Workspace, error) {
	id := w.ID
	err := s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceStop, func(q *store.Queries) (err error) {
		if _, err := q.LockProject(store.AllProjects, w.ProjectID); err != nil {
			return err
		}
		if w, err = q.LockWorkspace(store.AllProjects, id); err != nil {
			return err
		}
		if w.State.Ended() || w.State == models.StateStopping {
			return models.Conflict("This workspace is already %s.", w.State.Words())
		}
		why := stoppedBy(actor, reason)
		if actor.User.ID != w.UserID {
			if err := notifyOwner(q, w, models.NotificationWorkspaceEnding, models.Say("The workspace %s: %s", w.Name, why)); err != nil {
				return err
			}
		}
		return stopWorkspace(q, actor, &w, why)
	})
	return w, err
}

func stoppedBy(actor policies.Actor, reason string) models.Text {
	name := cmp.Or(actor.User.Name, actor.Label())
	if reason == "" {
		return models.Say("Stopped by %s.", name)
	}
	return models.Say("Stopped by %s: %s", name, reason)
}
