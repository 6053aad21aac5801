package requests

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// SetJoinRequests enables or disables join requests for a project.
func (s *Service) SetJoinRequests(ctx context.Context, actor policies.Actor, project int64, on bool) error {
	return s.access.Write(ctx, s.store, actor, project, policies.MemberWrite, func(q *store.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil || p.JoinRequests == on {
			return err
		}
		before := p
		p.JoinRequests = on
		if err := q.UpdateProject(&p); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "project", ID: project, Project: project, Before: before, After: p})
	})
}

// Joinable finds a project that accepts join requests; only its id and name are
// set.
func (s *Service) Joinable(ctx context.Context, actor policies.Actor, project int64) (models.Project, error) {
	if err := s.access.Check(actor, policies.Platform, policies.RequestCreate); err != nil {
		return models.Project{}, err
	}
	p, err := s.store.Read(ctx).ProjectToJoin(project, "")
	return models.Project{ID: p.ID, Name: p.Name}, err
}

// Membership is the actor's own membership in a project, also after its deadline,
// and the project's id and name.
func (s *Service) Membership(ctx context.Context, actor policies.Actor, project int64) (models.Member, models.Project, error) {
	if err := s.access.Check(actor, policies.Platform, policies.RequestCreate); err != nil {
		return models.Member{}, models.Project{}, err
	}
	r := s.review(s.store.Read(ctx), actor)
	r.submitting, r.requester, r.terms = true, actor.User, models.Requested{Deadline: &models.DeadlineSpec{ProjectID: project}}
	if err := r.findProject(); err != nil {
		return models.Member{}, models.Project{}, err
	}
	m, err := r.membership()
	return m, models.Project{ID: r.project.ID, Name: r.project.Name}, err
}
