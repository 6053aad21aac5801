package workspaces

import (
	"cmp"
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/quota"
)

// Pool decides who gets which shares of GPUs. Its methods work within the
// caller's transaction.
type Pool interface {
	Complete(q *models.Queries, d models.Demand) (models.Demand, error)
	Decision(q *models.Queries, w models.Workspace) (models.Decision, error)
	Decisions(q *models.Queries, project int64, demands []models.Demand) ([]models.Decision, error)
	Claim(q *models.Queries, w models.Workspace) (models.Decision, error)
	// Record keeps a decision.
	Record(q *models.Queries, w models.Workspace, a models.Decision) error
	Release(q *models.Queries, workspace int64) error
	// QueueEntries is the queue, with what the pool decides of each now.
	QueueEntries(q *models.Queries) ([]models.QueueEntry, error)
}

// Ledger tells what a member may still use.
type Ledger interface {
	Use(q *models.Queries, project models.Project, member int64) (quota.Use, error)
}

// Storage says which shared directories a member's workspace sees, making
// those that are missing.
type Storage interface {
	Mounts(ctx context.Context, h models.Holder) ([]Mount, error)
}

// Service launches and stops workspaces. It writes the wanted state; the
// reconciler brings it about.
type Service struct {
	store  *models.Store
	access *policies.Access
	pool   Pool
	ledger Ledger
	resync func()
}

// NewService makes the service. resync asks the reconciler for a round.
func NewService(store *models.Store, access *policies.Access, pool Pool, ledger Ledger, resync func()) *Service {
	return &Service{store: store, access: access, pool: pool, ledger: ledger, resync: resync}
}

// What to do when the pool cannot meet a demand now.
const (
	WhenShortRefuse = "refuse" // change nothing and say what could be had
	WhenShortFewer  = "fewer"  // take fewer GPU cores now
	WhenShortWait   = "wait"   // wait for others to release
)

// LaunchInput asks for a workspace.
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
	if in.Name == "" {
		in.Name = "notebook"
	}
	in.Name = models.CheckName("name", in.Name, &p)
	in.Request.Check("", &p)
	switch in.WhenShort {
	case "":
		in.WhenShort = WhenShortRefuse
	case WhenShortRefuse, WhenShortFewer, WhenShortWait:
	default:
		p.Add("when_short", "must be refuse, fewer or wait")
	}
	constraints, err := ParseVersionConstraints("versions", in.Versions)
	var refused *models.Error
	if errors.As(err, &refused) {
		p = append(p, refused.Fields...)
	}
	return constraints, p.Err()
}

// Short is the refusal of a demand that the pool cannot meet now, with what
// it could do instead.
type Short struct {
	Refusal  *models.Error
	Decision models.Decision
}

func (s *Short) Error() string { return s.Refusal.Error() }

// Unwrap lets errors.As find the *models.Error inside.
func (s *Short) Unwrap() error { return s.Refusal }

// maxLive bounds a member's live workspaces in a project, waiting ones
// included, so that nobody can fill the queue.
const maxLive = 20

// launchPlan is a launch that is worked out but not committed.
type launchPlan struct {
	project models.Project
	member  models.Member
	use     quota.Use
	env     models.Environment
	target  Target
}

// Launch starts a workspace, or queues it, as in.WhenShort says. When the
// demand cannot be met now and neither was chosen, the error is a *Short.
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
		if err := checkLiveCount(q, p.member); err != nil {
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

func checkLiveCount(q *models.Queries, m models.Member) error {
	n, err := q.CountLiveOf(m.ID)
	if err == nil && n >= maxLive {
		err = models.NoCapacity("", "You have %d workspaces running or waiting in this project; the maximum is %d. Stop one first.", n, maxLive)
	}
	return err
}

// recordRefusal records unmet demand for the administrators.
func (s *Service) recordRefusal(ctx context.Context, w models.Workspace, a models.Decision) error {
	w.ID = 0
	a.Outcome = models.OutcomeRefused
	return s.store.InTx(ctx, func(q *models.Queries) error { return s.pool.Record(q, w, a) })
}

// plan finds member, environment and target parameters of a launch.
func (s *Service) plan(q *models.Queries, actor policies.Actor, project models.Project, in LaunchInput, constraints []VersionConstraint) (p launchPlan, err error) {
	p.project = project
	now := q.Now()
	if p.member, err = membership(q, project.ID, actor.User.ID); err != nil {
		return p, err
	}
	if !project.Active(now) {
		return p, models.Forbidden("The project is not within its period of use.")
	}
	if p.use, err = s.ledger.Use(q, project, p.member.ID); err != nil {
		return p, err
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

// choose takes the first environment that fits the request; when none does,
// the error is that of the best one.
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

// membership finds the user's active place in a project, without which no
// role gives resources: administrators launch as members too.
func membership(q *models.Queries, project, user int64) (models.Member, error) {
	m, err := q.Membership(project, user)
	if err != nil || !m.Active(q.Now()) {
		return m, cmp.Or[error](onlyInternal(err), models.Forbidden("You are not a member of this project and have no resources in it."))
	}
	return m, nil
}

// complete fills in GPU memory that nobody named, within the role's peak.
func (s *Service) complete(q *models.Queries, p *launchPlan) error {
	d := p.target.Demand
	open := d.GPUs > 0 && d.GPUMemoryMiB == 0
	d, err := s.pool.Complete(q, d)
	if open {
		// Not 0, which the pool would take for a share in proportion.
		d.GPUMemoryMiB = max(min(d.GPUMemoryMiB, p.use.Limit.GPUMemoryMiB/d.GPUs), 1)
	}
	p.target.setDemand(d)
	return err
}

// onlyInternal drops errors that the caller replaces by its own.
func onlyInternal(err error) error {
	if err != nil && models.KindOf(err) == models.KindInternal {
		return err
	}
	return nil
}

// candidates are the environments that a launch may use, best first: the one
// that was chosen, or all that fit; never none without an error.
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
	if len(list) > 0 {
		return list, nil
	}
	for _, m := range refused {
		if m.Environment.ID == id {
			return nil, models.Invalid("environment_id", "is not suitable: %s", m.Reasons[0])
		}
	}
	if id == 0 {
		return nil, models.Invalid("versions", "match none of the %d environments", len(refused))
	}
	return nil, models.Invalid("environment_id", "is not in the catalog")
}

// checkFits holds rule 2: what is asked, with what is in use, within limit and
// quota.
func checkFits(d models.Demand, use quota.Use) error {
	var p models.Problems
	for _, e := range use.ExceededBy(d.Resources()) {
		p.Add(demandField(e.Name), "%s: %s in use, %s requested, limit %s; %s remaining", e.Label, models.Quantity(e.Name, e.Taken),
			models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Bound), models.Quantity(e.Name, e.Remaining))
	}
	if len(p) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This exceeds your remaining quota."), Fields: p}
}

func newWorkspace(q *models.Queries, actor policies.Actor, p launchPlan, in LaunchInput) models.Workspace {
	return models.Workspace{ProjectID: p.project.ID, MemberID: p.member.ID, UserID: actor.User.ID, EnvironmentID: p.env.ID,
		Name: in.Name, State: models.StateRequested, Demand: p.target.Demand, Target: p.target.Parameters,
		Secret: policies.NewSecret(), Version: 1, RequestedAt: q.Now()}
}

// launch inserts w and takes its shares, or queues it, or refuses.
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
		err = s.markPlaced(q, w, a)
	case a.Outcome != models.OutcomeRefused && whenShort == WhenShortWait:
		a.Outcome = models.OutcomeDelayed
		err = s.enqueue(q, w, a)
	default:
		return &Short{Decision: a, Refusal: shortError(a, w.Demand)}
	}
	return cmp.Or(err, s.pool.Record(q, *w, a))
}

// withMinimum drops an offer of less than the environment needs.
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

func (s *Service) markPlaced(q *models.Queries, w *models.Workspace, a models.Decision) error {
	from := w.State
	w.State, w.Reason, w.Progress, w.Generation = models.StateStarting, models.Text{}, 0, w.Generation+1
	return q.Transition(w, from, models.Say("Scheduled. %s", a.Explanation))
}

func (s *Service) enqueue(q *models.Queries, w *models.Workspace, a models.Decision) error {
	w.State, w.Reason = models.StateQueued, a.Explanation
	return q.Transition(w, models.StateRequested, models.Say("Queued: %s.", a.Explanation))
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

// Stop asks a workspace to end. One that waits ends at once; one that runs is
// stopped by the reconciler and keeps its shares until it is gone.
func (s *Service) Stop(ctx context.Context, actor policies.Actor, id int64) (w models.Workspace, err error) {
	if w, err = s.authorize(ctx, actor, id, policies.WorkspaceStop); err != nil {
		return w, err
	}
	by := actor.Label()
	err = s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceStop, func(q *models.Queries) error {
		if _, err := q.LockProject(models.Everything, w.ProjectID); err != nil {
			return err
		}
		if w, err = q.Workspace(models.Everything, id); err != nil {
			return err
		}
		if w.State.Ended() || w.State == models.StateStopping {
			return models.Conflict("This workspace is already %s.", w.State.Words())
		}
		return stopWorkspace(q, actor, &w, models.Say("Stopped by %s.", by))
	})
	if err == nil {
		s.resync()
	}
	return w, err
}

// stopWorkspace moves w to stopping; one that has no shares has ended at once.
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

// authorize finds a workspace that the actor may do act to; what it may not even
// see does not exist.
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
	w, err := s.store.Read(ctx).Workspace(models.Everything, id)
	now := s.store.Now()
	if err != nil || (w.ActiveAt != nil && now.Sub(*w.ActiveAt) < time.Minute) {
		return err
	}
	return s.store.InTx(ctx, func(q *models.Queries) error { return q.TouchActivity(id, now) })
}
