package pool

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"time"

	"weir/models"
	"weir/policies"
)

// Ledger keeps projects, their quotas, roles and members, and with them the
// two rules: Σ over members of their role's peak never exceeds the project's
// quota, and nobody holds more than the peak of their role.
type Ledger struct {
	store  *models.Store
	access *policies.Access
	dirs   Directories
}

// Directories makes the shared directories of projects and members. It may be
// asked again for what exists.
type Directories interface {
	MakeProject(ctx context.Context, project int64) error
	MakeMember(ctx context.Context, project, member int64) error
}

// NewLedger keeps its books in store.
func NewLedger(store *models.Store, access *policies.Access, dirs Directories) *Ledger {
	return &Ledger{store: store, access: access, dirs: dirs}
}

// ProjectInput describes a project, to create or to replace it.
type ProjectInput struct {
	Name        string                  `json:"name" maxLength:"100"`
	Description string                  `json:"description,omitempty" maxLength:"2000"`
	Quota       models.Resources        `json:"quota"`
	StartsAt    *time.Time              `json:"starts_at,omitempty" doc:"begin of the period of use; absent: now"`
	EndsAt      *time.Time              `json:"ends_at,omitempty" doc:"end of the period of use; absent: open-ended"`
	Launch      models.LaunchParameters `json:"launch,omitempty" doc:"initial launch parameters"`
	Priority    int64                   `json:"priority,omitempty" minimum:"0" maximum:"100" doc:"in the queue, 1 to 100, the higher the earlier; absent: 50 for a new project, unchanged for others"`
	Version     int64                   `json:"-"`
}

func (in *ProjectInput) check(now time.Time) error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Description = models.CheckText("description", in.Description, 2000, &p)
	in.Quota.Check("quota", &p)
	in.Launch.Check("launch", &p)
	if in.Priority < 0 || in.Priority > 100 {
		p.Add("priority", "must be from 1 to %d", 100)
	}
	start := now
	if in.StartsAt != nil {
		start = in.StartsAt.UTC().Truncate(time.Microsecond)
		in.StartsAt = &start
		checkYear("starts_at", start, &p)
	}
	if in.EndsAt != nil {
		end := in.EndsAt.UTC().Truncate(time.Microsecond)
		in.EndsAt = &end
		checkYear("ends_at", end, &p)
		if !end.After(start) {
			p.Add("ends_at", "must be after the begin of the period")
		}
	}
	return p.Err()
}

// checkYear refuses times that not every database can keep.
func checkYear(field string, t time.Time, p *models.Problems) {
	if t.Year() < 1970 || t.Year() > 9999 {
		p.Add(field, "must be between the years 1970 and 9999")
	}
}

// CreateProject adds a project; only platform administrators may.
func (l *Ledger) CreateProject(ctx context.Context, actor policies.Actor, in ProjectInput) (p models.Project, err error) {
	if err := l.access.Check(actor, policies.Platform, "project", "write"); err != nil {
		return p, err
	}
	if err := in.check(l.store.Now()); err != nil {
		return p, err
	}
	err = l.access.Write(ctx, l.store, actor, policies.Need{Project: policies.Platform, Object: "project", Act: "write"}, func(q *models.Queries) (err error) {
		p, err = l.createProject(q, actor, in)
		return err
	})
	if err == nil {
		l.made(ctx, l.dirs.MakeProject(ctx, p.ID))
	}
	return p, err
}

// createProject is CreateProject within a transaction in which the actor may.
func (l *Ledger) createProject(q *models.Queries, actor policies.Actor, in ProjectInput) (p models.Project, err error) {
	now := q.Now()
	if err := in.check(now); err != nil {
		return p, err
	}
	p = models.Project{Name: in.Name, Description: in.Description, Quota: in.Quota, StartsAt: now, EndsAt: in.EndsAt,
		Launch: in.Launch, Priority: cmp.Or(in.Priority, models.UsualPriority), Version: 1, CreatedAt: now}
	if in.StartsAt != nil {
		p.StartsAt = *in.StartsAt
	}
	if err := q.CreateProject(&p); err != nil {
		return p, err
	}
	return p, actor.Audit(q, policies.Change{Action: "create", Object: "project", ID: p.ID, Project: p.ID, After: p})
}

// made logs a directory that could not be made: the change is committed, and
// launching makes the directory again.
func (l *Ledger) made(ctx context.Context, err error) {
	if err != nil {
		slog.ErrorContext(ctx, "shared directory not made; the next launch tries again", "err", err)
	}
}

// UpdateProject replaces a project's description, quota and period, as
// platform administrators may. Who may only describe the project changes its
// name, description and launch parameters but for the environment variables,
// which could run programs in the workspaces of others, and leaves out the
// rest or repeats it as it is. A quota below what the roles promise or what is held is
// refused.
func (l *Ledger) UpdateProject(ctx context.Context, actor policies.Actor, id int64, in ProjectInput) (p models.Project, err error) {
	need := policies.Need{Project: id, Object: "project", Act: "describe"}
	if err := l.access.Check(actor, id, need.Object, need.Act); err != nil {
		return p, err
	}
	whole := l.access.May(actor, id, "project", "write")
	if whole {
		need.Act = "write"
	}
	err = l.access.Write(ctx, l.store, actor, need, func(q *models.Queries) error {
		if p, err = q.LockProject(actor.Scope(), id); err != nil {
			return err
		}
		if !whole {
			if in, err = in.describing(p); err != nil {
				return err
			}
		}
		p, err = l.updateProject(q, actor, p, in)
		return err
	})
	return p, err
}

// describing is the input with the quota, period, priority and environment
// variables of p, which it may not say otherwise.
func (in ProjectInput) describing(p models.Project) (ProjectInput, error) {
	e := models.Forbidden("The quota, the period, the priority and the environment variables of a project are for platform administrators to change. Ask for it.")
	differs := func(name string, given bool) {
		if given {
			e.Fields = append(e.Fields, models.Field{Name: name, Reason: models.Say("can be changed by a platform administrator")})
		}
	}
	for i, a := range in.Quota.Amounts() {
		differs("quota."+a.Name, in.Quota != models.Resources{} && a.Value != p.Quota.Amounts()[i].Value)
	}
	differs("starts_at", in.StartsAt != nil && !in.StartsAt.Equal(p.StartsAt))
	differs("ends_at", in.EndsAt != nil && (p.EndsAt == nil || !in.EndsAt.Equal(*p.EndsAt)))
	differs("priority", in.Priority != 0 && in.Priority != p.Priority)
	differs("launch.env", len(in.Launch.Env) > 0 && !maps.Equal(in.Launch.Env, p.Launch.Env))
	in.Quota, in.StartsAt, in.EndsAt, in.Priority, in.Launch.Env = p.Quota, &p.StartsAt, p.EndsAt, p.Priority, p.Launch.Env
	if len(e.Fields) > 0 {
		return in, e
	}
	return in, nil
}

// updateProject is UpdateProject within a transaction that has locked the
// project and in which the actor may.
func (l *Ledger) updateProject(q *models.Queries, actor policies.Actor, p models.Project, in ProjectInput) (models.Project, error) {
	if err := models.CheckVersion("project", in.Version, p.Version); err != nil {
		return p, err
	}
	before := p
	if in.StartsAt == nil {
		in.StartsAt = &before.StartsAt
	}
	if err := in.check(q.Now()); err != nil {
		return p, err
	}
	p.Name, p.Description, p.Quota, p.Launch = in.Name, in.Description, in.Quota, in.Launch
	p.Priority = cmp.Or(in.Priority, p.Priority)
	p.StartsAt, p.EndsAt = *in.StartsAt, in.EndsAt
	if err := quotaCovers(q, p); err != nil {
		return p, err
	}
	if err := q.UpdateProject(&p); err != nil {
		return p, err
	}
	return p, actor.Audit(q, policies.Change{Action: "update", Object: "project", ID: p.ID, Project: p.ID, Before: before, After: p})
}

// quotaCovers holds rules 1 and 2 against a new quota.
func quotaCovers(q *models.Queries, p models.Project) error {
	promised, err := q.PromisedPeaks(p.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range promised.Exceeding(p.Quota) {
		problems.Add("quota."+e.Name, "%s is promised to members by their roles' peaks; the quota cannot be less",
			models.Quantity(e.Name, e.Value))
	}
	if err := problems.Err(); err != nil {
		return capacity(err)
	}
	held, err := q.HeldByProject(p.ID)
	if err != nil {
		return err
	}
	for _, e := range held.Exceeding(p.Quota) {
		problems.Add("quota."+e.Name, "%s is held by workspaces; the quota cannot be less", models.Quantity(e.Name, e.Value))
	}
	return capacity(problems.Err())
}

// capacity turns a refusal of fields into one for lack of capacity.
func capacity(err error) error {
	if e, ok := err.(*models.Error); ok && e != nil {
		e.Kind = models.KindNoCapacity
		e.Message = models.Say("This would break a quota. Nothing was changed.")
	}
	return err
}

// ProjectView is a project with what its members were promised and hold.
type ProjectView struct {
	models.Project
	Promised models.Resources // Σ over members of their role's peak
	Held     models.Resources // by workspaces, now
	Members  int64            // present ones
	Live     int64            // workspaces that have not ended
}

// Project finds a project that the actor may see.
func (l *Ledger) Project(ctx context.Context, actor policies.Actor, id int64) (v ProjectView, err error) {
	if err := l.access.Check(actor, id, "project", "read"); err != nil {
		return v, err
	}
	err = l.store.Snapshot(ctx, func(q *models.Queries) (err error) {
		v, err = l.view(q, actor, id)
		return err
	})
	return v, err
}

func (l *Ledger) view(q *models.Queries, actor policies.Actor, id int64) (v ProjectView, err error) {
	if v.Project, err = q.Project(actor.Scope(), id); err != nil {
		return v, err
	}
	sums, err := q.ProjectSums([]int64{id})
	s := sums[id]
	v.Promised, v.Held, v.Members, v.Live = s.Promised, s.Held, s.Members, s.Live
	return v, err
}

// withSums adds what the projects' members were promised and hold.
func withSums(q *models.Queries, projects []models.Project) ([]ProjectView, error) {
	ids := make([]int64, len(projects))
	for i, p := range projects {
		ids[i] = p.ID
	}
	sums, err := q.ProjectSums(ids)
	views := make([]ProjectView, len(projects))
	for i, p := range projects {
		s := sums[p.ID]
		views[i] = ProjectView{Project: p, Promised: s.Promised, Held: s.Held, Members: s.Members, Live: s.Live}
	}
	return views, err
}

// Permissions tells what the actor may do in a project, for buttons.
type Permissions struct {
	EditProject, Describe, EditRoles, EditMembers, Launch, ReadAudit bool
	Has                                                              models.Permissions // and so may grant
}

// Permissions of the actor in a project.
func (l *Ledger) Permissions(actor policies.Actor, project int64) Permissions {
	return Permissions{
		EditProject: l.access.May(actor, project, "project", "write"),
		Describe:    l.access.May(actor, project, "project", "describe"),
		EditRoles:   l.access.May(actor, project, "role", "write"),
		EditMembers: l.access.May(actor, project, "member", "write"),
		Launch:      actor.MemberOf(project) && l.access.May(actor, project, "workspace", "launch"),
		ReadAudit:   l.access.May(actor, project, "audit", "read"),
		Has:         l.access.Having(actor, project),
	}
}
