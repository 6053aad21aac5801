package workspaces

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// transition writes w, whose state was from, and then calls the functions in
// the same transaction.
func (r *Reconciler) transition(ctx context.Context, w *models.Workspace, from models.WorkspaceState, message models.Text,
	then ...func(*store.Queries) error) error {
	return r.inTx(ctx, &w.Version, func(q *store.Queries) error {
		if err := q.Transition(w, from, message); err != nil {
			return err
		}
		return notifyTransition(q, w, from)
	}, then)
}

// transitionRun writes run, whose state was from, and then calls the functions in the same
// transaction.
func (r *Reconciler) transitionRun(ctx context.Context, run *models.Run, from models.RunState, message models.Text,
	then ...func(*store.Queries) error) error {
	return r.inTx(ctx, &run.Version, func(q *store.Queries) error { return q.TransitionRun(run, from, message) }, then)
}

// transitionDeployment writes d, whose state was from, and then calls the functions in the
// same transaction.
func (r *Reconciler) transitionDeployment(ctx context.Context, d *models.Deployment, from models.DeploymentState, message models.Text,
	then ...func(*store.Queries) error) error {
	return r.inTx(ctx, &d.Version, func(q *store.Queries) error { return q.TransitionDeployment(d, from, message) }, then)
}

func (r *Reconciler) transitionPart(ctx context.Context, d *models.Deployment, p *models.DeploymentPart, from models.PartState,
	message models.Text) error {
	return r.inTx(ctx, &p.Version, func(q *store.Queries) error { return q.TransitionPart(*d, p, from, message) }, nil)
}

func (r *Reconciler) failDeployment(ctx context.Context, d *models.Deployment, why models.Text) error {
	d.Failed = true
	version, from := d.Version, d.State
	d.Updating = d.FallsBack()
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		d.Version, d.State = version, from // the transaction may be retried
		return stopDeployment(q, policies.System("reconciler"), d, why)
	})
}

func (r *Reconciler) addDeploymentEvent(ctx context.Context, d models.Deployment, message models.Text) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error { return q.AddDeploymentEvent(d, message) })
}

// inTx writes a row of a version, and then calls the functions in the same transaction.
func (r *Reconciler) inTx(ctx context.Context, version *int64, write func(*store.Queries) error, then []func(*store.Queries) error) error {
	before := *version
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		*version = before // the transaction may be retried
		err := write(q)
		for _, fn := range then {
			if err == nil {
				err = fn(q)
			}
		}
		return err
	})
}
