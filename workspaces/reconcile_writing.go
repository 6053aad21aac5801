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

// partsWriting is the writing of the parts of a deployment.
type partsWriting struct {
	done     chan error // receives the result; nil while no attempt goes on
	failures int
	next     time.Time // of the next attempt
}

// changedError is why parts were not written of a model that has changed since it was planned.
type changedError struct{ error }

func (e *changedError) Unwrap() error { return e.error }

// goesOn reports whether an attempt has not ended.
func (w *partsWriting) goesOn() bool { return w != nil && w.done != nil && len(w.done) == 0 }

// writeParts writes the parts in the background, and records them when that is done.
func (r *Reconciler) writeParts(ctx context.Context, d *models.Deployment, parts []models.DeploymentPart) error {
	w := r.writing[d.ID]
	if w == nil {
		w = &partsWriting{}
		r.writing[d.ID] = w
	}
	switch {
	case w.goesOn() || w.done == nil && r.config.Store.Now().Before(w.next):
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
	done := make(chan error, 1)
	w.done = done
	r.writers.Go(func() {
		files, err := r.config.Served.Write(ctx, d)
		if err == nil {
			err = r.recordParts(ctx, d, parts, files)
		}
		if err != nil {
			if now, errNow := r.config.Served.Files(ctx, d); errNow == nil && now != d.Files {
				err = &changedError{err}
			}
		}
		done <- err
		r.StepDeployments()
	})
}

// writingFailed has the parts written again, unless that cannot help or was done often enough.
func (r *Reconciler) writingFailed(ctx context.Context, w *partsWriting, d *models.Deployment, err error) error {
	why := models.Say("the parts could not be written")
	e, known := errors.AsType[*models.Error](err)
	if known && e.Kind != models.KindInternal {
		why = e.Message
	}
	if _, changed := errors.AsType[*changedError](err); changed {
		if stopped, err := r.stopForFiles(ctx, *d); stopped || err != nil {
			delete(r.writing, d.ID)
			return err
		}
	}
	w.failures++
	if known && e.Kind != models.KindInternal && e.Kind != models.KindUnavailable || w.failures >= maxWriteFailures {
		delete(r.writing, d.ID)
		return errors.Join(err, r.failDeployment(ctx, d, models.Say("The deployment failed: %s", why)))
	}
	w.next = r.config.Store.Now().Add(writePause)
	return errors.Join(err, r.config.Store.InTx(ctx, func(q *store.Queries) error {
		return q.AddDeploymentEvent(*d, models.Say("Writing the parts is repeated: %s", why))
	}))
}

// stopForFiles stops a deployment whose model has changed while its parts were written: the
// present files are deployed in its place. Where another deployment has its address and
// serves, nothing is stopped: that goes on, and is updated.
func (r *Reconciler) stopForFiles(ctx context.Context, d models.Deployment) (stopped bool, err error) {
	err = r.config.Store.InTx(ctx, func(q *store.Queries) error {
		stopped = false
		serving, err := q.DeploymentSeries(d.First(), models.DeploymentServing)
		if err != nil || len(serving) > 0 {
			return err
		}
		now, err := q.LockDeployment(d.ID)
		if err != nil || now.State != models.DeploymentDeploying {
			return err
		}
		now.Updating, stopped = true, true
		return stopDeployment(q, policies.System("reconciler"), &now, models.Say("The model has changed. The deployment is stopped for its update."))
	})
	return stopped, err
}
