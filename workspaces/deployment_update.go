package workspaces

import (
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

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
