package projects

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Form is what the forms of a project start from. Only actors who may save them
// get one.
type Form struct {
	Project     ProjectView
	Role        RoleView          // zero in the form of a new one
	Member      models.MemberView // zero in the form of a new one
	Roles       []models.Role     // to choose from
	Remaining   models.Resources  // of the quota; available to the role or member
	Permissions Permissions       // of the actor
}

// ProjectForm returns the form of a project; with id 0, of a new one. Actors whose
// Permissions lack EditProject can change only the description.
func (s *Service) ProjectForm(ctx context.Context, actor policies.Actor, id int64) (Form, error) {
	if id == 0 {
		return Form{Permissions: s.Permissions(actor, id)}, s.access.Check(actor, policies.Platform, policies.ProjectWrite)
	}
	return s.form(ctx, actor, id, policies.ProjectDescribe, func(*store.Queries, *Form) error { return nil })
}

// RoleForm returns the form of a role; with id 0, of a new one.
func (s *Service) RoleForm(ctx context.Context, actor policies.Actor, project, id int64) (Form, error) {
	return s.form(ctx, actor, project, policies.RoleWrite, func(q *store.Queries, f *Form) error {
		if id == 0 {
			return nil
		}
		roles, err := RolesOf(q, project)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(roles, func(r RoleView) bool { return r.ID == id })
		if i < 0 {
			return models.NotFound("role")
		}
		f.Role, f.Remaining = roles[i], f.Remaining.Add(roles[i].Limit.Times(roles[i].Members))
		return nil
	})
}

// MemberForm returns the form of a member; with id 0, of a new one.
func (s *Service) MemberForm(ctx context.Context, actor policies.Actor, project, id int64) (Form, error) {
	return s.form(ctx, actor, project, policies.MemberWrite, func(q *store.Queries, f *Form) (err error) {
		if f.Roles, err = q.Roles(store.AllProjects, project); err != nil || id == 0 {
			return err
		}
		f.Member, err = q.MemberView(store.AllProjects, project, id)
		f.Remaining = f.Remaining.Add(f.Member.Limit)
		return err
	})
}

// ImportForm returns the form of an import of members.
func (s *Service) ImportForm(ctx context.Context, actor policies.Actor, project int64) (Form, error) {
	return s.form(ctx, actor, project, policies.MemberWrite, func(*store.Queries, *Form) error { return nil })
}

// form reads the project, and the rest with fill, in one snapshot.
func (s *Service) form(ctx context.Context, actor policies.Actor, project int64, right policies.Right,
	fill func(*store.Queries, *Form) error) (f Form, err error) {
	if err := s.access.Check(actor, project, right); err != nil {
		return f, err
	}
	f.Permissions = s.Permissions(actor, project)
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		p, err := q.Project(actor.Scope(), project)
		if err != nil {
			return err
		}
		views, err := viewsOf(q, p)
		if err != nil {
			return err
		}
		f.Project, f.Remaining = views[0], p.Quota.Sub(views[0].Allocated)
		return fill(q, &f)
	})
	return f, err
}
