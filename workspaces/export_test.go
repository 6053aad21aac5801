package workspaces

import (
	"context"
	"errors"

	"weir/models"
	"weir/workspaces/deployments/serving"
)

// Tick is a resync and a step of every live workspace, one after the other, so
// that a test sees what one of each does.
func (r *Reconciler) Tick(ctx context.Context) {
	r.resync(ctx)
	live, err := r.config.Store.Read(ctx).WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping)
	r.logError(ctx, err)
	for _, w := range live {
		r.reconcile(ctx, w.ID)
	}
}

// ObserveAll is one round of watchIdleness.
func (r *Reconciler) ObserveAll(ctx context.Context) error { return r.observeAll(ctx) }

// ServeQueue is the part of a resync that places queued workspaces.
func (r *Reconciler) ServeQueue(ctx context.Context) error { return r.serveQueue(ctx) }

// RefreshAll is one round of watchMounts.
func (r *Reconciler) RefreshAll(ctx context.Context) error {
	return r.refreshAll(ctx)
}

// TickRuns is one round of watchRuns, one run after the other.
func (r *Reconciler) TickRuns(ctx context.Context) error {
	orphans := r.endOrphans(ctx)
	live, err := r.config.Store.Read(ctx).RunsIn(models.LiveRuns...)
	step := func(run models.Run) error { return r.stepRun(ctx, &run) }
	return errors.Join(orphans, err, forEach(live, step), r.sweepRuns(ctx), r.refreshRuns(ctx))
}

// TickDeployments is one round of watchDeployments, and what that has begun.
func (r *Reconciler) TickDeployments(ctx context.Context) error {
	defer r.followers.Wait()
	return r.TickDeploymentsOnly(ctx)
}

// TickDeploymentsOnly does not wait for what it has begun.
func (r *Reconciler) TickDeploymentsOnly(ctx context.Context) error {
	return errors.Join(r.stepDeployments(ctx), r.sweepParts(ctx))
}

// ImagesOf are the images of a request.
func ImagesOf(in InferInput, of serving.Image) ([][]byte, error) { return in.images(&of) }
