package workspaces

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// RenameInput is the new name of a workspace.
type RenameInput struct {
	Name    string `json:"name" maxLength:"100" doc:"unique among the live workspaces of a member in a project"`
	Version int64  `json:"-"`
}

// ForRename finds a workspace that the actor may rename.
func (s *Service) ForRename(ctx context.Context, actor policies.Actor, id int64) (models.Workspace, error) {
	return s.authorize(ctx, actor, id, policies.WorkspaceStop)
}

// Rename renames a workspace. What runs in it is not affected.
func (s *Service) Rename(ctx context.Context, actor policies.Actor, id int64, in RenameInput) (w models.Workspace, err error) {
	if w, err = s.authorize(ctx, actor, id, policies.WorkspaceStop); err != nil {
		return w, err
	}
	var problems models.Problems
	in.Name = models.CheckName("name", in.Name, &problems)
	if err := problems.Err(); err != nil {
		return w, err
	}
	return w, s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if w, err = q.LockWorkspace(store.AllProjects, id); err != nil {
			return err
		}
		if err := models.CheckVersion("workspace", in.Version, w.Version); err != nil || w.Name == in.Name {
			return err
		}
		before := w.Name
		if err := q.RenameWorkspace(&w, in.Name); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "workspace", ID: w.ID, Project: w.ProjectID,
			Before: map[string]any{"name": before}, After: map[string]any{"name": w.Name}})
	})
}
