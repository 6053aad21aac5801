package workspaces

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

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
		UpdateStrategy: of.UpdateStrategy, IdleMinutes: of.Request.IdleMinutes, ReservationID: given(of.ReservationID)}
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
