package projects

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// ProjectInput describes a project, to create or to replace it.
type ProjectInput struct {
	Name        string                  `json:"name" maxLength:"100"`
	Description string                  `json:"description,omitempty" maxLength:"2000"`
	Quota       models.ResourcesInput   `json:"quota,omitempty" doc:"absent amounts are filled in from the pool: GPU cores that no quota allocates, GPU memory in proportion to the cores, CPU, memory and storage as the machines' share per GPU"`
	StartsAt    *time.Time              `json:"starts_at,omitempty" doc:"start of the period of use; absent for now"`
	EndsAt      *time.Time              `json:"ends_at,omitempty" doc:"end of the period of use; absent if open-ended"`
	Launch      models.LaunchParameters `json:"launch,omitempty" doc:"initial launch parameters"`
	Outgoing    *models.Outgoing        `json:"outgoing,omitempty" doc:"absent: all machines for a new project, otherwise unchanged"`
	Priority    int64                   `json:"priority,omitempty" minimum:"0" maximum:"100" doc:"queue priority, 1 to 100, higher is scheduled first; 0 or absent: 50 for a new project, otherwise unchanged"`
	Version     int64                   `json:"-"`
	Confirmation
}

// Check validates and normalizes the input.
func (in *ProjectInput) Check(now time.Time) error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Description = models.CheckText("description", in.Description, 2000, &p)
	in.Quota.Check("quota", &p)
	in.Launch.Check("launch", &p)
	in.Reason = models.CheckText("reason", in.Reason, 2000, &p)
	if in.Outgoing != nil {
		in.Outgoing.Check("outgoing", &p)
	}
	if in.Priority < 0 || in.Priority > 100 {
		p.Add("priority", "must be from 1 to %d", 100)
	}
	normalizeTime("starts_at", &in.StartsAt, &p)
	normalizeTime("ends_at", &in.EndsAt, &p)
	if in.EndsAt != nil && !in.EndsAt.After(*cmp.Or(in.StartsAt, &now)) {
		p.Add("ends_at", "must be after the start of the period of use")
	}
	return p.Err()
}

// InputOf is the input of an unchanged project.
func InputOf(p models.Project) ProjectInput {
	return ProjectInput{Name: p.Name, Description: p.Description, Quota: p.Quota.Input(), StartsAt: &p.StartsAt, EndsAt: p.EndsAt,
		Launch: p.Launch, Outgoing: &p.Outgoing, Priority: p.Priority}
}

// CreateProject adds a project.
func (s *Service) CreateProject(ctx context.Context, actor policies.Actor, in ProjectInput) (p models.Project, err error) {
	err = s.access.Write(ctx, s.store, actor, policies.Platform, policies.ProjectWrite, func(q *store.Queries) (err error) {
		p, err = s.Within(q, actor).CreateProject(in)
		return err
	})
	if err == nil {
		s.MakeProjectDirectories(ctx, p.ID)
	}
	return p, err
}

// CreateProject adds a project.
func (e Editor) CreateProject(in ProjectInput) (p models.Project, err error) {
	now := e.q.Now()
	if err := in.Check(now); err != nil {
		return p, err
	}
	if err := e.LockCapacity(); err != nil {
		return p, err
	}
	total, _, err := e.FillQuota(in.Quota, models.Project{})
	if err != nil {
		return p, err
	}
	p = models.Project{Name: in.Name, Description: in.Description, Quota: total, StartsAt: *cmp.Or(in.StartsAt, &now), EndsAt: in.EndsAt,
		Launch: in.Launch, Outgoing: *cmp.Or(in.Outgoing, &models.Outgoing{Access: models.OutgoingAll}),
		Priority: cmp.Or(in.Priority, models.DefaultPriority), Version: 1, CreatedAt: now}
	audited, err := e.confirmed(models.Project{}, p, in.Confirmation)
	if err != nil {
		return p, err
	}
	if err := e.q.CreateProject(&p); err != nil {
		return p, err
	}
	audited.Project = p
	return p, e.actor.Audit(e.q, policies.Change{Action: "create", Object: "project", ID: p.ID, Project: p.ID, After: audited})
}

// UpdateProject replaces a project. An actor who may only describe the project can
// change its name, description and launch parameters except environment variables,
// which could run programs in the workspaces of others; the rest must be absent or
// unchanged. A quota below the allocated limits or the use is refused.
func (s *Service) UpdateProject(ctx context.Context, actor policies.Actor, id int64, in ProjectInput) (p models.Project, err error) {
	right := policies.ProjectDescribe
	whole := s.access.May(actor, id, policies.ProjectWrite)
	if whole {
		right = policies.ProjectWrite
	}
	err = s.edit(ctx, actor, id, right, func(e Editor, before models.Project) (err error) {
		in := in
		if !whole {
			if in, err = in.describing(before); err != nil {
				return err
			}
		}
		p, err = e.UpdateProject(before, in)
		return err
	})
	return p, err
}

// describing is the input with the quota, period, outgoing connections, priority and environment
// variables of p. It refuses other values.
func (in ProjectInput) describing(p models.Project) (ProjectInput, error) {
	e := models.Forbidden("Only platform administrators can change the quota, period of use, outgoing connections, priority and environment variables of a project. Submit a request instead.")
	differs := func(name string, given bool) {
		if given {
			e.Fields = append(e.Fields, models.Field{Name: name, Reason: models.Say("can be changed only by a platform administrator")})
		}
	}
	for i, given := range in.Quota.Amounts() {
		a := p.Quota.Amounts()[i]
		differs("quota."+a.Name, given != nil && *given != a.Value)
	}
	differs("starts_at", in.StartsAt != nil && !in.StartsAt.Equal(p.StartsAt))
	differs("ends_at", in.EndsAt != nil && (p.EndsAt == nil || !in.EndsAt.Equal(*p.EndsAt)))
	if in.Outgoing != nil {
		o := models.Outgoing{Access: in.Outgoing.Access, Hosts: slices.Clone(in.Outgoing.Hosts)}
		o.Check("outgoing", &models.Problems{})
		differs("outgoing", !o.Equal(p.Outgoing))
	}
	differs("priority", in.Priority != 0 && in.Priority != p.Priority)
	differs("launch.env", len(in.Launch.Env) > 0 && !maps.Equal(in.Launch.Env, p.Launch.Env))
	in.Quota, in.StartsAt, in.EndsAt, in.Priority, in.Launch.Env = p.Quota.Input(), &p.StartsAt, p.EndsAt, p.Priority, p.Launch.Env
	in.Outgoing = &p.Outgoing
	if len(e.Fields) > 0 {
		return in, e
	}
	return in, nil
}

// UpdateProject replaces a project's description, quota and period.
func (e Editor) UpdateProject(p models.Project, in ProjectInput) (models.Project, error) {
	if err := models.CheckVersion("project", in.Version, p.Version); err != nil {
		return p, err
	}
	before := p
	in.StartsAt = cmp.Or(in.StartsAt, &before.StartsAt)
	if err := in.Check(e.q.Now()); err != nil {
		return p, err
	}
	if in.Quota.Open() {
		if err := e.LockCapacity(); err != nil {
			return p, err
		}
	}
	total, _, err := e.FillQuota(in.Quota, before)
	if err != nil {
		return p, err
	}
	p.Name, p.Description, p.Quota, p.Launch = in.Name, in.Description, total, in.Launch
	p.Outgoing, p.Priority = *cmp.Or(in.Outgoing, &before.Outgoing), cmp.Or(in.Priority, p.Priority)
	p.StartsAt, p.EndsAt = *in.StartsAt, in.EndsAt
	if err := checkQuota(e.q, p); err != nil {
		return p, err
	}
	audited, err := e.confirmed(before, p, in.Confirmation)
	if err != nil {
		return p, err
	}
	if err := e.q.UpdateProject(&p); err != nil {
		return p, err
	}
	audited.Project = p
	return p, e.actor.Audit(e.q, policies.Change{Action: "update", Object: "project", ID: p.ID, Project: p.ID, Before: before, After: audited})
}

// ProjectView is a project with its allocation and use.
type ProjectView struct {
	models.Project
	Allocated        models.Resources // sum of the members' limits
	InUse            models.Resources // by workspaces and of storage by files, now
	Members          int64            // current ones
	ActiveWorkspaces int64            // workspaces that have not ended
}

// Project finds a project.
func (s *Service) Project(ctx context.Context, actor policies.Actor, id int64) (v ProjectView, err error) {
	if err := s.access.Check(actor, id, policies.ProjectRead); err != nil {
		return v, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		p, err := q.Project(actor.Scope(), id)
		if err != nil {
			return err
		}
		views, err := viewsOf(q, p)
		v = views[0]
		return err
	})
	return v, err
}

// viewsOf adds the allocation and use of projects.
func viewsOf(q *store.Queries, projects ...models.Project) ([]ProjectView, error) {
	ids := models.Map(projects, func(p models.Project) int64 { return p.ID })
	sums, err := q.ProjectSums(ids)
	views := make([]ProjectView, len(projects))
	for i, p := range projects {
		s := sums[p.ID]
		views[i] = ProjectView{Project: p, Allocated: s.Allocated, InUse: s.InUse, Members: s.Members, ActiveWorkspaces: s.ActiveWorkspaces}
	}
	return views, err
}
