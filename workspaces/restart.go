package workspaces

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// ForRestart finds a workspace that the actor may restart: only its owner may, who can also
// launch it.
func (s *Service) ForRestart(ctx context.Context, actor policies.Actor, id int64) (models.Workspace, error) {
	w, err := s.authorize(ctx, actor, id, policies.WorkspaceRead)
	switch {
	case err != nil:
		return w, err
	case w.UserID != actor.User.ID:
		return w, models.Forbidden("Only its owner can restart a workspace.")
	}
	return w, s.access.Check(actor, w.ProjectID, policies.WorkspaceLaunch)
}

// Restart stops what runs in a workspace, and starts it again with the same parameters, the
// directories and the environment of now. It keeps its shares meanwhile.
func (s *Service) Restart(ctx context.Context, actor policies.Actor, id int64) (w models.Workspace, err error) {
	if w, err = s.ForRestart(ctx, actor, id); err != nil {
		return w, err
	}
	if err := s.store.CheckSpace(); err != nil { // what runs would end, and not start again
		return w, err
	}
	return w, s.access.Write(ctx, s.store, actor, w.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		if w, err = q.LockWorkspace(store.AllProjects, id); err != nil {
			return err
		}
		if w.State != models.StateRunning {
			return models.Conflict("This workspace is %s. Only a running workspace can be restarted.", w.State.Words())
		}
		e, err := q.Environment(w.EnvironmentID)
		if err != nil {
			return err
		}
		if !e.Unavailable.Empty() {
			return models.Conflict("The workspace could not start again: its environment is not available, because %s.", e.Unavailable)
		}
		w.State, w.Restarting, w.Progress, w.Endpoint = models.StateStarting, true, 0, models.Endpoint{}
		w.Reason, w.LogTail = models.Text{}, ""
		if err := q.Transition(&w, models.StateRunning, models.Say("Restarting.")); err != nil {
			return err
		}
		w.WorkedAt, w.WorkSignal, w.RemindedAt = new(q.Now()), "", nil // a start is work
		if err := q.SaveIdleness(w, false); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "restart", Object: "workspace", ID: w.ID, Project: w.ProjectID,
			Before: map[string]any{"state": models.StateRunning}, After: map[string]any{"state": w.State}})
	})
}
