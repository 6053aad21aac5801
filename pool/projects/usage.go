package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/policies"
)

// usageSteps is how a span of days is cut, by its days.
var usageSteps = map[int64]struct {
	step time.Duration
	n    int
}{
	1:  {time.Hour, 24},
	7:  {6 * time.Hour, 28},
	30: {24 * time.Hour, 30},
	90: {24 * time.Hour, 90},
}

// RoleUsage is what the people in a role used of what they are promised.
type RoleUsage struct {
	RoleView
	Allocated models.Resources // the limit times the members
	InUse     models.Resources // now
	Used      models.Usage     // in the span
}

// PersonUsage is what a member used of what the role promises.
type PersonUsage struct {
	MemberView
	Used models.Usage // in the span
	// Simulated tells that some of the project's GPUs were simulated then.
	Simulated bool
}

// ProjectUsage is a project's resources over a span of time, by role and by
// person.
type ProjectUsage struct {
	Project  ProjectView
	From, To time.Time
	Steps    []UsageStep
	Used     models.Usage // by all
	Left     models.Usage // of it by people who have left
	Roles    []RoleUsage
	// Simulated tells that some of the GPUs in it were simulated.
	Simulated bool
}

// Usage shows what a project held in the last days: 1, 7, 30 or 90. Every
// member may see it.
func (s *Service) Usage(ctx context.Context, actor policies.Actor, project, days int64) (u ProjectUsage, err error) {
	cut, ok := usageSteps[days]
	if !ok {
		return u, models.Invalid("days", "must be 1, 7, 30 or 90")
	}
	if u.Project, err = s.Project(ctx, actor, project); err != nil {
		return u, err
	}
	q := s.store.Read(ctx)
	u.To = q.Now()
	u.From = u.To.Add(-time.Duration(cut.n) * cut.step)
	if u.Steps, err = usageOver(q, actor.Scope(), project, u.From, cut.step, cut.n); err != nil {
		return u, err
	}
	if u.Used, err = q.UsedBy(project, 0, u.From, u.To); err != nil {
		return u, err
	}
	if u.Simulated, err = q.UsesSimulated(project, u.From); err != nil {
		return u, err
	}
	return u, s.usageOfRoles(ctx, q, actor, &u)
}

func (s *Service) usageOfRoles(ctx context.Context, q *models.Queries, actor policies.Actor, u *ProjectUsage) error {
	roles, err := s.Roles(ctx, actor, u.Project.ID)
	if err != nil {
		return err
	}
	used, err := q.UsedByRoles(u.Project.ID, u.From, u.To)
	if err != nil {
		return err
	}
	inUse, err := q.InUseByRoles(u.Project.ID)
	u.Left = used[0]
	for _, r := range roles {
		u.Roles = append(u.Roles, RoleUsage{RoleView: r, Allocated: r.Limit.Times(r.Members), InUse: inUse[r.ID], Used: used[r.ID]})
	}
	return err
}

// UsageOfPeople shows what each of a project's members held in the last days,
// for those who may change its members or read its audit; others see their
// own.
func (s *Service) UsageOfPeople(ctx context.Context, actor policies.Actor, project, days int64, page models.Page) ([]PersonUsage, error) {
	cut, ok := usageSteps[days]
	if !ok {
		return nil, models.Invalid("days", "must be 1, 7, 30 or 90")
	}
	members, err := s.usersOfResources(ctx, actor, project, page)
	if err != nil || len(members) == 0 {
		return nil, err
	}
	users := make([]int64, len(members))
	for i, m := range members {
		users[i] = m.UserID
	}
	q := s.store.Read(ctx)
	now := q.Now()
	since := now.Add(-time.Duration(cut.n) * cut.step)
	simulated, err := q.UsesSimulated(project, since)
	if err != nil {
		return nil, err
	}
	used, err := q.UsedByUsers(project, users, since, now)
	list := make([]PersonUsage, len(members))
	for i, m := range members {
		list[i] = PersonUsage{MemberView: m, Used: used[m.UserID], Simulated: simulated}
	}
	return list, err
}

// usersOfResources are the members whose use the actor may see.
func (s *Service) usersOfResources(ctx context.Context, actor policies.Actor, project int64, page models.Page) ([]MemberView, error) {
	if s.MaySeeUse(actor, project) {
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

// MaySeeUse tells whether the actor may see what each member of a project
// uses.
func (s *Service) MaySeeUse(actor policies.Actor, project int64) bool {
	return s.access.May(actor, project, policies.MemberWrite) || s.access.May(actor, project, policies.AuditRead)
}
