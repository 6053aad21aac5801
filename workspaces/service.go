package workspaces

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/quota"
)

// Pool assigns shares of GPUs. Its methods run in the caller's transaction.
type Pool interface {
	Complete(q *models.Queries, d models.Demand) (models.Demand, error)
	Decision(q *models.Queries, w models.Workspace) (models.Decision, error)
	Decisions(q *models.Queries, project int64, demands []models.Demand) ([]models.Decision, error)
	Claim(q *models.Queries, w models.Workspace) (models.Decision, error)
	// Record saves a decision.
	Record(q *models.Queries, w models.Workspace, a models.Decision) error
	Release(q *models.Queries, workspace int64) error
	// QueueEntries returns the queue, with the current decision on each entry.
	QueueEntries(q *models.Queries) ([]models.QueueEntry, error)
}

// Ledger returns what a member uses and may use.
type Ledger interface {
	Use(q *models.Queries, project models.Project, member int64) (quota.Use, error)
}

// Storage returns the shared directories of a member's workspace, and creates
// those that are missing.
type Storage interface {
	EnsureMounts(ctx context.Context, h models.DirectoryUser) ([]models.Mount, error)
}

// Service launches and stops workspaces. It writes the desired state, which the
// reconciler then establishes.
type Service struct {
	store  *models.Store
	access *policies.Access
	pool   Pool
	ledger Ledger
	resync func()

	admissions *models.Cache[admissionKey, models.Admission]
}

// NewService returns a service that calls resync after each commit that the
// reconciler acts on.
func NewService(store *models.Store, access *policies.Access, pool Pool, ledger Ledger, resync func()) *Service {
	return &Service{store: store, access: access, pool: pool, ledger: ledger, resync: resync,
		admissions: models.NewCache[admissionKey, models.Admission](store, models.MaxCached)}
}

// Behavior of a launch when the pool cannot satisfy the demand now.
const (
	WhenShortRefuse = "refuse" // change nothing and return what is available
	WhenShortFewer  = "fewer"  // use fewer GPU cores
	WhenShortWait   = "wait"   // join the queue
)

// LaunchInput describes a workspace to launch.
type LaunchInput struct {
	ProjectID     int64                   `json:"project_id" minimum:"1"`
	EnvironmentID int64                   `json:"environment_id,omitempty" minimum:"0" doc:"environment ID; absent for the best match of the version constraints"`
	Versions      string                  `json:"versions,omitempty" maxLength:"1000" doc:"version constraints, such as python>=3.11, torch"`
	Name          string                  `json:"name,omitempty" maxLength:"100" doc:"workspace name; default notebook"`
	Request       models.LaunchParameters `json:"request,omitempty"`
	WhenShort     string                  `json:"when_short,omitempty" enum:"refuse,fewer,wait" doc:"behavior on insufficient capacity: refuse (default), accept fewer cores, or wait in the queue"`
}

func (in *LaunchInput) check() ([]VersionConstraint, error) {
	var p models.Problems
	in.Name = models.CheckName("name", cmp.Or(in.Name, "notebook"), &p)
	in.Request.Check("", &p)
	in.WhenShort = cmp.Or(in.WhenShort, WhenShortRefuse)
	if !slices.Contains([]string{WhenShortRefuse, WhenShortFewer, WhenShortWait}, in.WhenShort) {
		p.Add("when_short", "must be refuse, fewer or wait")
	}
	constraints, err := ParseVersionConstraints("versions", in.Versions)
	var refused *models.Error
	if errors.As(err, &refused) {
		p = append(p, refused.Fields...)
	}
	return constraints, p.Err()
}

// Short is the error of a launch that the pool cannot satisfy now, with the
// decision, which contains the alternatives.
type Short struct {
	Refusal  *models.Error
	Decision models.Decision
}

func (s *Short) Error() string { return s.Refusal.Error() }

func (s *Short) Unwrap() error { return s.Refusal }

// maxLive is the maximum of live workspaces of a member in a project. It includes
// queued ones, so that no member can fill the queue.
const maxLive = 20

// launchPlan is a launch before its commit.
type launchPlan struct {
	project models.Project
	member  models.Member
	use     quota.Use
	env     models.Environment
	target  Target
}

// Launch starts a workspace, or queues it if in.WhenShort allows that. If the
// demand cannot be satisfied now and in.WhenShort is refuse, the error is a
// *Short.
func (s *Service) Launch(ctx context.Context, actor policies.Actor, in LaunchInput) (w models.Workspace, err error) {
	var short *Short
	err = s.access.Write(ctx, s.store, actor, in.ProjectID, policies.WorkspaceLaunch, func(q *models.Queries) error {
		constraints, err := in.check()
		if err != nil {
			return err
		}
		short = nil
		project, err := q.LockProject(actor.Scope(), in.ProjectID)
		if err != nil {
			return err
		}
		p, err := s.plan(q, actor, project, in, constraints)
		if err != nil {
			return err
		}
		if err := checkFits(p.target.Demand, p.use); err != nil {
			return err
		}
		if err := checkActiveCount(q, p.member); err != nil {
			return err
		}
		w = newWorkspace(q, actor, p, in)
		if err := s.launch(q, &w, p, in.WhenShort); err != nil {
			errors.As(err, &short)
			return err
		}
		return actor.Audit(q, policies.Change{Action: "launch", Object: "workspace", ID: w.ID, Project: w.ProjectID,
			After: map[string]any{"name": w.Name, "state": w.State, "demand": w.Demand}})
	})
	if short != nil {
		return w, errors.Join(short, s.recordRefusal(ctx, w, short.Decision))
	}
	if err == nil {
		s.resync()
	}
	return w, err
}

func checkActiveCount(q *models.Queries, m models.Member) error {
	n, err := q.CountLiveOf(m.ID)
	if err == nil && n >= maxLive {
		err = models.NoCapacity("", "You have %d workspaces running or waiting in this project; the maximum is %d. Stop one first.", n, maxLive)
	}
	return err
}

// recordRefusal records unmet demand, for capacity planning.
func (s *Service) recordRefusal(ctx context.Context, w models.Workspace, a models.Decision) error {
	w.ID = 0
	a.Outcome = models.OutcomeRefused
	return s.store.InTx(ctx, func(q *models.Queries) error { return s.pool.Record(q, w, a) })
}

// plan determines member, environment and target launch parameters of a launch.
func (s *Service) plan(q *models.Queries, actor policies.Actor, project models.Project, in LaunchInput, constraints []VersionConstraint) (p launchPlan, err error) {
	p.project = project
	if p.member, p.use, err = s.membership(q, actor, project); err != nil {
		return p, err
	}
	if !project.Active(q.Now()) {
		return p, models.Forbidden("The project is not within its period of use.")
	}
	candidates, err := s.candidates(q, in.EnvironmentID, constraints, p.use.Limit)
	if err != nil {
		return p, err
	}
	if err := p.choose(candidates, in.Request); err != nil {
		return p, err
	}
	return p, s.complete(q, &p)
}

// choose selects the first environment that fits the request. If there is none,
// it returns the error of the first.
func (p *launchPlan) choose(candidates []models.Environment, request models.LaunchParameters) error {
	var first error
	for _, e := range candidates {
		target, err := MergeParameters(Layers{Project: p.project.Launch, Environment: e.Launch, Minimum: e.Minimum,
			DefaultPath: e.DefaultPath, Limit: p.use.Limit, Request: request})
		if err == nil {
			p.env, p.target = e, target
			return nil
		}
		first = cmp.Or(first, err)
	}
	return first
}

// membership returns the actor's active membership in a project, and what it uses
// and may use. Only a membership gives resources, also to administrators.
func (s *Service) membership(q *models.Queries, actor policies.Actor, project models.Project) (m models.Member, use quota.Use, err error) {
	m, err = q.Membership(project.ID, actor.User.ID)
	if err != nil || !m.Active(q.Now()) {
		return m, use, cmp.Or[error](onlyInternal(err), models.Forbidden("You are not a member of this project and have no resources in it."))
	}
	use, err = s.ledger.Use(q, project, m.ID)
	return m, use, err
}

// complete sets GPU memory that was not specified, within the role's limit.
func (s *Service) complete(q *models.Queries, p *launchPlan) error {
	d := p.target.Demand
	open := d.GPUs > 0 && d.GPUMemoryMiB == 0
	d, err := s.pool.Complete(q, d)
	if open {
		// Not 0, which the pool would complete in proportion to the cores.
		d.GPUMemoryMiB = max(min(d.GPUMemoryMiB, p.use.Limit.GPUMemoryMiB/d.GPUs), 1)
	}
	p.target.setDemand(d)
	return err
}

// onlyInternal returns err if it is internal: the caller replaces other kinds.
func onlyInternal(err error) error {
	if err != nil && models.KindOf(err) == models.KindInternal {
		return err
	}
	return nil
}

// candidates returns the environments that a launch can use, best first: the one
// with the ID, or, for 0, all that fit. The result is not empty without an error.
func (s *Service) candidates(q *models.Queries, id int64, constraints []VersionConstraint, limit models.Resources) ([]models.Environment, error) {
	all, err := q.Environments()
	if err != nil {
		return nil, err
	}
	fitting, refused := MatchEnvironments(all, constraints, limit)
	var list []models.Environment
	for _, m := range fitting {
		if id == 0 || m.Environment.ID == id {
			list = append(list, m.Environment)
		}
	}
	for _, m := range refused {
		if m.Environment.ID == id {
			return nil, models.Invalid("environment_id", "is not suitable: %s", m.Reasons[0])
		}
	}
	switch {
	case len(list) > 0:
		return list, nil
	case id == 0:
		return nil, models.Invalid("versions", "match none of the %d environments", len(refused))
	default:
		return nil, models.Invalid("environment_id", "is not in the catalog")
	}
}

// checkFits checks that the demand and what is in use are within limit and quota.
func checkFits(d models.Demand, use quota.Use) error {
	var p models.Problems
	for _, e := range use.ExceededBy(d.Resources()) {
		p.Add(demandField(e.Name), "%s: %s in use, %s requested, limit %s; %s remaining", e.Label, models.Quantity(e.Name, e.Taken),
			models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Bound), models.Quantity(e.Name, e.Remaining))
	}
	if len(p) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This exceeds the remaining limit or quota."), Fields: p}
}

func newWorkspace(q *models.Queries, actor policies.Actor, p launchPlan, in LaunchInput) models.Workspace {
	return models.Workspace{ProjectID: p.project.ID, MemberID: p.member.ID, UserID: actor.User.ID, EnvironmentID: p.env.ID,
		Name: in.Name, State: models.StateRequested, Demand: p.target.Demand, Target: p.target.Parameters,
		Secret: policies.NewSecret(), Version: 1, RequestedAt: q.Now()}
}

// launch inserts w and claims its shares, queues it, or returns a *Short.
func (s *Service) launch(q *models.Queries, w *models.Workspace, p launchPlan, whenShort string) error {
	if err := q.CreateWorkspace(w, models.Say("Requested: %s.", describe(w.Demand))); err != nil {
		return err
	}
	a, err := s.pool.Claim(q, *w)
	if err != nil {
		return err
	}
	a = withMinimum(a, p.env.Minimum)
	if a.Outcome == models.OutcomePartial && whenShort == WhenShortFewer {
		if err := s.takeFewer(q, w, p, &a); err != nil {
			return err
		}
	}
	switch {
	case a.Outcome == models.OutcomeGranted || (a.Outcome == models.OutcomePartial && whenShort == WhenShortFewer):
		return schedule(q, s.pool, w, a)
	case a.Outcome != models.OutcomeRefused && whenShort == WhenShortWait:
		a.Outcome = models.OutcomeDelayed
		w.State, w.Reason = models.StateQueued, a.Explanation
		if err := q.Transition(w, models.StateRequested, models.Say("Queued: %s.", a.Explanation)); err != nil {
			return err
		}
		return s.pool.Record(q, *w, a)
	default:
		return &Short{Decision: a, Refusal: shortError(a, w.Demand)}
	}
}

// withMinimum removes an alternative below the environment's minimum.
func withMinimum(a models.Decision, m models.Minimum) models.Decision {
	if a.Fewer != nil && (a.Fewer.Cores < m.Cores || a.Fewer.GPUMemoryMiB < m.GPUMemoryMiB) {
		a.Outcome, a.Fewer, a.Grants = models.OutcomeDelayed, nil, nil
	}
	return a
}

func (s *Service) takeFewer(q *models.Queries, w *models.Workspace, p launchPlan, a *models.Decision) error {
	w.Demand = *a.Fewer
	p.target.setDemand(w.Demand)
	w.Target = p.target.Parameters
	got, err := s.pool.Claim(q, *w)
	if err == nil && got.Outcome != models.OutcomeGranted {
		err = models.Conflict("The pool has changed. Try again.")
	}
	got.Outcome = models.OutcomePartial
	*a = got
	return err
}

func shortError(a models.Decision, d models.Demand) *models.Error {
	switch a.Outcome {
	case models.OutcomePartial:
		return models.NoCapacity("cores", "Only %d of %d cores per GPU are available now. Accept fewer cores, join the queue, or cancel.", a.Fewer.Cores, d.Cores)
	case models.OutcomeDelayed:
		return models.NoCapacity("cores", "The requested resources are not available now (%s). Join the queue or cancel.", a.Explanation)
	default:
		return models.NoCapacity("gpus", "The pool cannot satisfy this request: %s.", a.Explanation)
	}
}

func describe(d models.Demand) models.Text {
	if d.GPUs == 0 {
		return models.Say("%s CPU, %s memory, no GPU", models.Quantity("cpu_milli", d.CPUMilli), models.FormatMiB(d.MemoryMiB))
	}
	return models.Say("%s CPU, %s memory, %d × %d GPU cores with %s GPU memory", models.Quantity("cpu_milli", d.CPUMilli), models.FormatMiB(d.MemoryMiB),
		d.GPUs, d.Cores, models.FormatMiB(d.GPUMemoryMiB))
}

// Stop stops a workspace. A queued one ends at once; a running one is stopped by
// the reconciler, and its shares are released when it is gone.
func (s *Service) Stop(ctx context.Context, actor policies.Actor, id int64) (w models.Workspace, err error) {
	if w, err = s.authorize(ctx, actor, id, policies.WorkspaceStop); err != nil {
		return w, err
	}
	err = s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceStop, func(q *models.Queries) error {
		if _, err := q.LockProject(models.AllProjects, w.ProjectID); err != nil {
			return err
		}
		if w, err = q.Workspace(models.AllProjects, id); err != nil {
			return err
		}
		if w.State.Ended() || w.State == models.StateStopping {
			return models.Conflict("This workspace is already %s.", w.State.Words())
		}
		return stopWorkspace(q, actor, &w, models.Say("Stopped by %s.", actor.Label()))
	})
	if err == nil {
		s.resync()
	}
	return w, err
}

// stopWorkspace moves w to stopping, or to stopped if it has no shares.
func stopWorkspace(q *models.Queries, actor policies.Actor, w *models.Workspace, why models.Text) error {
	from := w.State
	w.State, w.Reason = models.StateStopping, why
	if !from.UsesResources() {
		now := q.Now()
		w.State, w.EndedAt = models.StateStopped, &now
	}
	if err := q.Transition(w, from, why); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "stop", Object: "workspace", ID: w.ID, Project: w.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": w.State}})
}

// authorize returns a workspace for which the actor has the permission. A
// workspace that the actor may not see does not exist.
func (s *Service) authorize(ctx context.Context, actor policies.Actor, id int64, right policies.Right) (models.Workspace, error) {
	w, err := s.store.Read(ctx).Workspace(actor.Scope(), id)
	switch {
	case !actor.SignedIn():
		return w, s.access.Check(actor, policies.Platform, right)
	case err != nil:
		return w, err
	case s.access.MayOwned(actor, w.UserID, w.ProjectID, right):
		return w, nil
	default:
		return w, s.access.Check(actor, w.ProjectID, right)
	}
}

// Activity records that a workspace was used now, at most once a minute.
func (s *Service) Activity(ctx context.Context, id int64) error {
	w, err := s.store.Read(ctx).Workspace(models.AllProjects, id)
	now := s.store.Now()
	if err != nil || (w.ActiveAt != nil && now.Sub(*w.ActiveAt) < time.Minute) {
		return err
	}
	return s.store.InTx(ctx, func(q *models.Queries) error { return q.TouchActivity(id, now) })
}
