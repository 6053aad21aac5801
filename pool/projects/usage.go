package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// RoleUsage is the usage of the members of a role.
type RoleUsage struct {
	RoleView
	Allocated models.Resources // the limit times the members
	InUse     models.Resources // now
	Used      models.Usage     // in the span
	OfTotal   Fractions        // of the usage of the project
}

// PersonUsage is the usage of a member.
type PersonUsage struct {
	MemberView
	Used      models.Usage // in the span
	OfTotal   Fractions    // of the usage of the project
	Simulated bool         // the project used simulated GPUs
}

// ProjectUsage is a project's usage over a span of time, by role.
type ProjectUsage struct {
	Project     ProjectView
	From, Until time.Time
	Steps       []UsageStep
	Used        models.Usage // by all
	OfQuota     Fractions    // of the present quota
	Left        models.Usage // the part of former members
	Roles       []RoleUsage

	Simulated bool // it includes simulated GPUs
}

// Usage returns a project's usage over a span of time.
func (s *Service) Usage(ctx context.Context, actor policies.Actor, project int64, in UsageQuery) (u ProjectUsage, err error) {
	if u.Project, err = s.Project(ctx, actor, project); err != nil {
		return u, err
	}
	q := s.store.Read(ctx)
	if u.From, u.Until, err = in.span(q.Now()); err != nil {
		return u, err
	}
	step, n := stepsOf(u.Until.Sub(u.From))
	if u.Steps, err = usageOver(q, actor.Scope(), project, u.Project.CreatedAt, u.From, step, n); err != nil {
		return u, err
	}
	span := u.Until.Sub(u.Project.UsedSince(u.From, u.Until))
	used, _, err := q.UsedBy(project, 0, u.Until.Add(-span), u.Until)
	if err != nil {
		return u, err
	}
	u.Used, u.OfQuota = used.Over(span), ofQuota(used, u.Project.Quota, span)
	if u.Simulated, err = q.UsesSimulated(project, u.From, u.Until); err != nil {
		return u, err
	}
	return u, s.usageOfRoles(ctx, q, actor, &u, used)
}

// usageOfRoles adds the roles to the usage of a project, whose sums are all.
func (s *Service) usageOfRoles(ctx context.Context, q *store.Queries, actor policies.Actor, u *ProjectUsage, all store.UsageSums) error {
	roles, err := s.Roles(ctx, actor, u.Project.ID)
	if err != nil {
		return err
	}
	since := u.Project.UsedSince(u.From, u.Until)
	used, err := q.UsedByRoles(u.Project.ID, since, u.Until)
	if err != nil {
		return err
	}
	inUse, err := q.InUseByRoles(u.Project.ID)
	u.Left = used[0].Over(u.Until.Sub(since))
	for _, r := range roles {
		u.Roles = append(u.Roles, RoleUsage{RoleView: r, Allocated: r.Limit.Times(r.Members), InUse: inUse[r.ID],
			Used: used[r.ID].Over(u.Until.Sub(since)), OfTotal: ofTotal(used[r.ID], all)})
	}
	return err
}

// UsageOfPeople returns the usage of each of a project's members over a span of time,
// or only the actor's own, see [Service.CanReadUsage].
func (s *Service) UsageOfPeople(ctx context.Context, actor policies.Actor, project int64,
	in UsageQuery, page store.Page) ([]PersonUsage, error) {
	q := s.store.Read(ctx)
	from, until, err := in.span(q.Now())
	if err != nil {
		return nil, err
	}
	members, err := s.usersOfResources(ctx, actor, project, page)
	if err != nil || len(members) == 0 {
		return nil, err
	}
	p, err := q.Project(store.AllProjects, project)
	if err != nil {
		return nil, err
	}
	from = p.UsedSince(from, until)
	users := models.Map(members, func(m MemberView) int64 { return m.UserID })
	simulated, err := q.UsesSimulated(project, from, until)
	if err != nil {
		return nil, err
	}
	all, _, err := q.UsedBy(project, 0, from, until)
	if err != nil {
		return nil, err
	}
	used, err := q.UsedByUsers(project, users, from, until)
	list := make([]PersonUsage, len(members))
	for i, m := range members {
		list[i] = PersonUsage{MemberView: m, Used: used[m.UserID].Over(until.Sub(from)),
			OfTotal: ofTotal(used[m.UserID], all), Simulated: simulated}
	}
	return list, err
}

// usersOfResources are the members whose usage the actor may see.
func (s *Service) usersOfResources(ctx context.Context, actor policies.Actor, project int64, page store.Page) ([]MemberView, error) {
	if s.CanReadUsage(actor, project) {
		return s.Members(ctx, actor, project, page)
	}
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return nil, err
	}
	m, err := s.store.Read(ctx).Membership(project, actor.User.ID)
	if err != nil || m.RemovedAt != nil || m.ID <= page.After {
		return nil, models.IgnoreNotFound(err)
	}
	own, err := s.Member(ctx, actor, project, m.ID)
	return []MemberView{own}, err
}

// CanReadUsage reports whether the actor may see the usage of each member: managers
// and auditors may.
func (s *Service) CanReadUsage(actor policies.Actor, project int64) bool {
	return s.access.May(actor, project, policies.MemberWrite) || s.access.May(actor, project, policies.AuditRead)
}
