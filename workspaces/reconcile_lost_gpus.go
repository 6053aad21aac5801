package workspaces

import (
	"context"
	"errors"
	"slices"

	"weir/models"
)

// overdue reports whether the time has passed after which a deployment is moved.
func (r *Reconciler) overdue(deployment int64) bool {
	g := r.lostGPUs[deployment]
	return g != nil && r.now().Sub(g.since) >= r.config.MoveAfter
}

// processesGone reports whether no process is left on the lost GPU. All parts of a deployment are on
// one machine; one that responds ends those that are left.
func (g *lostGPU) processesGone(parts []models.DeploymentPart) bool {
	waiting := 0
	for _, p := range parts {
		if p.State == models.PartWaiting {
			waiting++
		}
	}
	return waiting == len(parts) || g.missing && waiting > 0
}

// keepsWaiting reports whether a part is not started where it would fail: as long as the deployment may
// be moved. While only the agent of a machine is gone, its parts are started as ever.
func (r *Reconciler) keepsWaiting(deployment int64) bool {
	g := r.lostGPUs[deployment]
	return g != nil && (g.missing || r.overdue(deployment))
}

// moveDeployments deploys the deployments again on other GPUs that have lost one of their own. A
// machine that is started again has some time to return.
func (r *Reconciler) moveDeployments(ctx context.Context, live []models.Deployment) error {
	lost, err := r.config.Store.Read(ctx).LostGPUs()
	if err != nil || r.config.MoveDeployment == nil {
		return err
	}
	seen, now := r.lostGPUs, r.now()
	r.lostGPUs = map[int64]*lostGPU{}
	var failed []error
	for _, g := range lost {
		if r.lostGPUs[g.DeploymentID] != nil {
			continue // for another one
		}
		one := seen[g.DeploymentID]
		if one == nil {
			one = &lostGPU{since: now}
		}
		one.missing = g.Missing
		r.lostGPUs[g.DeploymentID] = one
		if !r.overdue(g.DeploymentID) || now.Before(one.next) {
			continue
		}
		at := slices.IndexFunc(live, func(d models.Deployment) bool { return d.ID == g.DeploymentID })
		switch {
		case at < 0 || slices.ContainsFunc(live, live[at].IsReplacedBy):
		case live[at].State == models.DeploymentDeploying:
			failed = append(failed, r.giveUpLoading(ctx, live[at], live, one, g.Reason()))
		default:
			failed = append(failed, r.moveDeployment(ctx, live[at], one, g.Reason()))
		}
	}
	return errors.Join(failed...)
}

// giveUpLoading ends a deployment whose parts cannot be loaded where they are, if the one that it was to
// replace goes on. Else it becomes idle when no process is left, so that the next request deploys it on
// other GPUs.
func (r *Reconciler) giveUpLoading(ctx context.Context, d models.Deployment, live []models.Deployment, g *lostGPU, lost models.Text) error {
	parts, err := r.config.Store.Read(ctx).DeploymentParts(d.ID)
	if err != nil || len(parts) == 0 || parts[0].File == "" || !slices.ContainsFunc(parts, func(p models.DeploymentPart) bool {
		return p.State == models.PartWaiting || !r.watches.of(p).stopped.Empty()
	}) {
		return err
	}
	if slices.ContainsFunc(live, func(o models.Deployment) bool { return o.State == models.DeploymentServing && o.First() == d.First() }) {
		return r.failDeployment(ctx, &d, models.Say("The deployment failed: %s, where its parts were loaded", lost))
	}
	if !g.processesGone(parts) {
		return nil
	}
	return r.idleDeployment(ctx, d, models.Say("It is idle until the next request, because %s.", lost))
}

// moveDeployment moves a deployment beside itself, unless all its parts answer: only the agent of its
// machine may be gone. If that cannot be, it waits for the machine to return, or, when that has left
// the cluster with its process, for the next request.
func (r *Reconciler) moveDeployment(ctx context.Context, d models.Deployment, g *lostGPU, lost models.Text) error {
	parts, err := r.config.Store.Read(ctx).DeploymentParts(d.ID)
	if err != nil || !slices.ContainsFunc(parts, func(p models.DeploymentPart) bool { return p.State != models.PartReady }) {
		return err
	}
	g.next = r.now().Add(updatePause)
	err = r.config.MoveDeployment(ctx, d, lost)
	e, known := errors.AsType[*models.Error](err)
	switch {
	case err == nil:
		g.next = r.now().Add(updateInterval)
		return nil
	case !known || e.Kind == models.KindInternal:
		return err
	}
	why := reasonOf(err)
	if g.processesGone(parts) {
		return r.idleDeployment(ctx, d, models.Say("It is idle until the next request, because %s and it cannot be moved to other GPUs: %s", lost, why))
	}
	if g.waiting == why.Format {
		return nil
	}
	g.waiting = why.Format
	return r.addDeploymentEvent(ctx, d, models.Say("It waits to be moved to other GPUs, because %s: %s", lost, why))
}
