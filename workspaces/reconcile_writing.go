package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	maxWriteFailures = 3                // attempts to write the parts of a deployment
	writePause       = 10 * time.Second // between them
)

// What is found of a model that has changed since it was planned.
var (
	errUnsettled = errors.New("its files still change")
	errSettled   = errors.New("its files stay the same")
)

// changedError is why parts were not written of a model that has changed since it was planned.
type changedError struct{ error }

func (e *changedError) Unwrap() error { return e.error }

// writeParts writes the parts in the background, and records them when that is done.
func (r *Reconciler) writeParts(ctx context.Context, d *models.Deployment, parts []models.DeploymentPart) error {
	w := r.writing[d.ID]
	if w == nil {
		w = &partsWriting{}
		r.writing[d.ID] = w
	}
	switch {
	case w.goesOn() || w.done == nil && r.now().Before(w.next):
		return nil
	case w.done == nil:
		r.beginWriting(ctx, w, *d, parts)
		return nil
	}
	err := <-w.done
	w.done = nil
	if err == nil || errors.Is(err, context.Canceled) {
		return nil // what was canceled is begun again, by the next server
	}
	return r.writingFailed(ctx, w, d, err)
}

func (r *Reconciler) beginWriting(ctx context.Context, w *partsWriting, d models.Deployment, parts []models.DeploymentPart) {
	done, changes := make(chan error, 1), w.changes
	w.done = done
	ctx, w.cancel = context.WithCancel(ctx)
	r.writers.Go(func() {
		defer w.cancel()
		if changes != nil {
			done <- r.settled(ctx, d, changes)
		} else {
			done <- r.write(ctx, d, parts)
		}
		r.StepDeployments()
	})
}

// write writes the parts once.
func (r *Reconciler) write(ctx context.Context, d models.Deployment, parts []models.DeploymentPart) error {
	files, err := r.partFiles(ctx, d)
	if err == nil {
		err = r.recordParts(ctx, d, parts, files)
	}
	if err == nil || d.RestoredID != nil {
		return err
	}
	if now, unread := r.config.Served.Files(ctx, d); unread == nil && now != d.Files {
		return &changedError{err}
	}
	return err
}

// partFiles are the parts of a deployment: of one that is deployed again those that it had,
// which the model may have no more, else written from the model.
func (r *Reconciler) partFiles(ctx context.Context, d models.Deployment) (files []models.WrittenPart, err error) {
	if d.RestoredID == nil {
		return r.config.Served.Write(ctx, d)
	}
	parts, err := r.config.Store.Read(ctx).DeploymentParts(*d.RestoredID)
	for _, p := range parts {
		files = append(files, models.WrittenPart{File: p.File, Size: p.Size})
	}
	return files, errors.Join(err, r.config.Served.LinkParts(d, *d.RestoredID))
}

// recordParts records what was written.
func (r *Reconciler) recordParts(ctx context.Context, d models.Deployment, parts []models.DeploymentPart,
	files []models.WrittenPart) error {
	if len(files) != len(parts) {
		return models.Conflict("The model has changed since it was planned.")
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		for i, p := range parts {
			p.File, p.Size = files[i].File, files[i].Size
			if err := q.TransitionPart(d, &p, models.PartWaiting, models.Text{}); err != nil {
				return err
			}
		}
		return q.AddDeploymentEvent(d, models.Say("%d parts are on the disk.", int64(len(parts))))
	})
}

// settled looks whether a model that has changed stays the same: it is errSettled or
// errUnsettled. A model that is not there, or cannot be read, may be being replaced.
func (r *Reconciler) settled(ctx context.Context, d models.Deployment, changes *modelWatch) error {
	files, err := r.config.Served.Files(ctx, d)
	if err != nil {
		files = ""
	}
	if changes.see(files, r.now()) {
		return errSettled
	}
	return errUnsettled
}

// writingFailed has the parts written again, unless that cannot help or was done often enough.
// What has changed since it was planned is waited for until it stays the same, and planned anew,
// where no other deployment serves at its address.
func (r *Reconciler) writingFailed(ctx context.Context, w *partsWriting, d *models.Deployment, err error) error {
	why := models.Say("the parts could not be written")
	e, known := errors.AsType[*models.Error](err)
	if known && e.Kind != models.KindInternal {
		why = e.Message
	}
	now := r.now()
	_, changed := errors.AsType[*changedError](err)
	switch {
	case errors.Is(err, errUnsettled):
		w.next = now.Add(modelCheckPeriod)
		return nil
	case errors.Is(err, errSettled):
		delete(r.writing, d.ID)
		return r.stopForFiles(ctx, *d)
	case changed && !d.ManualUpdates:
		serving, failed := r.config.Store.Read(ctx).DeploymentSeries(d.First(), models.DeploymentServing)
		if failed != nil {
			return errors.Join(err, failed)
		}
		if len(serving) == 0 {
			w.changes, w.next = &modelWatch{since: now}, now.Add(modelCheckPeriod)
			waits := models.Say("The model has changed. The deployment waits until its files stay the same.")
			return errors.Join(err, r.addDeploymentEvent(ctx, *d, waits))
		}
	}
	w.failures++
	if known && e.Kind != models.KindInternal && e.Kind != models.KindUnavailable || w.failures >= maxWriteFailures {
		delete(r.writing, d.ID)
		return errors.Join(err, r.failDeployment(ctx, d, models.Say("The deployment failed: %s", why)))
	}
	w.next = now.Add(writePause)
	return errors.Join(err, r.addDeploymentEvent(ctx, *d, models.Say("Writing the parts is repeated: %s", why)))
}

// stopForFiles stops a deployment whose model has changed while its parts were written, so
// that the present files are deployed in its place, with its shares.
func (r *Reconciler) stopForFiles(ctx context.Context, d models.Deployment) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockProjectRows(d.ProjectID); err != nil {
			return err
		}
		now, err := q.LockDeployment(d.ID)
		if err != nil || now.State != models.DeploymentDeploying {
			return err
		}
		now.Updating = true
		return stopDeployment(q, policies.System("reconciler"), &now, models.Say("The model has changed. The deployment is stopped for its update."))
	})
}
