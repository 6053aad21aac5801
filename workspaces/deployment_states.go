package workspaces

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// drainTime is how long a deployment that was replaced finishes its requests.
const drainTime = time.Minute

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

// stopDeployment moves d to stopping.
func stopDeployment(q *store.Queries, actor policies.Actor, d *models.Deployment, why models.Text) error {
	from := d.State
	d.State = models.DeploymentStopping
	if from != d.State || !d.Failed { // what has failed says why
		d.Reason = why
	}
	if err := q.TransitionDeployment(d, from, why); err != nil {
		return err
	}
	if from == models.DeploymentDeploying && d.FirstID != nil {
		if err := keepPrevious(q, *d, why); err != nil {
			return err
		}
	}
	return actor.Audit(q, policies.Change{Action: "stop", Object: "deployment", ID: d.ID, Project: d.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": d.State}})
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

// endDeployment ends d and its parts, and releases all its shares.
func endDeployment(q *store.Queries, pool Pool, d *models.Deployment, parts []models.DeploymentPart) error {
	from := d.State
	d.State, d.Updating, d.EndedAt = models.DeploymentStopped, false, new(q.Now())
	if d.Failed {
		d.State = models.DeploymentFailed
	}
	if err := q.TransitionDeployment(d, from, models.Say("Ended. Its shares were released.")); err != nil {
		return err
	}
	if err := endParts(q, *d, parts); err != nil {
		return err
	}
	return pool.Release(q, d.HolderID)
}

func endParts(q *store.Queries, d models.Deployment, parts []models.DeploymentPart) error {
	for _, p := range parts {
		if p.State == models.PartEnded {
			continue
		}
		from := p.State
		p.State, p.RuntimeState, p.Progress = models.PartEnded, nil, 0
		if err := q.TransitionPart(d, &p, from, models.Text{}); err != nil {
			return err
		}
	}
	return nil
}

// restartParts has the parts of a deployment, which have ended, started again.
func restartParts(q *store.Queries, d models.Deployment, parts []models.DeploymentPart) error {
	for _, p := range parts {
		p.State, p.Failures = models.PartWaiting, 0
		if err := q.TransitionPart(d, &p, models.PartEnded, models.Text{}); err != nil {
			return err
		}
	}
	return nil
}
