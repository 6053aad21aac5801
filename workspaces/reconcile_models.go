package workspaces

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	modelCheckPeriod = 10 * time.Second // between two looks at the files of a served model
	modelSettleTime  = time.Minute      // without a change, until changed files are deployed
	updateInterval   = 10 * time.Minute // between updates of a deployment
	updatePause      = time.Minute      // between two attempts of an update that has to wait
	planTimeout      = 10 * time.Minute // of an update
)

// followModels updates the deployments whose model has changed, each in the background: storage
// and planning can take long, and a directory that hangs concerns its own deployments alone.
func (r *Reconciler) followModels(ctx context.Context, live []models.Deployment) {
	if r.config.FollowModel == nil {
		return
	}
	beingUpdated := map[int64]bool{} // by address
	for _, d := range live {
		beingUpdated[d.First()] = beingUpdated[d.First()] || d.State == models.DeploymentDeploying
	}
	seen := r.modelFiles
	r.modelFiles = map[int64]*modelWatch{}
	for _, d := range live {
		w := seen[d.ID]
		if w != nil && w.looking.Load() {
			r.modelFiles[d.ID] = w
			continue
		}
		look := r.watchModel
		if d.Updating && d.State == models.DeploymentStopping {
			look = r.deployUpdate
		} else if d.State != models.DeploymentServing || d.ManualUpdates || beingUpdated[d.First()] {
			continue
		}
		if w == nil {
			w = &modelWatch{}
		}
		r.modelFiles[d.ID] = w
		w.looking.Store(true)
		r.followers.Go(func() {
			defer w.looking.Store(false)
			r.logError(ctx, look(ctx, d, w))
		})
	}
}

// see notes the files of a model, and reports whether they have stayed the same for a while: a
// model is copied file by file.
func (w *modelWatch) see(files string, now time.Time) (settled bool) {
	if files != w.files {
		w.files, w.since = files, now
	}
	return now.Sub(w.since) >= modelSettleTime
}

// watchModel updates a deployment if the files of its model have changed and stayed the same
// for a while. Updates of updates have a pause.
func (r *Reconciler) watchModel(ctx context.Context, d models.Deployment, w *modelWatch) error {
	now := r.now()
	if now.Before(w.next) {
		return nil
	}
	w.next = now.Add(modelCheckPeriod)
	files, err := r.config.Served.Files(ctx, d)
	if err != nil {
		return nil // a model that cannot be read is served as it was
	}
	settled := w.see(files, now)
	switch {
	case d.Files == "":
		return r.saveFiles(ctx, d, func(d *models.Deployment) { d.Files = files }, models.Text{})
	case files == d.Files, files == d.TriedFiles, !settled:
		return nil
	case d.FirstID != nil && d.StartedAt != nil && now.Sub(*d.StartedAt) < updateInterval:
		return nil
	}
	return r.followModel(ctx, d, w)
}

// follow calls FollowModel for one deployment at a time: people who plan models are not kept
// waiting by models that cannot be read.
func (r *Reconciler) follow(ctx context.Context, d models.Deployment) error {
	select {
	case r.planning <- struct{}{}:
		defer func() { <-r.planning }()
		return r.config.FollowModel(ctx, d)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// followModel has the update deployed. What is lacking is waited for; files that cannot be
// served are left, until they change.
func (r *Reconciler) followModel(ctx context.Context, d models.Deployment, w *modelWatch) error {
	ctx, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	err := r.follow(ctx, d)
	e, known := errors.AsType[*models.Error](err)
	_, ofModel := errors.AsType[*planError](err)
	switch {
	case err == nil:
		return nil
	case !known || e.Kind == models.KindInternal:
		return err
	case ofModel && (e.Kind == models.KindInvalid || e.Kind == models.KindConflict):
		return r.saveFiles(ctx, d, func(d *models.Deployment) { d.TriedFiles = w.files },
			models.Say("The model has changed and is not deployed. This deployment goes on: %s", reasonOf(err)))
	}
	w.next = r.now().Add(updatePause)
	why := reasonOf(err)
	if w.waiting == why.Format {
		return nil
	}
	w.waiting = why.Format
	return r.addDeploymentEvent(ctx, d, models.Say("The model has changed. The update waits: %s", why))
}

// deployUpdate deploys the update of a deployment that was stopped for it, when all its parts
// have ended. If it cannot be deployed, the deployment is deployed again as it was, unless that
// was never written and has nothing to go back to.
func (r *Reconciler) deployUpdate(ctx context.Context, d models.Deployment, _ *modelWatch) error {
	parts, err := r.config.Store.Read(ctx).DeploymentParts(d.ID)
	if err != nil || slices.ContainsFunc(parts, func(p models.DeploymentPart) bool { return p.State != models.PartEnded }) {
		return err
	}
	planning, cancel := context.WithTimeout(ctx, planTimeout)
	defer cancel()
	if d.Failed {
		return r.fallBack(ctx, planning, d)
	}
	files, err := r.config.Served.Files(planning, d)
	written := !slices.ContainsFunc(parts, func(p models.DeploymentPart) bool { return p.File == "" })
	if err == nil {
		err = r.follow(planning, d)
	} else {
		err = &planError{err}
	}
	e, known := errors.AsType[*models.Error](err)
	_, ofModel := errors.AsType[*planError](err)
	switch {
	case err == nil:
		return nil
	case !written && files != d.Files && known && e.Kind != models.KindInternal:
		return r.giveUp(ctx, d, reasonOf(err))
	case !written && files != d.Files && ofModel && ctx.Err() == nil:
		return errors.Join(err, r.giveUp(ctx, d, models.Say("The files of the model cannot be read.")))
	case known && ofModel && (e.Kind == models.KindInvalid || e.Kind == models.KindConflict):
		return r.redeploy(ctx, d, parts, files, reasonOf(err))
	case known && e.Kind != models.KindInternal:
		return r.redeploy(ctx, d, parts, d.TriedFiles, reasonOf(err))
	case ofModel && ctx.Err() == nil:
		return errors.Join(err, r.redeploy(ctx, d, parts, d.TriedFiles, models.Say("The files of the model cannot be read.")))
	}
	return err
}

// giveUp lets a deployment fail that was stopped for its update.
func (r *Reconciler) giveUp(ctx context.Context, d models.Deployment, why models.Text) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, err := q.LockDeployment(d.ID)
		if err != nil || !now.Updating {
			return err
		}
		now.Failed, now.Updating, now.DrainsUntil, now.Reason = true, now.FallsBack(), nil, models.Say("The deployment failed: %s", why)
		return q.TransitionDeployment(&now, models.DeploymentStopping, now.Reason)
	})
}

// fallBack has the deployment deployed again that has ended for a failed update, or says why that
// cannot be. Shares that are lacking are not waited for: the update keeps its own until then.
func (r *Reconciler) fallBack(ctx, planning context.Context, d models.Deployment) error {
	err := r.config.FollowModel(planning, d)
	e, known := errors.AsType[*models.Error](err)
	if err == nil || !known || e.Kind == models.KindInternal || e.Kind == models.KindUnavailable {
		return err
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, failed := q.LockDeployment(d.ID)
		if failed != nil || !now.Updating {
			return failed
		}
		now.Updating = false
		return q.TransitionDeployment(&now, models.DeploymentStopping,
			models.Say("The version before it is not deployed again: %s", reasonOf(err)))
	})
}

// redeploy deploys a deployment again that was stopped for its update, unless it has to end.
func (r *Reconciler) redeploy(ctx context.Context, d models.Deployment, parts []models.DeploymentPart, tried string,
	why models.Text) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockProjectRows(d.ProjectID); err != nil {
			return err
		}
		now, err := q.LockDeployment(d.ID)
		if err != nil || !now.Updating {
			return err
		}
		now.State, now.Updating, now.DrainsUntil = models.DeploymentDeploying, false, nil
		now.Reason, now.TriedFiles = models.Text{}, tried
		message := models.Say("The update is not deployed. This deployment is deployed again: %s", why)
		if err := q.TransitionDeployment(&now, models.DeploymentStopping, message); err != nil {
			return err
		}
		if err := restartParts(q, now, parts); err != nil {
			return err
		}
		e, err := q.Eviction(now.HolderID)
		if err != nil {
			return models.IgnoreNotFound(err)
		}
		return stopDeployment(q, policies.System("reconciler"), &now, evictionReason(e, q.Now()))
	})
}

// reasonOf is why an update is not deployed.
func reasonOf(err error) models.Text {
	if short, ok := errors.AsType[*Insufficient](err); ok {
		return models.Say("the pool cannot give what it needs (%s)", short.Decision.Explanation)
	}
	e, _ := errors.AsType[*models.Error](err)
	switch {
	case len(e.Fields) == 0:
		return e.Message
	case e.Kind == models.KindInvalid: // says what the field must be
		return models.Say("%s %s", e.Fields[0].Name, e.Fields[0].Reason)
	default:
		return e.Fields[0].Reason
	}
}

// saveFiles changes what a deployment knows of the files of its model.
func (r *Reconciler) saveFiles(ctx context.Context, d models.Deployment, change func(*models.Deployment), message models.Text) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		now, err := q.LockDeployment(d.ID)
		if err != nil || now.State != models.DeploymentServing {
			return err
		}
		change(&now)
		return q.TransitionDeployment(&now, now.State, message)
	})
}
