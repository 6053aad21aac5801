package projects

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// RoleInput describes a role, to create or to replace it.
type RoleInput struct {
	Name        string                `json:"name" maxLength:"100"`
	Permission  string                `json:"permission" enum:"owner,manager,member,viewer,custom" doc:"viewer: read access to the project; member: also launch workspaces; manager: also manage roles and members; owner: also edit the project; custom: the listed permissions"`
	Permissions []string              `json:"permissions,omitempty" doc:"permissions of a custom role, such as member:write; project:read is always included"`
	Limit       models.ResourcesInput `json:"limit,omitempty" doc:"limit per member; absent amounts are filled in from the project's quota: one GPU, and the rest in proportion to the cores, but 0 for a role that cannot launch workspaces"`
	Version     int64                 `json:"-"`
}

// Check validates and normalizes the input.
func (in *RoleInput) Check() error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Permissions = models.CheckPermissions(in.Permission, in.Permissions, &p)
	in.Limit.Check("limit", &p)
	return p.Err()
}

// role is a role of a project, by an input that Check has validated.
func (in RoleInput) role(r models.Role, p models.Project) models.Role {
	custom, _ := models.ParsePermissions(in.Permissions)
	r.ProjectID, r.Name, r.Permission, r.Permissions = p.ID, in.Name, in.Permission, custom
	r.Limit, _ = FillLimit(in.Limit, p.Quota, r.Permits())
	return r
}

// FilledLimit is the limit of the role in a project, with the amounts that are left
// open filled in; the input must be valid.
func (in RoleInput) FilledLimit(p models.Project) models.Resources {
	return in.role(models.Role{}, p).Limit
}

// RoleInputOf is the input of an unchanged role.
func RoleInputOf(r models.Role) RoleInput {
	return RoleInput{Name: r.Name, Permission: r.Permission, Permissions: r.Permissions.Names(), Limit: r.Limit.Input()}
}

// CreateRole adds a role to a project. Its limit must not exceed the quota.
func (s *Service) CreateRole(ctx context.Context, actor policies.Actor, project int64, in RoleInput) (r models.Role, err error) {
	err = s.edit(ctx, actor, project, policies.RoleWrite, func(e Editor, p models.Project) (err error) {
		r, err = e.CreateRole(p, in)
		return err
	})
	return r, err
}

// CreateRole adds a role to a project.
func (e Editor) CreateRole(p models.Project, in RoleInput) (r models.Role, err error) {
	if err := in.Check(); err != nil {
		return r, err
	}
	r = in.role(models.Role{Version: 1, CreatedAt: e.q.Now()}, p)
	if err := CheckLimit(r.Limit, p.Quota); err != nil {
		return r, err
	}
	if err := e.grantsRole(r); err != nil {
		return r, err
	}
	if err := e.q.CreateRole(&r); err != nil {
		return r, err
	}
	return r, e.actor.Audit(e.q, policies.Change{Action: "create", Object: "role", ID: r.ID, Project: p.ID, After: r})
}

// UpdateRole replaces a role. A limit is refused if the sum of the limits would
// exceed the quota, or if a member's use exceeds it.
func (s *Service) UpdateRole(ctx context.Context, actor policies.Actor, project, id int64, in RoleInput) (r models.Role, err error) {
	err = s.edit(ctx, actor, project, policies.RoleWrite, func(e Editor, p models.Project) error {
		before, err := e.q.Role(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		r, err = e.UpdateRole(p, before, in)
		return err
	})
	return r, err
}

// UpdateRole replaces a role of a project.
func (e Editor) UpdateRole(p models.Project, r models.Role, in RoleInput) (models.Role, error) {
	if err := in.Check(); err != nil {
		return r, err
	}
	if err := models.CheckVersion("role", in.Version, r.Version); err != nil {
		return r, err
	}
	before := r
	r = in.role(r, p)
	if err := e.grantsRole(before, r.Permits()); err != nil {
		return r, err
	}
	allocated, err := e.q.AllocatedLimits(p.ID)
	if err != nil {
		return r, err
	}
	change, err := readLimitChange(e.q, p, allocated, before, r)
	if err == nil {
		err = change.check()
	}
	if err != nil {
		return r, err
	}
	if err := e.q.UpdateRole(&r); err != nil {
		return r, err
	}
	return r, e.actor.Audit(e.q, policies.Change{Action: "update", Object: "role", ID: r.ID, Project: p.ID, Before: before, After: r})
}

// limitChange is a new limit of a role, with what it has to fit.
type limitChange struct {
	project       models.Project
	before, after models.Role
	allocated     models.Resources
	members       int64
	above         []MemberOverLimit // members whose use exceeds the new limit
}

func readLimitChange(q *store.Queries, p models.Project, allocated models.Resources, before, after models.Role) (c limitChange, err error) {
	c = limitChange{project: p, before: before, after: after, allocated: allocated}
	members, err := q.MembersWithRole(p.ID, after.ID)
	c.members = int64(len(members))
	if err != nil || c.members == 0 {
		return c, err
	}
	inUse, err := q.InUseByMembers(p.ID)
	for _, m := range members {
		if over := inUse[m.ID].Exceeding(after.Limit); len(over) > 0 {
			c.above = append(c.above, MemberOverLimit{m.ID, m.UserName, over})
		}
	}
	return c, err
}

// more is the additional allocation.
func (c limitChange) more() models.Resources {
	return c.after.Limit.Sub(c.before.Limit).Times(c.members)
}

// check checks rules 1 and 2.
func (c limitChange) check() error {
	if err := CheckLimit(c.after.Limit, c.project.Quota); err != nil || c.members == 0 {
		return err
	}
	if err := checkMore(c.project, c.allocated, c.more(), "limit", c.members); err != nil {
		return err
	}
	var problems models.Problems
	for _, m := range c.above {
		for _, e := range m.Excess {
			problems.Add("limit."+e.Name, "%s has %s in use; the limit cannot be lower", m.Name, models.Quantity(e.Name, e.Value))
		}
	}
	return quotaError(problems)
}

// DeleteRole removes a role without members.
func (s *Service) DeleteRole(ctx context.Context, actor policies.Actor, project, id int64) error {
	return s.edit(ctx, actor, project, policies.RoleWrite, func(e Editor, _ models.Project) error {
		r, err := e.q.Role(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := e.grantsRole(r); err != nil {
			return err
		}
		n, err := e.q.RoleMembers(project, id)
		if err != nil {
			return err
		}
		if err := (RoleView{r, n}).CheckDelete(); err != nil {
			return err
		}
		if err := e.q.DeleteRole(actor.Scope(), project, id); err != nil {
			return err
		}
		return actor.Audit(e.q, policies.Change{Action: "delete", Object: "role", ID: id, Project: project, Before: r})
	})
}

// RoleView is a role with the number of its current members.
type RoleView struct {
	models.Role
	Members int64
}

// CheckDelete refuses to delete a role that has members.
func (r RoleView) CheckDelete() error {
	if r.Members > 0 {
		return models.Conflict("%d members have this role. Assign them another role first.", r.Members)
	}
	return nil
}

// Roles lists a project's roles.
func (s *Service) Roles(ctx context.Context, actor policies.Actor, project int64) ([]RoleView, error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	roles, err := rolesOf(q, actor.Scope(), project)
	if err == nil && len(roles) == 0 {
		_, err = q.Project(actor.Scope(), project)
	}
	return roles, err
}

// RolesOf lists a project's roles, without checking permissions.
func RolesOf(q *store.Queries, project int64) ([]RoleView, error) {
	return rolesOf(q, store.AllProjects, project)
}

func rolesOf(q *store.Queries, scope store.Scope, project int64) ([]RoleView, error) {
	roles, err := q.Roles(scope, project)
	if err != nil {
		return nil, err
	}
	counts, err := q.CountRoleMembers(project)
	views := models.Map(roles, func(r models.Role) RoleView { return RoleView{Role: r, Members: counts[r.ID]} })
	return views, err
}

// Role finds one role of a project.
func (s *Service) Role(ctx context.Context, actor policies.Actor, project, id int64) (models.Role, error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return models.Role{}, err
	}
	return s.store.Read(ctx).Role(actor.Scope(), project, id)
}
