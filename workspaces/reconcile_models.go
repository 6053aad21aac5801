package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
)

const (
	modelCheckPeriod = 5 * time.Second // between two looks at the files of a served model
	updatePause      = time.Minute     // between two attempts of an update that has to wait
)

// modelWatch is what was last seen of the files of a deployment's model.
type modelWatch struct {
	next    time.Time // of the next look
	files   string
	waiting string // why the update has to wait, as it was said
}

// followModels updates the deployments whose model has changed. What differs twice in the same
// way is no longer being written.
func (r *Reconciler) followModels(ctx context.Context, live []models.Deployment) error {
	seen := r.modelFiles
	r.modelFiles = map[int64]*modelWatch{}
	if r.config.FollowModel == nil {
		return nil
	}
	updated := map[int64]bool{} // by address
	for _, d := range live {
		updated[d.First()] = updated[d.First()] || d.State == models.DeploymentDeploying
	}
	return forEach(live, func(d models.Deployment) error {
		if d.State != models.DeploymentServing || d.ManualUpdates || updated[d.First()] {
			return nil
		}
		w := seen[d.ID]
		if w == nil {
			w = &modelWatch{}
		}
		r.modelFiles[d.ID] = w
		return r.watchModel(ctx, d, w)
	})
}

func (r *Reconciler) watchModel(ctx context.Context, d models.Deployment, w *modelWatch) error {
	now := r.config.Store.Now()
	if now.Before(w.next) {
		return nil
	}
	w.next = now.Add(modelCheckPeriod)
	files, err := r.config.Served.Files(ctx, d)
	if err != nil {
		return nil // a model that cannot be read is served as it was
	}
	settled := files == w.files
	switch w.files = files; {
	case d.Files == "":
		return r.saveFiles(ctx, d, func(d *models.Deployment) { d.Files = files }, models.Text{})
	case files == d.Files || files == d.TriedFiles || !settled:
		return nil
	}
	return r.followModel(ctx, d, w)
}

// followModel has the update deployed. What is lacking is waited for; files that cannot be
// served are left, until they change.
func (r *Reconciler) followModel(ctx context.Context, d models.Deployment, w *modelWatch) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	err := r.config.FollowModel(ctx, d)
	e, known := errors.AsType[*models.Error](err)
	switch {
	case err == nil:
		return nil
	case !known || e.Kind == models.KindInternal:
		return err
	case e.Kind == models.KindInvalid || e.Kind == models.KindConflict:
		return r.saveFiles(ctx, d, func(d *models.Deployment) { d.TriedFiles = w.files },
			models.Say("The model has changed and is not deployed. This deployment goes on: %s", reasonOf(err)))
	}
	w.next = r.config.Store.Now().Add(updatePause)
	why := reasonOf(err)
	if w.waiting == why.String() {
		return nil
	}
	w.waiting = why.String()
	return r.saveFiles(ctx, d, func(*models.Deployment) {}, models.Say("The model has changed. The update waits: %s", why))
}

// reasonOf is why an update is not deployed.
func reasonOf(err error) models.Text {
	if short, ok := errors.AsType[*Insufficient](err); ok {
		return models.Say("the pool cannot give what it needs besides this deployment (%s)", short.Decision.Explanation)
	}
	e, _ := errors.AsType[*models.Error](err)
	if len(e.Fields) > 0 {
		return models.Say("%s %s", e.Fields[0].Name, e.Fields[0].Reason)
	}
	return e.Message
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
