package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
)

// watchDeployments keeps the parts of all deployments running, until ctx ends. They go on
// after it.
func (r *Reconciler) watchDeployments(ctx context.Context) {
	defer r.writers.Wait()
	defer r.followers.Wait()
	r.watches, r.requests = partWatches{}, map[int64]requestsSeen{}
	r.modelFiles, r.lostGPUs = map[int64]*modelWatch{}, map[int64]*lostGPU{}
	r.writing = map[int64]*partsWriting{} // without what an earlier term as the leader has begun
	for r.config.Parts != nil && ctx.Err() == nil {
		r.logError(ctx, errors.Join(r.stepDeployments(ctx), r.sweepParts(ctx)))
		select {
		case <-ctx.Done():
		case <-r.partSteps:
		case <-time.After(runPeriod):
		}
	}
}

func (r *Reconciler) stepDeployments(ctx context.Context) error {
	live, err := r.config.Store.Read(ctx).DeploymentsIn(models.LiveDeployments...)
	if err != nil {
		return err
	}
	r.followModels(ctx, live)
	return errors.Join(r.moveDeployments(ctx, live),
		forEach(live, func(d models.Deployment) error { return r.stepDeployment(ctx, &d) }))
}

func (r *Reconciler) stepDeployment(ctx context.Context, d *models.Deployment) error {
	parts, err := r.config.Store.Read(ctx).DeploymentParts(d.ID)
	if err != nil || len(parts) == 0 {
		return err
	}
	switch d.State {
	case models.DeploymentStopping:
		return r.stopParts(ctx, d, parts)
	case models.DeploymentIdle:
		return r.releaseIdle(ctx, d, parts)
	}
	if parts[0].File == "" {
		return r.writeParts(ctx, d, parts)
	}
	ready := true
	for i := range parts {
		if err := r.stepPart(ctx, d, &parts[i]); err != nil || d.State == models.DeploymentStopping {
			return err
		}
		ready = ready && parts[i].State == models.PartReady
	}
	if err := r.observeParts(ctx, *d, parts); err != nil {
		return err
	}
	if d.State == models.DeploymentServing && r.becomesIdle(*d, parts) {
		return r.idleDeployment(ctx, *d,
			models.Say("There were no requests for %d minutes. Its GPUs are released until the next one.", d.Request.IdleMinutes))
	}
	if d.State != models.DeploymentDeploying || !ready {
		return nil
	}
	d.State = models.DeploymentServing
	if d.StartedAt == nil {
		d.StartedAt = new(r.config.Store.Now())
	}
	return r.transitionDeployment(ctx, d, models.DeploymentDeploying, models.Say("All parts are loaded. Requests are served."),
		func(q *store.Queries) error { return takePlace(q, *d) })
}

// stepPart starts a part, observes how it loads, and starts it again if it has ended.
func (r *Reconciler) stepPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if p.State == models.PartWaiting && (r.keepsWaiting(d.ID) || r.now().Before(r.watches.of(*p).pausesUntil)) {
		return nil
	}
	if p.State == models.PartWaiting {
		return r.startPart(ctx, d, p)
	}
	status, err := r.config.Parts.Poll(ctx, p.RuntimeState)
	if err != nil {
		return err
	}
	if status.Ended {
		return r.partEnded(ctx, d, p, status)
	}
	r.watches.of(*p).cpu = status.CPU
	if status.Stage != "" {
		return r.awaitPart(ctx, d, p, status)
	}
	return r.watchPart(ctx, d, p)
}

// stopParts ends all parts, and then the deployment.
func (r *Reconciler) stopParts(ctx context.Context, d *models.Deployment, parts []models.DeploymentPart) error {
	if w := r.writing[d.ID]; w.goesOn() {
		w.cancel()
		return nil // what is being written would be left
	}
	if d.DrainsUntil != nil && r.config.Store.Now().Before(*d.DrainsUntil) && r.computes(ctx, *d, parts) {
		return nil
	}
	delete(r.writing, d.ID)
	delete(r.requests, d.ID)
	if gone, err := r.endProcesses(ctx, parts); err != nil || !gone {
		return err
	}
	if d.Updating { // and keeps its shares and its files
		return r.config.Store.InTx(ctx, func(q *store.Queries) error {
			now, err := q.LockDeployment(d.ID)
			if err != nil || !now.Updating { // it was deployed again meanwhile
				return err
			}
			return endParts(q, now, parts)
		})
	}
	if err := r.config.Served.Remove(*d); err != nil {
		return err
	}
	version := d.Version
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		d.Version, d.State = version, models.DeploymentStopping // the transaction may be retried
		return endDeployment(q, r.config.Pool, d, parts)
	})
}
