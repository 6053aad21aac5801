package workspaces

import (
	"cmp"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// Behavior of a launch when what is available now is insufficient.
const (
	WhenInsufficientRefuse = "refuse" // change nothing and return what is available
	WhenInsufficientFewer  = "fewer"  // use fewer GPU cores
	WhenInsufficientWait   = "wait"   // join the queue
)

// LaunchInput describes a workspace to launch.
type LaunchInput struct {
	ProjectID          int64                   `json:"project_id" minimum:"1"`
	EnvironmentID      int64                   `json:"environment_id,omitempty" minimum:"0" doc:"environment ID; absent for the best match of the version constraints"`
	VersionConstraints string                  `json:"version_constraints,omitempty" maxLength:"1000" doc:"version constraints, such as python>=3.11, torch"`
	Name               string                  `json:"name,omitempty" maxLength:"100" doc:"workspace name; default notebook"`
	ModelPath          models.FilePath         `json:"model_path,omitempty" maxLength:"12288" doc:"percent-encoded path of a model; its manifest names the environment that it needs"`
	Request            models.LaunchParameters `json:"request,omitempty"`
	ReservationID      int64                   `json:"reservation_id,omitempty" minimum:"0" doc:"your active reservation in which the workspace runs; what is left of its GPUs is the default"`
	WhenInsufficient   string                  `json:"when_insufficient,omitempty" enum:"refuse,fewer,wait" doc:"behavior on insufficient capacity: refuse (default), accept fewer cores, or wait in the queue"`
}

// requests reports whether the launch requests anything beyond the defaults.
func (in LaunchInput) requests() bool {
	r := in.Request
	env := r.Env
	r.Env = nil
	return in.VersionConstraints != "" || in.ModelPath != "" || len(env) > 0 || !reflect.DeepEqual(r, models.LaunchParameters{})
}

// Check validates the input alone.
func (in LaunchInput) Check() error {
	_, err := in.normalize()
	return err
}

// normalize checks the input and sets what was left open to its default.
func (in *LaunchInput) normalize() ([]VersionConstraint, error) {
	var p models.Problems
	in.Name = models.CheckName("name", cmp.Or(in.Name, "notebook"), &p)
	in.Request.Check("", &p)
	in.WhenInsufficient = cmp.Or(in.WhenInsufficient, WhenInsufficientRefuse)
	if !slices.Contains([]string{WhenInsufficientRefuse, WhenInsufficientFewer, WhenInsufficientWait}, in.WhenInsufficient) {
		p.Add("when_insufficient", "must be refuse, fewer or wait")
	}
	constraints, err := ParseVersionConstraints("version_constraints", in.VersionConstraints)
	if invalid, ok := errors.AsType[*models.Error](err); ok {
		p = append(p, invalid.Fields...)
	}
	return constraints, p.Err()
}

// planInput is what a launch is planned from, as it is at one moment. Planning reads
// nothing else.
type planInput struct {
	launch           LaunchInput
	now              time.Time
	project          models.Project
	member           store.LaunchMember
	use              quota.Use
	environments     []models.Environment
	pool             models.Availability
	model            Model
	reservationError error                   // why the reservation cannot be used
	modelError       error                   // why the model cannot be used
	defaults         models.LaunchParameters // of the platform
	liveRuns         *int64                  // of the member, for a run; nil: a workspace is launched
	timeLimit        time.Duration           // of a run; 0: none
	liveDeployments  *int64                  // the same for a deployment
}

// readPlanInput reads it for a launch by the actor.
func (s *Service) readPlanInput(q *store.Queries, actor policies.Actor, project models.Project, launch LaunchInput, model Model,
	modelError error) (in planInput, err error) {
	in = planInput{launch: launch, now: q.Now(), project: project, model: model, modelError: modelError, defaults: s.Defaults}
	if in.member, in.use, err = membership(q, actor, project); err != nil {
		return in, err
	}
	if in.environments, err = q.Environments(); err != nil {
		return in, err
	}
	if in.pool, err = s.pool.Availability(q); err == nil && launch.ReservationID != 0 {
		in.reservationError, err = s.useReservation(q, &in)
	}
	return in, err
}

// useReservation makes a launch take its GPUs from a reservation; what is left of it is the
// default. The first error says why it cannot be used.
func (s *Service) useReservation(q *store.Queries, in *planInput) (unusable, err error) {
	r, err := activeReservation(q, in.launch.ReservationID, in.member.UserID, in.project.ID)
	if err != nil {
		internal := onlyInternal(err)
		return err, internal
	}
	request := &in.launch.Request
	asked := models.Demand{GPUs: given(request.GPUs), Cores: given(request.Cores), GPUMemoryMiB: given(request.GPUMemoryMiB)}
	most, decide, err := s.pool.Reserved(q, r.Reservation, asked)
	for _, x := range []struct {
		value **int64
		usual int64
	}{{&request.GPUs, most.GPUs}, {&request.Cores, most.Cores}, {&request.GPUMemoryMiB, most.GPUMemoryMiB}} {
		if *x.value == nil {
			*x.value = &x.usual
		}
	}
	if *request.GPUs < 1 {
		return models.Invalid("gpus", "must be at least %d", 1), nil
	}
	in.pool.Decide = func(_ models.Project, d models.Demand, _ time.Duration) models.Decision { return decide(d) }
	return nil, err
}

// activeReservation is a reservation that its user can use in a project; else the error is about reservation_id.
func activeReservation(q *store.Queries, id, user, project int64) (models.ReservationView, error) {
	r, err := q.Reservation(store.AllProjects, id)
	switch {
	case onlyInternal(err) != nil:
		return r, err
	case err != nil || r.UserID != user || r.ProjectID != project:
		return r, models.Invalid("reservation_id", "is not one of your reservations in this project")
	case r.State != models.ReservationActive:
		return r, models.Invalid("reservation_id", "the reservation is %s; only an active one can be used", r.State.Words())
	}
	return r, nil
}

// membership returns the actor's active membership in a project, and what it uses
// and may use. Only a membership gives resources, also to administrators.
func membership(q *store.Queries, actor policies.Actor, project models.Project) (m store.LaunchMember, use quota.Use, err error) {
	m, err = q.LaunchMember(project.ID, actor.User.ID)
	if err != nil || !m.Active(q.Now()) {
		return m, use, cmp.Or[error](onlyInternal(err), models.Forbidden("You are not a member of this project and have no resources in it."))
	}
	use, err = useOf(q, project, m.MemberView)
	return m, use, err
}

// useOf reads the use in one statement, so that its two sums agree: a workspace can
// end at any time. It cannot grow before the end of a transaction that has locked the
// project.
func useOf(q *store.Queries, p models.Project, m models.MemberView) (quota.Use, error) {
	inUse, err := q.InUseByMembers(p.ID)
	return quota.UseOf(p, m.ID, m.Limit, inUse), err
}

// onlyInternal returns err if it is internal: the caller replaces other kinds.
func onlyInternal(err error) error {
	if err != nil && models.KindOf(err) == models.KindInternal {
		return err
	}
	return nil
}

// Plan is what a launch does. A preview shows it, and the launch commits it.
type Plan struct {
	Projects []models.Project // in which the actor can launch now; in previews only

	Project     models.Project
	Role        string
	Use         quota.Use
	Matches     []Match
	Mismatches  []Mismatch
	Environment models.Environment // zero if none matches
	Model       Model
	Demand      models.Demand   // as requested
	Target      Target          // as launched, which may be with fewer cores
	Decision    models.Decision // on the requested demand; zero if it was not made
	Rejection   error           // why the launch is not allowed; nil if it is
	Refused     models.Demand   // of launch parameters that are not valid
	Requested   bool            // the member requested anything, so that the rejection can be due to it

	// State is the state of the launched workspace: starting, or queued; empty if the
	// pool cannot satisfy the demand now, see Insufficient.
	State models.WorkspaceState

	name           string
	canWait        bool            // in the queue
	launchDecision models.Decision // on the launched demand
}

// plan is the whole decision about a launch.
func plan(in planInput) (p Plan) {
	p = Plan{Project: in.project, Role: in.member.RoleName, Use: in.use, Model: in.model}
	constraints, err := in.launch.normalize()
	if err == nil {
		err = cmp.Or(in.modelError, in.reservationError)
	}
	needed, invalid := ParseVersionConstraints(modelParameter, in.model.Needs.VersionConstraints)
	if err == nil {
		err = invalid
	}
	constraints = append(constraints, needed...)
	p.name, p.Requested, p.canWait = in.launch.Name, in.launch.requests(), in.liveDeployments == nil
	p.Matches, p.Mismatches = MatchEnvironments(in.model.environments(in.environments), constraints, in.use.Limit)
	p.Matches, p.Mismatches = in.model.match(p.Matches, p.Mismatches)
	if in.liveRuns == nil && in.liveDeployments == nil {
		hasNotebook := func(e models.Environment) bool { return !e.NoNotebook }
		p.Matches, p.Mismatches = only(hasNotebook, models.Say("has no notebook server"), p.Matches, p.Mismatches)
	}
	if err == nil {
		err = in.project.CheckActive(in.now)
	}
	if err == nil {
		err = checkNotNone(in)
	}
	if err == nil {
		err = p.choose(in.launch, in.defaults, in.liveRuns == nil && in.liveDeployments == nil)
	}
	if p.Rejection = err; err != nil {
		return p
	}
	p.setGPUMemory(in.pool)
	p.Rejection = cmp.Or(checkHeadroom(p.Demand, in.use, in.launch.Request), in.checkCount())
	p.Decision = withMinimum(in.pool.Decide(in.project, p.Demand, in.timeLimit), p.Environment.Minimum)
	p.setState(in)
	return p
}

// checkNotNone refuses a launch that a quota or limit of 0 makes impossible, whatever is
// entered, and says who can change it.
func checkNotNone(in planInput) error {
	needs := models.Resources{CPUMilli: 1, MemoryMiB: 1}
	if r := in.launch.Request; positive(r.GPUs) || r.GPUs == nil && positive(r.Cores) {
		needs.GPUCores, needs.GPUMemoryMiB = 1, 1
	}
	if none := needs.Exceeding(in.use.Quota); len(none) > 0 {
		return models.NoCapacity("", "The project's quota is 0 for: %s. No workspace can start without it. Platform administrators can change the quota.", labels(none))
	}
	if none := needs.Exceeding(in.use.Limit); len(none) > 0 {
		return models.NoCapacity("", "The limit of the role %s is 0 for: %s. No workspace can start without it. The project's managers can change the limit.", in.member.RoleName, labels(none))
	}
	return nil
}

// labels names the resources of excesses.
func labels(list []models.Excess) models.Text {
	names := make([]models.Text, len(list))
	for i, e := range list {
		names[i] = e.Label
	}
	return listed(names)
}

// listed is a list of texts as one.
func listed(list []models.Text) (t models.Text) {
	for i, next := range list {
		if t = models.Say("%s, %s", t, next); i == 0 {
			t = next
		}
	}
	return t
}

func positive(n *int64) bool { return n != nil && *n > 0 }

// given is a number that was requested, otherwise 0.
func given(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// choose selects the best matching environment with which the launch parameters are
// valid, of all or of the requested one. If there is none, it returns the error of the
// first. Only a workspace with a notebook has a start page.
func (p *Plan) choose(in LaunchInput, defaults models.LaunchParameters, notebook bool) (err error) {
	for _, m := range p.Matches {
		e := m.Environment
		if in.EnvironmentID != 0 && e.ID != in.EnvironmentID {
			continue
		}
		target, invalid := MergeParameters(Layers{Platform: defaults, Project: p.Project.Launch, Environment: e.Launch, Minimum: e.Minimum,
			DefaultPath: e.DefaultPath, Limit: p.Use.Limit, Remaining: p.Use.Remaining(), Request: in.Request})
		if invalid == nil && notebook {
			invalid = checkStartPage(e, parameter(target.Parameters, "path"))
		}
		if invalid == nil {
			p.Environment, p.Target = e, target
			if p.Model.Path != "" {
				p.Target.Parameters = append(p.Target.Parameters, models.Parameter{Name: modelParameter, Value: string(p.Model.Path),
					Origin: OriginMember})
			}
			return nil
		}
		if err == nil {
			p.Refused = target.Demand
		}
		err = cmp.Or(err, invalid)
	}
	if err == nil {
		err = p.mismatchError(in)
	}
	return err
}

// checkStartPage refuses the page of a program that is known not to be there.
func checkStartPage(e models.Environment, path string) error {
	if models.AppOf(path) == models.VSCode && e.DiscoveredKey != nil && !e.Unchecked() && e.VersionOf(models.CodeServer) == "" {
		return models.Invalid("path", "VS Code is not installed in this environment; its start page is %s", e.DefaultPath)
	}
	known := e.DiscoveredKey != nil && !strings.HasPrefix(e.DefaultPath, "/lab")
	if known && strings.HasPrefix(path, "/lab") && e.VersionOf("jupyterlab") == "" {
		return models.Invalid("path", "JupyterLab is not installed in this environment; its start page is %s", e.DefaultPath)
	}
	return nil
}

// mismatchError is the error of a launch that no environment matches.
func (p *Plan) mismatchError(in LaunchInput) error {
	if err := p.Model.mismatch(p.Mismatches); err != nil && len(p.Matches) == 0 {
		return err
	}
	environment := in.EnvironmentID
	if environment == 0 {
		constraints, _ := ParseVersionConstraints("version_constraints", in.VersionConstraints) // they were read before
		for _, c := range constraints {
			mayHave := func(m Mismatch) bool { return m.Environment.Unchecked() || m.Environment.VersionOf(c.Name) != "" }
			if len(p.Mismatches) > 0 && !slices.ContainsFunc(p.Mismatches, mayHave) {
				return models.Invalid("version_constraints", "no environment has %s", c.Name)
			}
		}
		return models.Invalid("version_constraints", "match none of the %d environments", len(p.Mismatches))
	}
	i := slices.IndexFunc(p.Mismatches, func(m Mismatch) bool { return m.Environment.ID == environment })
	if i < 0 {
		return models.Invalid("environment_id", "is not in the catalog")
	}
	return models.InvalidFields(models.Field{Name: "environment_id", Reason: listed(p.Mismatches[i].Reasons)})
}

// setGPUMemory sets GPU memory that was not specified, within the role's limit.
func (p *Plan) setGPUMemory(pool models.Availability) {
	p.Demand = pool.WithGPUMemory(p.Target.Demand)
	if d := &p.Demand; d.GPUs > 0 && p.Target.Demand.GPUMemoryMiB == 0 {
		// Not 0, which the pool would replace in proportion to the cores.
		d.GPUMemoryMiB = max(min(d.GPUMemoryMiB, p.Use.Limit.GPUMemoryMiB/d.GPUs), 1)
	}
	p.Target.setDemand(p.Demand)
}

// checkHeadroom checks that the demand and what is in use are within limit and quota. Too
// many GPU cores are a problem of the GPUs where only their number was requested.
func checkHeadroom(d models.Demand, use quota.Use, request models.LaunchParameters) error {
	var p models.Problems
	for _, e := range use.ExceededBy(d.Resources()) {
		field := demandField(e.Name)
		if field == "cores" && request.Cores == nil && request.GPUs != nil {
			field = "gpus"
		}
		p = append(p, models.Field{Name: field, Reason: headroomText(e)})
	}
	if len(p) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This exceeds the remaining limit or quota."), Fields: p}
}

func headroomText(e quota.Excess) models.Text {
	taken, requested := models.Quantity(e.Name, e.Taken), models.Quantity(e.Name, e.Requested)
	bound, remaining := models.Quantity(e.Name, e.Bound), models.Quantity(e.Name, e.Remaining)
	if e.OfProject {
		return models.Say("%s: %s in use by the project, %s requested, quota of the project %s; %s remaining", e.Label, taken, requested, bound,
			remaining)
	}
	return models.Say("%s: %s in use, %s requested, limit of the role %s; %s remaining", e.Label, taken, requested, bound, remaining)
}

func (in planInput) checkCount() error {
	if in.liveDeployments != nil {
		return checkDeploymentCount(*in.liveDeployments)
	}
	if in.liveRuns != nil {
		return checkRunCount(*in.liveRuns)
	}
	return checkWorkspaceCount(in.member.ActiveWorkspaces)
}

// withMinimum removes an alternative below the environment's minimum.
func withMinimum(d models.Decision, m models.Minimum) models.Decision {
	if d.Fewer != nil && (d.Fewer.Cores < m.Cores || d.Fewer.GPUMemoryMiB < m.GPUMemoryMiB) {
		d.Outcome, d.Fewer, d.Grants = models.OutcomeDelayed, nil, nil
	}
	return d
}

// setState sets the state and the demand of the launch, by the pool's decision.
func (p *Plan) setState(in planInput) {
	p.launchDecision = p.Decision
	switch when := in.launch.WhenInsufficient; {
	case p.Decision.Outcome == models.OutcomeGranted:
		p.State = models.StateStarting
	case p.Decision.Outcome == models.OutcomePartial && when == WhenInsufficientFewer:
		p.State = models.StateStarting
		p.launchDecision = in.pool.Decide(in.project, *p.Decision.Fewer, in.timeLimit)
		p.launchDecision.Outcome = models.OutcomePartial
		p.Target.setDemand(*p.Decision.Fewer)
	case p.Decision.Outcome != models.OutcomeRefused && when == WhenInsufficientWait:
		p.State = models.StateQueued
		p.launchDecision.Outcome = models.OutcomeDelayed
	}
}

// Insufficient returns the error of a launch that the pool cannot satisfy now; nil if it is
// otherwise.
func (p Plan) Insufficient() *Insufficient {
	if p.State != "" || p.Decision.Outcome == "" {
		return nil
	}
	return &Insufficient{Decision: p.Decision, Err: insufficientError(p.Decision, p.Demand, p.canWait)}
}

// Insufficient is the error of a launch that the pool cannot satisfy now, with the
// decision, which contains the alternatives.
type Insufficient struct {
	Err      *models.Error
	Decision models.Decision
}

func (s *Insufficient) Error() string { return s.Err.Error() }

func (s *Insufficient) Unwrap() error { return s.Err }

// insufficientError says what can be done: what cannot wait in the queue is requested again.
func insufficientError(decision models.Decision, d models.Demand, canWait bool) *models.Error {
	fewer, later := models.Say("Request fewer cores, or deploy it later."), models.Say("Deploy it later.")
	if canWait {
		fewer, later = models.Say("Accept fewer cores, join the queue, or cancel."), models.Say("Join the queue or cancel.")
	}
	switch decision.Outcome {
	case models.OutcomePartial:
		return models.NoCapacity("cores", "Only %d of %d cores per GPU are available now. %s", decision.Fewer.Cores, d.Cores, fewer)
	case models.OutcomeDelayed:
		return models.NoCapacity("cores", "The requested resources are not available now (%s). %s", decision.Explanation, later)
	default:
		return models.NoCapacity("gpus", "The pool cannot satisfy this request: %s.", decision.Explanation)
	}
}
