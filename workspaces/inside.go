package workspaces

import (
	"context"
	"fmt"

	"weir/models/store"
	"weir/policies"
)

// ActorInside is who a program inside a running workspace acts as: its owner, limited to its
// project and to the runs in its environment. The owner's access is checked as for a visit.
func (s *Service) ActorInside(ctx context.Context, accounts *policies.Accounts, id int64) (policies.Actor, error) {
	w, err := s.store.Read(ctx).Workspace(store.AllProjects, id)
	if err != nil {
		return policies.Actor{}, err
	}
	actor, err := accounts.Load(ctx, w.UserID)
	if err != nil {
		return policies.Actor{}, err
	}
	actor = actor.ActInside(policies.Inside{Workspace: id, Project: w.ProjectID}, fmt.Sprintf("workspace %d", id))
	if _, err := s.AdmitActor(ctx, actor, id); err != nil {
		return policies.Actor{}, err
	}
	return actor, nil
}
