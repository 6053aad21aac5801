package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// RoleInput describes a role, to create or to replace it.
type RoleInput struct {
	Name        string           `json:"name" maxLength:"100"`
	Permission  string           `json:"permission" enum:"owner,manager,member,viewer,custom" doc:"viewer: sees the project; member: own workspaces, too; manager: edits roles and members, too; owner: describes the project, too; custom: what permissions lists"`
	Permissions []string         `json:"permissions,omitempty" doc:"of a custom role: what it permits, such as member:write; project:read is always among them"`
	Peak        models.Resources `json:"peak" doc:"the most that a member in this role may hold at once"`
	Version     int64            `json:"-"`
}

func (in *RoleInput) check() error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Permissions = models.CheckPermissions(in.Permission, in.Permissions, &p)
	in.Peak.Check("peak", &p)
	return p.Err()
}

// own is what a custom role lists; check has seen to the names.
func (in RoleInput) own() models.Permissions {
	set, _ := models.ParsePermissions(in.Permissions)
	return set
}

// roleInputOf is a role as it is, to change one thing of it.
func roleInputOf(r models.Role) RoleInput {
	return RoleInput{Name: r.Name, Permission: r.Permission, Permissions: r.Permissions.Names(), Peak: r.Peak}
}

// CreateRole adds a role to a project. Its peak may not exceed the quota,
// for then nobody could ever be given it.
func (l *Ledger) CreateRole(ctx context.Context, actor policies.Actor, project int64, in RoleInput) (r models.Role, err error) {
	if err := l.access.Check(actor, project, "role", "write"); err != nil {
		return r, err
	}
	if err := in.check(); err != nil {
		return r, err
	}
	err = l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "role", Act: "write"}, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		r, err = l.createRole(q, actor, p, in)
		return err
	})
	return r, err
}

// createRole is CreateRole within a transaction that has locked the project
// and in which the actor may.
func (l *Ledger) createRole(q *models.Queries, actor policies.Actor, p models.Project, in RoleInput) (r models.Role, err error) {
	if err := in.check(); err != nil {
		return r, err
	}
	if err := peakWithin(in.Peak, p.Quota); err != nil {
		return r, err
	}
	r = models.Role{ProjectID: p.ID, Name: in.Name, Permission: in.Permission, Permissions: in.own(), Peak: in.Peak, Version: 1, CreatedAt: q.Now()}
	if err := l.grantsRole(q, actor, r); err != nil {
		return r, err
	}
	if err := q.CreateRole(&r); err != nil {
		return r, err
	}
	return r, actor.Audit(q, policies.Change{Action: "create", Object: "role", ID: r.ID, Project: p.ID, After: r})
}

func peakWithin(peak, quota models.Resources) error {
	var problems models.Problems
	for _, e := range peak.Exceeding(quota) {
		problems.Add("peak."+e.Name, "%s asked; the project's whole quota is %s",
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return capacity(problems.Err())
}

// UpdateRole replaces a role. A peak is refused when the members who have the
// role would then be promised more than the quota, or one of them holds more.
func (l *Ledger) UpdateRole(ctx context.Context, actor policies.Actor, project, id int64, in RoleInput) (r models.Role, err error) {
	if err := l.access.Check(actor, project, "role", "write"); err != nil {
		return r, err
	}
	if err := in.check(); err != nil {
		return r, err
	}
	err = l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "role", Act: "write"}, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		if r, err = q.Role(actor.Scope(), project, id); err != nil {
			return err
		}
		r, err = l.updateRole(q, actor, p, r, in)
		return err
	})
	return r, err
}

// updateRole is UpdateRole within a transaction that has locked the project
// and in which the actor may.
func (l *Ledger) updateRole(q *models.Queries, actor policies.Actor, p models.Project, r models.Role, in RoleInput) (models.Role, error) {
	if err := models.CheckVersion("role", in.Version, r.Version); err != nil {
		return r, err
	}
	before := r
	r.Name, r.Permission, r.Permissions, r.Peak = in.Name, in.Permission, in.own(), in.Peak
	if err := l.grantsRole(q, actor, before, r.Permits()); err != nil {
		return r, err
	}
	if err := l.peakFits(q, p, before, r); err != nil {
		return r, err
	}
	if err := q.UpdateRole(&r); err != nil {
		return r, err
	}
	return r, actor.Audit(q, policies.Change{Action: "update", Object: "role", ID: r.ID, Project: p.ID, Before: before, After: r})
}

func (l *Ledger) peakFits(q *models.Queries, p models.Project, before, after models.Role) error {
	if err := peakWithin(after.Peak, p.Quota); err != nil {
		return err
	}
	n, err := q.RoleMembers(p.ID, after.ID)
	if err != nil || n == 0 {
		return err
	}
	if err := promiseFits(q, p, after.Peak.Sub(before.Peak).Times(n), "peak", n); err != nil {
		return err
	}
	holders, err := holdMore(q, after)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, h := range holders {
		for _, e := range h.Excess {
			problems.Add("peak."+e.Name, "%s holds %s now; the peak cannot be less", h.Name, models.Quantity(e.Name, e.Value))
		}
	}
	return capacity(problems.Err())
}

// Holder is a member that holds more now than a new peak would allow.
type Holder struct {
	MemberID int64
	Name     string
	Excess   []models.Excess // what is held beside the new peak
}

// holdMore lists the members of a role who hold more than its peak.
func holdMore(q *models.Queries, r models.Role) (list []Holder, err error) {
	held, err := q.HeldByMembers(r.ProjectID)
	if err != nil {
		return nil, err
	}
	members, err := q.MembersWithRole(r.ProjectID, r.ID)
	for _, m := range members {
		if over := held[m.ID].Exceeding(r.Peak); len(over) > 0 {
			list = append(list, Holder{m.ID, m.UserName, over})
		}
	}
	return list, err
}

// promiseFits holds rule 1 when the promised peaks grow by more, which n
// members share; prefix names the input's field.
func promiseFits(q *models.Queries, p models.Project, more models.Resources, prefix string, n int64) error {
	promised, err := q.PromisedPeaks(p.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	left := p.Quota.Sub(promised).Amounts()
	mores := more.Amounts()
	for i, e := range promised.Add(more).Amounts() {
		if mores[i].Value <= 0 || e.Value <= p.Quota.Amounts()[i].Value {
			continue
		}
		field := prefix
		if prefix == "peak" {
			field = "peak." + e.Name
		}
		problems.Add(field, "%s: %s more asked for %d members; %s left of the project's quota of %s",
			e.Label, models.Quantity(e.Name, mores[i].Value), n, models.Quantity(e.Name, max(left[i].Value, 0)),
			models.Quantity(e.Name, p.Quota.Amounts()[i].Value))
	}
	return capacity(problems.Err())
}

// DeleteRole removes a role that nobody has.
func (l *Ledger) DeleteRole(ctx context.Context, actor policies.Actor, project, id int64) error {
	if err := l.access.Check(actor, project, "role", "write"); err != nil {
		return err
	}
	return l.access.Write(ctx, l.store, actor, policies.Need{Project: project, Object: "role", Act: "write"}, func(q *models.Queries) error {
		if _, err := q.LockProject(actor.Scope(), project); err != nil {
			return err
		}
		r, err := q.Role(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := l.grantsRole(q, actor, r); err != nil {
			return err
		}
		n, err := q.RoleMembers(project, id)
		if err != nil {
			return err
		}
		if n > 0 {
			return models.Conflict("%d members have this role. Give them another one first.", n)
		}
		if err := q.DeleteRole(actor.Scope(), project, id); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "role", ID: id, Project: project, Before: r})
	})
}

// RoleView is a role with how many present members have it.
type RoleView struct {
	models.Role
	Members int64
}

// Roles lists a project's roles.
func (l *Ledger) Roles(ctx context.Context, actor policies.Actor, project int64) ([]RoleView, error) {
	if err := l.access.Check(actor, project, "project", "read"); err != nil {
		return nil, err
	}
	q := l.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err
	}
	roles, err := q.Roles(actor.Scope(), project)
	if err != nil {
		return nil, err
	}
	counts, err := q.CountRoleMembers(project)
	views := make([]RoleView, len(roles))
	for i, r := range roles {
		views[i] = RoleView{Role: r, Members: counts[r.ID]}
	}
	return views, err
}

// Role finds one role of a project.
func (l *Ledger) Role(ctx context.Context, actor policies.Actor, project, id int64) (models.Role, error) {
	if err := l.access.Check(actor, project, "project", "read"); err != nil {
		return models.Role{}, err
	}
	return l.store.Read(ctx).Role(actor.Scope(), project, id)
}
