package workspaces

import (
	"cmp"
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// drainTime is how long a deployment that was replaced finishes its requests.
const drainTime = time.Minute

// errUpdatable ends the transaction of an update that is only tried.
var errUpdatable = errors.New("the update can be deployed when the deployment has ended")

// planError is why the present files of a model cannot be planned.
type planError struct{ error }

func (e *planError) Unwrap() error { return e.error }

// deploymentUpdate takes the place of a deployment whose model has changed.
type deploymentUpdate struct {
	of       models.Deployment
	by       policies.Actor
	strategy models.UpdateStrategy
	fallback *models.Deployment // is deployed again, as the update of has failed, or of itself; nil: the model has changed
	lost     models.Text        // why of is deployed again on other GPUs, beside itself
}

// moves reports whether the deployment is deployed again on other GPUs.
func (u *deploymentUpdate) moves() bool { return u != nil && !u.lost.Empty() }

// begin makes d the update, before it is planned. With [models.UpdateRecreate] it ends the
// other deployment in the transaction, so that what that has is available for the update. It
// is a conflict if the other one does not serve any more, or is being updated already.
func (s *Service) begin(q *store.Queries, u *deploymentUpdate, d *models.Deployment) error {
	if u == nil {
		return nil
	}
	of, err := s.recheckUpdate(q, *u)
	if err != nil {
		return err
	}
	if of.Files == d.Files && !u.moves() {
		return models.Conflict("The files of the model have not changed since they were deployed.")
	}
	d.FirstID = new(of.First())
	if u.moves() {
		d.RestoredID, d.TriedFiles = new(of.ID), of.TriedFiles
		return nil
	}
	if u.strategy != models.UpdateRecreate {
		return nil
	}
	switch {
	case u.fallback != nil:
		d.RestoredID, d.TriedFiles = new(u.fallback.ID), of.Files
	case of.StartedAt != nil:
		d.FallbackID = new(of.ID)
	default: // it has ended for an update that was never loaded
		d.FallbackID = of.FallbackID
	}
	parts, err := q.DeploymentParts(of.ID)
	if err != nil {
		return err
	}
	return endDeployment(q, s.pool, &of, parts)
}

// recheckUpdate is the deployment as it is now, if it can be updated still.
func (s *Service) recheckUpdate(q *store.Queries, u deploymentUpdate) (of models.Deployment, err error) {
	if err := s.access.RecheckOwned(q, u.by, u.of.UserID, u.of.ProjectID, policies.WorkspaceStop); err != nil {
		return of, err
	}
	of, err = q.LockDeployment(u.of.ID)
	switch {
	case err != nil:
		return of, err
	case !u.of.Updating:
		return of, checkUpdate(q, of)
	case !of.Updating || of.State != models.DeploymentStopping:
		return of, models.Stale("deployment")
	}
	return of, nil
}

func checkUpdate(q *store.Queries, d models.Deployment) error {
	if d.State != models.DeploymentServing {
		return models.Conflict("This deployment is %s. Only one that serves can be updated.", d.State.Words())
	}
	others, err := q.DeploymentSeries(d.First(), models.DeploymentDeploying)
	if err == nil && len(others) > 0 {
		err = models.Conflict("The update of this deployment, deployment %d, is already being deployed.", others[0].ID)
	}
	return err
}

// tries reports whether the update is only tried: the deployment has to be stopped before.
func (u *deploymentUpdate) tries() bool {
	return u != nil && u.strategy == models.UpdateRecreate && !u.of.Updating
}

// releases is the holder whose shares the update can have; 0: none.
func (u *deploymentUpdate) releases() int64 {
	if u == nil || u.strategy != models.UpdateRecreate {
		return 0
	}
	return u.of.HolderID
}

// record says in the history of the deployment that it is updated.
func (u *deploymentUpdate) record(q *store.Queries, d models.Deployment) error {
	if u == nil {
		return nil
	}
	of := u.of
	if u.moves() {
		return errors.Join(q.AddDeploymentEvent(of, models.Say("Deployment %d is this one on other GPUs, because %s.", d.ID, u.lost)),
			q.AddDeploymentEvent(d, models.Say("This is deployment %d on other GPUs, because %s.", of.ID, u.lost)))
	}
	switch {
	case of.Failed:
		of.State = models.DeploymentFailed
	case of.Updating:
		of.State = models.DeploymentStopped
	}
	if u.fallback != nil {
		return errors.Join(q.AddDeploymentEvent(of, models.Say("Deployment %d has the version before it.", d.ID)),
			q.AddDeploymentEvent(d, models.Say("This is deployment %d again, because its update, deployment %d, has failed.", u.fallback.ID, of.ID)))
	}
	return q.AddDeploymentEvent(of, models.Say("The model has changed. Deployment %d is its update.", d.ID))
}

// actor is who deploys: for an update its cause, else the owner.
func (u *deploymentUpdate) actor(owner policies.Actor) policies.Actor {
	if u == nil {
		return owner
	}
	return u.by
}

// UpdateDeployment deploys the present files of a deployment's model, as its owner may, by a
// strategy, or by that of the deployment. When the update serves, it has the place and the
// address of the deployment. It returns the update, or the deployment, if that is stopped
// first. Errors: as of Deploy; conflict, if the files have not changed or an update goes on.
func (s *Service) UpdateDeployment(ctx context.Context, actor policies.Actor, id int64, strategy models.UpdateStrategy) (
	d models.Deployment, err error) {
	var p models.Problems
	if checkStrategy(strategy, &p); len(p) > 0 {
		return d, p.Err()
	}
	v, err := s.authorizeDeployment(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return d, err
	}
	q := s.store.Read(ctx)
	of, err := current(q, v.Deployment)
	if err != nil {
		return d, err
	}
	if err := checkUpdate(q, of); err != nil {
		return d, err
	}
	return s.update(ctx, deploymentUpdate{of: of, by: actor, strategy: cmp.Or(strategy, of.UpdateStrategy)})
}

func checkStrategy(s models.UpdateStrategy, p *models.Problems) {
	if s != "" && s != models.UpdateRolling && s != models.UpdateRecreate {
		p.Add("update_strategy", "must be rolling or recreate")
	}
}

func (s *Service) update(ctx context.Context, u deploymentUpdate) (d models.Deployment, err error) {
	of := u.of
	if u.fallback != nil {
		of = *u.fallback
	}
	owner, err := s.ownerOf(ctx, of)
	if err != nil {
		return d, err
	}
	in := DeployInput{ProjectID: of.ProjectID, Name: of.Name, Path: of.Path, Parts: of.Request.Parts, Cores: of.Request.Cores,
		EnvironmentID: of.Request.EnvironmentID, ServedInput: of.Request.ServedInput, ManualUpdates: of.ManualUpdates,
		UpdateStrategy: of.UpdateStrategy, IdleMinutes: of.Request.IdleMinutes}
	if u.moves() {
		if in.EnvironmentID, err = keptEnvironment(s.store.Read(ctx), of); err != nil {
			return d, err
		}
	}
	if in.Cores == 0 { // of before requests were kept
		in.Parts, in.Cores, in.EnvironmentID = int64(len(of.Plan.Parts)), of.Demand.Cores, of.EnvironmentID
		in.ServedInput = models.ServedInput{Batch: of.Batch, Context: of.Context}
	}
	if err := in.Check(); err != nil {
		return d, err
	}
	if d, err = s.deploy(ctx, owner, in, &u); errors.Is(err, errUpdatable) {
		return s.stopForUpdate(ctx, owner, u)
	}
	return d, err
}

// ownerOf is the owner of a deployment with the present rights.
func (s *Service) ownerOf(ctx context.Context, d models.Deployment) (owner policies.Actor, err error) {
	user, err := s.store.Read(ctx).User(d.UserID)
	if err != nil {
		return owner, err
	}
	owner, err = s.Actors.RefreshActor(ctx, policies.Actor{User: user})
	if models.KindOf(err) == models.KindUnauthenticated {
		err = models.Conflict("%s cannot deploy now: the account is disabled, or lacks a required second factor.", user.Name)
	}
	return owner, err
}

// planned is the model as its present files are planned, or as it was for what is deployed again.
func (s *Service) planned(ctx context.Context, owner policies.Actor, in DeployInput, u *deploymentUpdate) (models.ServedModel, error) {
	if u != nil && u.fallback != nil {
		f := u.fallback
		return models.ServedModel{Path: f.Path, Plan: f.Plan, Hidden: f.Hidden, Vocabulary: f.Vocabulary, Context: f.Context,
			Task: f.Task, TextPrompts: f.TextPrompts, Files: f.Files}, nil
	}
	model, err := s.Served.Plan(ctx, owner, in.ProjectID, in.Path, in.Parts, in.Cores, in.ServedInput, u.releases())
	if err != nil && u == nil {
		return model, models.NotFoundAs(err, models.Invalid("path", "was not found, or you cannot read it"))
	}
	if err != nil {
		err = &planError{err}
	}
	return model, err
}

// stopForUpdate stops a deployment whose update can be deployed when its parts have ended. It
// finishes the requests that it computes.
func (s *Service) stopForUpdate(ctx context.Context, owner policies.Actor, u deploymentUpdate) (d models.Deployment, err error) {
	err = s.access.Write(ctx, s.store, owner, u.of.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		if d, err = s.recheckUpdate(q, u); err != nil {
			return err
		}
		d.Updating, d.DrainsUntil = true, new(q.Now().Add(drainTime))
		return stopDeployment(q, u.by, &d, models.Say("The model has changed. The deployment is stopped for its update."))
	})
	return d, err
}

// FollowModel deploys the present files of a deployment's model without anyone's request; in the
// place of an update that has failed, the version that has ended for it.
func (s *Service) FollowModel(ctx context.Context, d models.Deployment) error {
	u := deploymentUpdate{of: d, by: policies.System("reconciler"), strategy: d.UpdateStrategy}
	if d.Updating {
		u.strategy = models.UpdateRecreate
	}
	if d.Failed && d.FallsBack() {
		fallback, err := s.store.Read(ctx).Deployment(store.AllProjects, *d.FallbackID)
		if err != nil {
			return err
		}
		u.fallback = &fallback.Deployment
	}
	_, err := s.update(ctx, u)
	return err
}

// MoveDeployment deploys a deployment that serves, and has lost a GPU, again on other GPUs beside
// itself, from its parts. Until those of the lost GPU have certainly ended, its shares are not given to
// anybody else. Errors: as of UpdateDeployment.
func (s *Service) MoveDeployment(ctx context.Context, d models.Deployment, lost models.Text) error {
	u := deploymentUpdate{of: d, by: policies.System("reconciler"), strategy: models.UpdateRolling, fallback: &d, lost: lost}
	_, err := s.update(ctx, u)
	return err
}

// takePlace stops the other deployments with the address of one that begins to serve. They
// finish the requests that they compute.
func takePlace(q *store.Queries, d models.Deployment) error {
	others, err := q.DeploymentSeries(d.First(), models.DeploymentDeploying, models.DeploymentServing)
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.ID == d.ID {
			continue
		}
		o.DrainsUntil = new(q.Now().Add(drainTime))
		if err := stopDeployment(q, policies.System("reconciler"), &o, models.Say("Replaced by deployment %d.", d.ID)); err != nil {
			return err
		}
	}
	return nil
}

// keepPrevious says in the history of the deployment that an update was for that it goes on.
func keepPrevious(q *store.Queries, update models.Deployment, why models.Text) error {
	others, err := q.DeploymentSeries(update.First(), models.DeploymentServing)
	if err != nil || len(others) == 0 {
		return err
	}
	o := others[0]
	if update.Files != o.Files { // not of what was only moved
		o.TriedFiles = update.Files
	}
	return q.TransitionDeployment(&o, o.State, models.Say("Its update, deployment %d, has ended. This deployment goes on: %s", update.ID, why))
}

// current is the deployment that has the address of d: itself while it is deployed and
// serves, else what has taken its place, or is deployed or stops for that.
func current(q *store.Queries, d models.Deployment) (models.Deployment, error) {
	if d.State.Phase() == models.HolderInUse || d.Updating {
		return d, nil
	}
	for _, state := range []models.DeploymentState{models.DeploymentServing, models.DeploymentIdle, models.DeploymentDeploying} {
		others, err := q.DeploymentSeries(d.First(), state)
		if err != nil {
			return d, err
		}
		if len(others) > 0 {
			return others[0], nil
		}
	}
	stopping, err := q.DeploymentSeries(d.First(), models.DeploymentStopping)
	for _, o := range stopping {
		if o.Updating {
			return o, err
		}
	}
	return d, err
}

// stopOthers stops, with a deployment, its update, and what still finishes requests.
func stopOthers(q *store.Queries, actor policies.Actor, d models.Deployment, why models.Text) error {
	others, err := q.DeploymentSeries(d.First(), models.DeploymentDeploying, models.DeploymentStopping)
	for _, o := range others {
		switch {
		case err != nil:
			return err
		case o.State == models.DeploymentDeploying:
			err = stopDeployment(q, actor, &o, why)
		case o.DrainsUntil != nil:
			o.DrainsUntil = nil
			err = q.TransitionDeployment(&o, o.State, why)
		}
	}
	return err
}
