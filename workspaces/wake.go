package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// wakePoll is the time between two looks at a deployment for which requests wait.
const wakePoll = 200 * time.Millisecond

// awaitServing deploys an idle deployment again, and waits until it serves. The error is
// rate_limited if too many requests wait for that, and unavailable if the pool, the quota or the
// rights of its owner do not suffice now. It returns d as it is then.
func (s *Service) awaitServing(ctx context.Context, actor policies.Actor, d models.Deployment) (models.Deployment, error) {
	if !d.Waits() {
		return d, nil
	}
	q := s.waiting.join(d)
	if q == nil {
		return d, tooManyWait()
	}
	defer s.waiting.quit(d.ID, q)
	wasIdle := false
	for {
		v, err := s.store.Read(ctx).Deployment(store.AllProjects, d.ID)
		if gone := context.Cause(ctx); gone != nil {
			return d, gone // not that reading was canceled
		}
		if err != nil || !v.Waits() && !(wasIdle && v.State == models.DeploymentDeploying) {
			return v.Deployment, err
		}
		wasIdle = wasIdle || v.State == models.DeploymentIdle
		if v.State == models.DeploymentIdle && v.Demand == (models.Demand{}) {
			err := s.wake(ctx, actor, v.Deployment)
			if gone := context.Cause(ctx); gone != nil {
				return d, gone
			}
			if err != nil {
				return d, unavailable(err)
			}
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(wakePoll):
		}
	}
}

// unavailable is the answer to a request for a deployment that cannot be deployed again now.
func unavailable(err error) error {
	e, known := errors.AsType[*models.Error](err)
	if !known || e.Kind == models.KindInternal {
		return err
	}
	return models.Unavailable(err, "This deployment is idle, and cannot be deployed now: %s", reasonOf(err))
}

// wake takes shares for an idle deployment as its owner may, in one decision, and has its parts
// loaded, which are on the disk.
func (s *Service) wake(ctx context.Context, actor policies.Actor, read models.Deployment) error {
	owner, err := s.ownerOf(ctx, read)
	if err != nil {
		return err
	}
	return s.access.Write(ctx, s.store, owner, read.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		project, err := q.Project(owner.Scope(), read.ProjectID) // which Write has locked
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		d, err := q.LockDeployment(read.ID)
		if err != nil {
			return err
		}
		if d.State != models.DeploymentIdle || d.Demand != (models.Demand{}) {
			return nil // another request has been faster
		}
		environment, err := keptEnvironment(q, d)
		if err != nil {
			return err
		}
		in := DeployInput{ProjectID: d.ProjectID, EnvironmentID: environment, Cores: d.Request.Cores,
			ReservationID: given(d.ReservationID)}
		p, _, err := s.planDeployment(q, owner, project, in, d.Plan, d.ID)
		if err != nil {
			return err
		}
		if p.Rejection != nil {
			return p.Rejection
		}
		if refused := p.Insufficient(); refused != nil {
			return refused
		}
		return s.commitWake(q, actor, &d, p)
	})
}

// commitWake writes that an idle deployment is deployed again, and takes its shares.
func (s *Service) commitWake(q *store.Queries, actor policies.Actor, d *models.Deployment, p Plan) error {
	d.State, d.Demand, d.Target, d.StartedAt = models.DeploymentDeploying, p.Target.Demand, p.Target.Parameters, nil
	d.EnvironmentID = p.Environment.ID
	message := models.Say("A request has arrived: %s. %s", describe(p.Demand), p.launchDecision.Explanation)
	if err := q.TransitionDeployment(d, models.DeploymentIdle, message); err != nil {
		return err
	}
	parts, err := q.DeploymentParts(d.ID)
	if err != nil {
		return err
	}
	if err := restartParts(q, *d, parts); err != nil {
		return err
	}
	if err := s.takeShares(q, *d, p); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "launch", Object: "deployment", ID: d.ID, Project: d.ProjectID,
		After: map[string]any{"name": d.Name, "state": d.State, "demand": d.Demand}})
}
