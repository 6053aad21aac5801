package workspaces

import (
	"context"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"

	"weir/workspaces/deployments/serving"
)

// becomesIdle reports whether a deployment that serves has had no requests for the time that was
// requested for it. After a restart of the server, that time begins again. Changed files of its
// model are deployed first. Its first part knows the requests of all servers.
func (r *Reconciler) becomesIdle(d models.Deployment, parts []models.DeploymentPart) bool {
	if d.Request.IdleMinutes == 0 {
		return false
	}
	now, said := r.now(), r.watches.of(parts[0]).said
	seen, known := r.requests[d.ID]
	if !known || said.Begun != seen.begun || said.Computing > 0 {
		seen = requestsSeen{said.Begun, now}
		r.requests[d.ID] = seen
	}
	idle := now.Sub(seen.last) >= time.Duration(d.Request.IdleMinutes)*time.Minute
	return idle && !r.modelFiles[d.ID].changes(d)
}

// changes reports whether files of a deployment's model have changed that will be deployed.
func (w *modelWatch) changes(d models.Deployment) bool {
	if w == nil || d.ManualUpdates {
		return false
	}
	return w.looking.Load() || w.waiting == "" && w.files != "" && w.files != d.Files && w.files != d.TriedFiles
}

// computes reports whether the parts of a deployment compute requests, of any server. Who begins
// one looks after that whether the deployment still serves. A first part that does not answer may
// compute until it has been silent for too long.
func (r *Reconciler) computes(ctx context.Context, d models.Deployment, parts []models.DeploymentPart) bool {
	w, now := r.watches.of(parts[0]), r.now()
	if parts[0].State != models.PartReady || w.ending {
		return false
	}
	if status, err := r.config.Parts.Poll(ctx, parts[0].RuntimeState); err == nil && status.Ended {
		return false
	}
	asking, cancel := context.WithTimeout(ctx, partAskTimeout)
	defer cancel()
	said, err := serving.Ask(asking, r.dialPart(parts[0]), d.Key())
	if err == nil || w.at.IsZero() {
		w.at = now
	}
	return err == nil && said.Computing > 0 || err != nil && now.Sub(w.at) < partReadyTimeout
}

// idleDeployment makes a deployment idle, unless its update is being deployed, which takes its
// place soon.
func (r *Reconciler) idleDeployment(ctx context.Context, d models.Deployment, why models.Text) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, err := q.LockDeployment(d.ID)
		if err != nil || now.State != d.State {
			return err
		}
		updates, err := q.DeploymentSeries(d.First(), models.DeploymentDeploying)
		if err != nil || slices.ContainsFunc(updates, now.IsReplacedBy) {
			return err
		}
		now.State = models.DeploymentIdle
		delete(r.requests, d.ID)
		return q.TransitionDeployment(&now, d.State, why)
	})
}

// releaseIdle ends the processes of an idle deployment, and releases its shares together. What
// has begun to be computed just before is finished first.
func (r *Reconciler) releaseIdle(ctx context.Context, d *models.Deployment, parts []models.DeploymentPart) error {
	if d.Demand == (models.Demand{}) || r.computes(ctx, *d, parts) {
		return nil
	}
	if gone, err := r.endProcesses(ctx, parts); err != nil || !gone {
		return err
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, err := q.LockDeployment(d.ID)
		if err != nil || now.State != models.DeploymentIdle {
			return err
		}
		if err := endParts(q, now, parts); err != nil {
			return err
		}
		if err := q.RecordEnded(now.Claim()); err != nil {
			return err
		}
		if now.Demand = (models.Demand{}); now.StartedAt != nil { // it has served
			now.FallbackID = nil
		}
		if err := q.TransitionDeployment(&now, models.DeploymentIdle, models.Say("Its shares were released.")); err != nil {
			return err
		}
		return r.config.Pool.Release(q, now.HolderID)
	})
}
