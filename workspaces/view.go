package workspaces

import (
	"context"
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Summary is a workspace in a list, with what the actor may do with it now.
type Summary struct {
	models.WorkspaceView
	CanStop  bool
	CanOpen  bool
	Idleness *Idleness // of a running workspace
}

func (s *Service) summary(actor policies.Actor, w models.WorkspaceView) Summary {
	v := Summary{WorkspaceView: w, CanOpen: s.canOpen(actor, w.Workspace),
		CanStop: s.access.MayOwned(actor, w.UserID, w.ProjectID, policies.WorkspaceStop) && !w.State.Ended() && w.State != models.StateStopping}
	if w.State == models.StateRunning {
		v.Idleness = new(idlenessOf(w.Workspace, s.store.Now()))
	}
	if w.UserID != actor.User.ID {
		v.WorkspaceView = withoutSecrets(w)
	}
	return v
}

// View is a workspace with everything that its page shows.
type View struct {
	Summary
	Events        []models.WorkspaceEvent
	ScheduledStop *ScheduledStop       // when it is stopped, with its membership, project or reservation; nil: never, or it has ended
	DirectoryUser models.DirectoryUser // what decides over its directories now
	CanRestart    bool                 // now
	Apps          []models.App         // that its environment has
	// CanLaunchAgain is set for the owner who may still launch in the project.
	CanLaunchAgain bool
}

// View shows a workspace of a project that the actor may see.
func (s *Service) View(ctx context.Context, actor policies.Actor, id int64) (v View, err error) {
	w, err := s.authorize(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return v, err
	}
	q := s.store.Read(ctx)
	view, err := q.WorkspaceView(store.AllProjects, id)
	if err != nil {
		return v, err
	}
	v.Summary = s.summary(actor, view)
	v.CanLaunchAgain = w.UserID == actor.User.ID && actor.CanLaunchIn(w.ProjectID)
	v.CanRestart = v.CanLaunchAgain && w.State == models.StateRunning
	if v.Events, err = q.WorkspaceEvents(id); err != nil {
		return v, err
	}
	e, err := q.Environment(w.EnvironmentID)
	if err != nil {
		return v, err
	}
	v.Apps = e.Apps()
	err = v.addScheduledStop(q, w)
	return v, err
}

// OtherApps returns the apps of the workspace that its start page does not belong to.
func (v View) OtherApps() []models.App {
	start := models.AppOf(parameter(v.Target, "path"))
	return slices.DeleteFunc(slices.Clone(v.Apps), func(a models.App) bool { return a == start })
}

// Outdated reports whether the workspace was started with other mounts than these, which
// it would get now.
func (v View) Outdated(mounts []models.Mount) bool {
	return (v.State == models.StateStarting || v.State == models.StateRunning) && v.Mounts != "" && v.Mounts != models.MountsDigest(mounts)
}

// addScheduledStop adds the first known end of the workspace, and the member.
func (v *View) addScheduledStop(q *store.Queries, w models.Workspace) (err error) {
	if v.DirectoryUser, err = q.DirectoryUser(w.ProjectID, w.MemberID); err != nil || w.State.Ended() {
		return err
	}
	term, err := q.TermOf(w.MemberID)
	if err != nil {
		return err
	}
	v.ScheduledStop = scheduledStopOf(term)
	grant, err := q.GrantInUse(w.HolderID)
	if err != nil {
		return models.IgnoreNotFound(err)
	}
	if v.ScheduledStop == nil || grant.EndsAt.Before(v.ScheduledStop.At) {
		v.ScheduledStop = &ScheduledStop{At: grant.EndsAt, ReservationID: grant.ReservationID}
	}
	return nil
}

// withoutSecrets removes what only the owner may read: environment variables often
// contain keys, and programs print them.
func withoutSecrets(w models.WorkspaceView) models.WorkspaceView {
	w.LogTail = ""
	w.Target = slices.Clone(w.Target)
	for i, p := range w.Target {
		if strings.HasPrefix(p.Name, "env.") {
			w.Target[i].Value = "•••"
		}
	}
	return w
}

// canOpen reports whether the actor may open the workspace. Only its owner may,
// because actions in it are made as the owner.
func (s *Service) canOpen(actor policies.Actor, w models.Workspace) bool {
	return actor.User.ID != 0 && actor.User.ID == w.UserID && s.access.MayOwned(actor, w.UserID, w.ProjectID, policies.WorkspaceOpen)
}

// List shows the actor's own workspaces, and those of others in projects
// whose workspaces the actor may see, newest first.
func (s *Service) List(ctx context.Context, actor policies.Actor, f store.WorkspaceFilter, page store.Page) ([]Summary, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	f.Visible = s.access.Visible(actor, policies.WorkspaceRead)
	list, err := s.store.Read(ctx).Workspaces(actor.Scope(), f, page)
	views := make([]Summary, len(list))
	for i, w := range list {
		views[i] = s.summary(actor, w)
	}
	return views, err
}

// Count counts all workspaces by state, for metrics.
func (s *Service) Count(ctx context.Context) (map[models.WorkspaceState]int64, error) {
	return s.store.Read(ctx).CountWorkspaces()
}

// CountActive counts the actor's own live workspaces.
func (s *Service) CountActive(ctx context.Context, actor policies.Actor) (int64, error) {
	return s.store.Read(ctx).CountActiveWorkspaces(actor.User.ID)
}
