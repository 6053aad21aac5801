package workspaces

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// DeployInput describes a deployment.
type DeployInput struct {
	ProjectID int64           `json:"project_id" minimum:"1" doc:"project ID"`
	Name      string          `json:"name,omitempty" maxLength:"100" doc:"name; default: that of the directory"`
	Path      models.FilePath `json:"path" minLength:"1" maxLength:"12288" doc:"percent-encoded path of the model's directory"`
	Parts     int64           `json:"parts,omitempty" minimum:"0" maximum:"64" doc:"number of parts; absent: as few as possible"`
	models.ServedInput
	EnvironmentID int64 `json:"environment_id,omitempty" minimum:"0" doc:"environment that runs the parts; absent: the first suitable one"`
	Cores         int64 `json:"cores,omitempty" minimum:"0" maximum:"100" doc:"GPU cores of each part, 1 to 100; default 100, or those of the reservation"`
	ReservationID int64 `json:"reservation_id,omitempty" minimum:"0" doc:"your active reservation in which the model is deployed; the deployment ends with it; absent: none"`
	ManualUpdates bool  `json:"manual_updates,omitempty" doc:"true: when the model's files change, they are deployed on request only"`

	IdleMinutes    int64                 `json:"idle_minutes,omitempty" minimum:"0" maximum:"525600" doc:"minutes without requests after which its GPUs are released, until the next request; absent: never"`
	UpdateStrategy models.UpdateStrategy `json:"update_strategy,omitempty" enum:"rolling,recreate" doc:"rolling: an update is deployed beside the deployment; recreate: the deployment is stopped first; default rolling"`
}

const (
	maxIdleMinutes    = 525_600 // a year
	partOverheadMiB   = 1024    // memory of a part's process besides its tensors
	partCPUMilli      = 1000    // of each part, if the limit allows it
	minPartCPUMilli   = 250
	deploymentKeySize = 32 // bytes
)

// Check validates and normalizes the input alone.
func (in *DeployInput) Check() error {
	var p models.Problems
	checkStrategy(in.UpdateStrategy, &p)
	in.UpdateStrategy = cmp.Or(in.UpdateStrategy, models.UpdateRolling)
	in.Name = models.CheckName("name", cmp.Or(in.Name, path.Base(in.Path.String())), &p)
	in.Batch = cmp.Or(in.Batch, 1)
	if in.ReservationID == 0 { // whose cores are the default otherwise
		in.Cores = cmp.Or(in.Cores, 100)
	}
	if in.Parts < 0 || in.Parts > models.MaxParts {
		p.Add("parts", "must be from 0 to %d", models.MaxParts)
	}
	if in.IdleMinutes < 0 || in.IdleMinutes > maxIdleMinutes {
		p.Add("idle_minutes", "must be from 0 to %d", int64(maxIdleMinutes))
	}
	if in.Cores < 0 || in.Cores > 100 {
		p.Add("cores", "must be from 1 to %d", 100)
	}
	return p.Err()
}

func checkStrategy(s models.UpdateStrategy, p *models.Problems) {
	if s != "" && s != models.UpdateRolling && s != models.UpdateRecreate {
		p.Add("update_strategy", "must be rolling or recreate")
	}
}

// Deploy plans a model on GPUs, and takes the shares of all its parts in one decision: all or
// none. The reconciler writes and starts the parts. If the pool cannot satisfy the demand now,
// the error is a *Insufficient.
func (s *Service) Deploy(ctx context.Context, actor policies.Actor, in DeployInput) (d models.Deployment, err error) {
	if err := actor.CheckUser(); err != nil {
		return d, err
	}
	if err := s.access.Check(actor, in.ProjectID, policies.WorkspaceLaunch); err != nil {
		return d, err
	}
	if err := in.Check(); err != nil {
		return d, err
	}
	return s.deploy(ctx, actor, in, nil)
}

// deploy deploys a model as its owner; update is nil, or commits what belongs to an update.
func (s *Service) deploy(ctx context.Context, owner policies.Actor, in DeployInput, update *deploymentUpdate) (
	d models.Deployment, err error) {
	if update == nil || update.fallback == nil { // which needs no space for parts
		if err := s.store.CheckSpace(); err != nil {
			return d, err
		}
	}
	if in.ReservationID != 0 {
		r, err := activeReservation(s.store.Read(ctx), in.ReservationID, owner.User.ID, in.ProjectID)
		if err != nil {
			return d, err
		}
		in.Cores = cmp.Or(in.Cores, r.Cores)
	}
	model, err := s.planned(ctx, owner, in, update)
	if err != nil {
		return d, err
	}
	secret := make([]byte, deploymentKeySize)
	if _, err := rand.Read(secret); err != nil {
		return d, err
	}
	d = models.Deployment{Name: in.Name, ServiceType: cmp.Or(model.Plan.ServiceType, string(model.Task)), Task: model.Task,
		Plan: model.Plan, Path: model.Path,
		Batch: in.Batch, Context: model.Context, Hidden: model.Hidden, Vocabulary: model.Vocabulary, TextPrompts: model.TextPrompts,
		Secret: hex.EncodeToString(secret), ManualUpdates: in.ManualUpdates, UpdateStrategy: in.UpdateStrategy, Files: model.Files,
		Request: models.DeployRequest{Parts: in.Parts, Cores: in.Cores, EnvironmentID: in.EnvironmentID, IdleMinutes: in.IdleMinutes,
			ServedInput: in.ServedInput}}
	if in.ReservationID != 0 {
		d.ReservationID = &in.ReservationID
	}
	var p Plan
	var refused *Insufficient
	err = s.access.Write(ctx, s.store, owner, in.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		project, err := q.Project(owner.Scope(), in.ProjectID) // which Write has locked
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		if err := s.begin(q, update, &d); err != nil {
			return err
		}
		planned, member, err := s.planDeployment(q, owner, project, in, model.Plan, 0)
		if err != nil {
			return err
		}
		p = planned
		if p.Rejection != nil {
			return p.Rejection
		}
		if refused = p.Insufficient(); refused != nil {
			refused.Err, _ = errors.AsType[*models.Error](rejectedParts(refused.Err))
			return refused
		}
		if update.tries() {
			return errUpdatable
		}
		d.MemberID, d.UserID = member, owner.User.ID
		if err := s.commitDeployment(q, update.actor(owner), &d, p); err != nil {
			return err
		}
		return update.record(q, d)
	})
	if refused != nil && update == nil && in.ReservationID == 0 {
		err = errors.Join(refused, s.recordUnmet(ctx, owner, p))
	}
	return d, err
}

// planned is the model as its present files are planned, or as it was for what is deployed again.
func (s *Service) planned(ctx context.Context, owner policies.Actor, in DeployInput, u *deploymentUpdate) (models.ServedModel, error) {
	if u != nil && u.fallback != nil {
		f := u.fallback
		return models.ServedModel{Path: f.Path, Plan: f.Plan, Hidden: f.Hidden, Vocabulary: f.Vocabulary, Context: f.Context,
			Task: f.Task, TextPrompts: f.TextPrompts, Files: f.Files}, nil
	}
	model, err := s.Served.Plan(ctx, owner, in.Path, in.Parts, in.ServedInput, models.DeviceQuery{ProjectID: in.ProjectID, Cores: in.Cores,
		Holder: u.releases(), ReservationID: in.ReservationID})
	if err != nil && u == nil {
		return model, models.NotFoundAs(err, models.Invalid("path", "was not found, or you cannot read it"))
	}
	if err != nil {
		err = &planError{err}
	}
	return model, err
}

// partMemory is the memory that each part needs on its GPU, with the margin, and on its machine, in MiB,
// both with what its process needs besides.
func partMemory(plan models.ModelPlan) (onGPU, onMachine int64) {
	for _, p := range plan.Parts {
		onGPU = max(onGPU, (p.Total/(100-plan.MarginPercent)*100)>>20+1+models.PartOverheadMiB)
		onMachine = max(onMachine, max(p.Total, p.Process)>>20+1+partOverheadMiB) // older plans have no Process
	}
	return onGPU, onMachine
}

// planDeployment plans a deployment as a launch is planned: with a GPU for each part. idle is one
// that is deployed again, and 0 otherwise.
func (s *Service) planDeployment(q *store.Queries, actor policies.Actor, project models.Project, in DeployInput, cut models.ModelPlan,
	idle int64) (p Plan, member int64, err error) {
	n := int64(len(cut.Parts))
	onGPU, onMachine := partMemory(cut)
	request := models.LaunchParameters{GPUs: &n, Cores: &in.Cores, GPUMemoryMiB: &onGPU, MemoryMiB: new(n * onMachine)}
	launch := LaunchInput{ProjectID: project.ID, EnvironmentID: in.EnvironmentID, Request: request, ReservationID: in.ReservationID,
		WhenInsufficient: WhenInsufficientRefuse}
	from, err := s.readPlanInput(q, actor, project, launch, Model{}, nil)
	if err != nil {
		return p, 0, err
	}
	if from.environments, err = computing(from.environments, in.EnvironmentID); err != nil {
		return p, 0, err
	}
	cpu := partsCPU(n, in.Cores, from.use)
	from.launch.Request.CPUMilli = new(max(cpu, from.environments[0].Minimum.CPUMilli)) // which no other one replaces for lack of it
	live, err := q.CountLiveDeployments(from.member.ID, idle)
	from.liveDeployments = &live
	p = plan(from)
	p.Rejection = cmp.Or(rejectedParts(p.Rejection), p.checkLibrary(in.EnvironmentID))
	return p, from.member.ID, err
}

// rejectedParts names fields of a deployment where those of a launch were rejected: all but cores are what
// the parts need.
func rejectedParts(err error) error {
	e, ok := errors.AsType[*models.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Fields = slices.Clone(e.Fields)
	for i, f := range e.Fields {
		if f.Name == "gpus" {
			named.Fields[i].Name = "parts"
		}
		for _, a := range (models.Resources{}).Amounts() {
			if a.Name != f.Name {
				continue
			}
			if named.Fields[i].Name = "parts"; e.Kind != models.KindNoCapacity { // which names the resource
				named.Fields[i].Reason = models.Say("%s: %s", a.Label, f.Reason)
			}
		}
	}
	return &named
}

// partsCPU is the CPU of some parts together: of the limit at most what a launch of as many GPU cores
// takes by default, and of what remains.
func partsCPU(parts, cores int64, use quota.Use) int64 {
	most := min(part(use.Limit.CPUMilli, parts*cores, use.Limit.GPUCores), use.Remaining().CPUMilli)
	return max(min(parts*partCPUMilli, most), parts*minPartCPUMilli)
}

// CanCompute reports whether an environment has what the parts of deployments compute with.
func CanCompute(e models.Environment) bool {
	return e.Unavailable.Empty() && (e.VersionOf("torch") != "" || e.VersionOf("numpy") != "")
}

// checkLibrary refuses an environment whose library would leave the GPUs of a deployment unused.
func (p *Plan) checkLibrary(requested int64) error {
	onGPU := func(g models.Grant) bool { return !g.Device.Simulated }
	switch {
	case !slices.ContainsFunc(p.launchDecision.Grants, onGPU) || p.Environment.VersionOf("torch") != "":
		return nil
	case requested == 0:
		return models.Conflict("No environment has PyTorch, without which the parts of a deployment do not compute on GPUs.")
	}
	return models.Invalid("environment_id", "has no PyTorch, without which the parts do not compute on GPUs")
}

// computing are the environments that can run the parts: those with PyTorch, if there are any. The error is
// about the requested one, or that there is none.
func computing(all []models.Environment, requested int64) (list []models.Environment, err error) {
	for _, e := range all {
		if CanCompute(e) {
			list = append(list, e)
		} else if e.ID == requested && !e.Unavailable.Empty() {
			return nil, models.Invalid("environment_id", "is not available: %s", e.Unavailable)
		} else if e.ID == requested {
			return nil, models.Invalid("environment_id", "has neither PyTorch nor NumPy, with which the parts compute")
		}
	}
	torch := func(e models.Environment) bool { return e.VersionOf("torch") != "" }
	if requested == 0 && slices.ContainsFunc(list, torch) {
		return slices.DeleteFunc(list, func(e models.Environment) bool { return !torch(e) }), nil
	}
	if len(list) == 0 {
		return nil, models.Conflict("No environment has PyTorch or NumPy, with which the parts of a deployment compute.")
	}
	return list, nil
}

// keptEnvironment is in which environment a deployment is deployed again from its parts: the requested one, or what
// it had while that can be used; 0: any.
func keptEnvironment(q *store.Queries, d models.Deployment) (int64, error) {
	if d.Request.EnvironmentID != 0 {
		return d.Request.EnvironmentID, nil
	}
	e, err := q.Environment(d.EnvironmentID)
	if err != nil || !CanCompute(e) {
		return 0, err
	}
	return e.ID, nil
}

// commitDeployment writes the planned deployment and takes its shares.
func (s *Service) commitDeployment(q *store.Queries, actor policies.Actor, d *models.Deployment, p Plan) error {
	d.ID, d.ProjectID, d.EnvironmentID = 0, p.Project.ID, p.Environment.ID
	d.State, d.Demand, d.Target, d.Version, d.RequestedAt = models.DeploymentDeploying, p.Target.Demand, p.Target.Parameters, 1, q.Now()
	message := models.Say("Requested: %s. %s", describe(p.Demand), p.launchDecision.Explanation)
	if err := q.CreateDeployment(d, len(d.Plan.Parts), message); err != nil {
		return err
	}
	if err := s.takeShares(q, *d, p); err != nil {
		return err
	}
	after := map[string]any{"name": d.Name, "path": d.Path, "parts": len(d.Plan.Parts), "demand": d.Demand}
	if d.FirstID != nil {
		after["first_id"] = *d.FirstID
	}
	return actor.Audit(q, policies.Change{Action: "launch", Object: "deployment", ID: d.ID, Project: d.ProjectID, After: after})
}

// takeShares takes the shares that a plan has found, and records the decision.
func (s *Service) takeShares(q *store.Queries, d models.Deployment, p Plan) error {
	c := d.Claim()
	if err := s.pool.Take(q, c.Holder, p.launchDecision); err != nil {
		return err
	}
	if d.ReservationID != nil {
		if err := q.UseReservation(*d.ReservationID, q.Now()); err != nil {
			return err
		}
	}
	return errors.Join(notifyNearlyUsed(q, c), s.pool.Record(q, c, p.launchDecision))
}

// StopDeployment stops a deployment, with what has taken its place, and an update that is being
// deployed. The shares of each are released together, when all its parts are gone.
func (s *Service) StopDeployment(ctx context.Context, actor policies.Actor, id int64) (d models.Deployment, err error) {
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return d, err
	}
	err = s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if _, err := q.LockProject(store.AllProjects, v.ProjectID); err != nil {
			return err
		}
		if d, err = q.LockDeployment(id); err != nil {
			return err
		}
		if d, err = current(q, d); err != nil {
			return err
		}
		if !canStop(d) {
			return models.Conflict("This deployment is already %s.", d.State.Words())
		}
		d.Updating, d.DrainsUntil = false, nil
		why := models.Say("Stopped by %s.", cmp.Or(actor.User.Name, actor.Label()))
		if err := stopDeployment(q, actor, &d, why); err != nil {
			return err
		}
		return stopOthers(q, actor, d, why)
	})
	return d, err
}

// canStop reports whether d is not stopped already. One that stops for its update can be
// stopped without.
func canStop(d models.Deployment) bool {
	return !d.State.Ended() && (d.State != models.DeploymentStopping || d.Updating)
}

// authorizeDeployment returns a deployment for which the actor has the permission. One that the
// actor may not see does not exist.
func (s *Service) authorizeDeployment(ctx context.Context, actor policies.Actor, id int64, right policies.Right) (
	models.DeploymentView, error) {
	d, err := s.store.Read(ctx).Deployment(actor.Scope(), id)
	switch {
	case !actor.SignedIn():
		return d, s.access.Check(actor, policies.Platform, right)
	case err != nil:
		return d, err
	default:
		return d, s.access.CheckOwned(actor, d.UserID, d.ProjectID, right)
	}
}

// DeploymentSummary is a deployment with its parts, and what the actor may do with it now.
type DeploymentSummary struct {
	models.DeploymentView
	Parts  []models.DeploymentPart
	Events []models.DeploymentEvent // of one deployment, not in lists
	// Devices are those of the parts, in their order; none without shares, and in lists.
	Devices []string
	// Reservation ends it; nil: none, and in lists.
	Reservation *models.ReservationGrant
	// CurrentID is the deployment that has taken the place of one; 0: none, and in lists.
	CurrentID int64
	CanStop   bool
}

func (s *Service) deploymentSummary(q *store.Queries, actor policies.Actor, d models.DeploymentView) (v DeploymentSummary, err error) {
	d.Secret = ""
	v = DeploymentSummary{DeploymentView: d, CanStop: canStop(d.Deployment) &&
		s.access.MayOwned(actor, d.UserID, d.ProjectID, policies.WorkspaceStop)}
	v.Parts, err = q.DeploymentParts(d.ID)
	return v, err
}

// ViewDeployment shows a deployment of a project that the actor may see.
func (s *Service) ViewDeployment(ctx context.Context, actor policies.Actor, id int64) (v DeploymentSummary, err error) {
	d, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceRead)
	if err != nil {
		return v, err
	}
	q := s.store.Read(ctx)
	if v, err = s.deploymentSummary(q, actor, d); err != nil {
		return v, err
	}
	if now, err := current(q, d.Deployment); err != nil {
		return v, err
	} else if now.ID != id {
		v.CurrentID = now.ID
	}
	if v.Devices, err = q.PartDevices(d.HolderID); err != nil {
		return v, err
	}
	if v.Events, err = q.DeploymentEvents(id); err == nil {
		v.Reservation, err = reservationOf(q, d.Deployment)
	}
	return v, err
}

// reservationOf is what of its reservation ends a deployment, all of it while it is idle; nil: it is in none.
func reservationOf(q *store.Queries, d models.Deployment) (*models.ReservationGrant, error) {
	if d.ReservationID == nil || d.State.Ended() {
		return nil, nil
	}
	grant, err := q.GrantInUse(d.HolderID)
	if models.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if err != nil {
		r, err := q.Reservation(store.AllProjects, *d.ReservationID)
		return &models.ReservationGrant{ReservationID: r.ID, EndsAt: r.EndsAt}, err
	}
	return &grant, nil
}

// ListDeployments shows the actor's own deployments, and those of others in projects whose
// workspaces the actor may see, newest first.
func (s *Service) ListDeployments(ctx context.Context, actor policies.Actor, f store.DeploymentFilter, page store.Page) (
	views []DeploymentSummary, err error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	f.Visible = s.access.Visible(actor, policies.WorkspaceRead)
	q := s.store.Read(ctx)
	list, err := q.Deployments(actor.Scope(), f, page)
	for _, d := range list {
		v, failed := s.deploymentSummary(q, actor, d)
		views, err = append(views, v), cmp.Or(err, failed)
	}
	return views, err
}
