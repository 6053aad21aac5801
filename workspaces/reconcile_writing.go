package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
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
