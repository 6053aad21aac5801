package workspaces

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"weir/models"
)

const (
	stepTimeout = 5 * time.Second // for one part of a round
	workers     = 8               // workspaces that take a step at the same time
	resyncShare = 10              // a round is followed by a pause of as many times its length
)

// Run drives all workspaces until ctx ends, several at a time and each by one
// worker: those that changed in the database or in the runtime at once, and all
// of them in rounds, so that nothing that was missed stays so. Workspaces go
// on running.
func (r *Reconciler) Run(ctx context.Context) {
	queue := workqueue.NewTypedDelayingQueue[int64]()
	r.trackers.reset() // of an earlier time as the leader; its delays ended with its queue
	r.workQueue.Store(&queue)
	defer r.workQueue.Store(nil)
	var working sync.WaitGroup
	for range workers {
		working.Go(func() {
			for id, over := queue.Get(); !over; id, over = queue.Get() {
				if again := r.reconcile(ctx, id); again > 0 {
					queue.AddAfter(id, again)
				}
				queue.Done(id)
			}
		})
	}
	r.resyncLoop(ctx, queue)
	queue.ShutDown()
	working.Wait()
}

// resyncLoop makes rounds until ctx ends, at once when one is requested, but
// with a pause between them.
func (r *Reconciler) resyncLoop(ctx context.Context, queue delayingQueue) {
	for ctx.Err() == nil {
		began := time.Now()
		for _, id := range r.resync(ctx) {
			queue.Add(id)
		}
		pause := min(max(minDelay, resyncShare*time.Since(began)), resyncPeriod)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
		case <-r.resyncs:
		case <-time.After(max(resyncPeriod-pause, 0)):
		}
	}
}

// resync does what concerns no single workspace, and tells which of them are
// to take a step.
func (r *Reconciler) resync(ctx context.Context) []int64 {
	for _, step := range []func(context.Context) error{r.evict, r.recall, r.orphans, r.sweep, r.serveQueue} {
		within, cancel := context.WithTimeout(ctx, stepTimeout)
		if err := step(within); err != nil {
			r.logError(ctx, err) // the others go on
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	live, err := r.store.Read(ctx).WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping)
	if err != nil {
		r.logError(ctx, err)
		return nil
	}
	present := make(map[int64]bool, len(live))
	var due []int64
	for i := range live {
		present[live[i].ID] = true
		if r.needsStep(ctx, &live[i]) {
			due = append(due, live[i].ID)
		}
	}
	r.trackers.retain(present)
	return due
}

// needsStep reports whether a workspace has to take a step that nothing has
// queued. What starts or stops is queued already, unless that was lost.
func (r *Reconciler) needsStep(ctx context.Context, w *models.Workspace) bool {
	if w.State != models.StateRunning {
		return r.trackers.entry(w.ID).stepMissed(w.Version)
	}
	status, err := r.runtime.Poll(ctx, w.RuntimeState)
	if err != nil || status.Phase == PhaseExited {
		return true
	}
	return status.Phase == PhaseRunning && (models.Endpoint(status.Endpoint) != w.Endpoint || r.trackers.entry(w.ID).changeDue(status.Message, r.store.Now()))
}

// reconcile takes one step of a workspace and returns the delay before the
// next; 0 waits for an event.
func (r *Reconciler) reconcile(ctx context.Context, id int64) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	t := r.trackers.entry(id)
	if wait := t.retryDelay(r.store.Now()); wait > 0 {
		return wait
	}
	w, err := r.store.Read(ctx).Workspace(models.Everything, id)
	if err != nil {
		r.logError(ctx, err)
		return t.stepFailed(r.store.Now())
	}
	version, state := w.Version, w.State
	t.stepBegins(version)
	err = r.step(ctx, &w)
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.Is(err, models.ErrChanged):
		return minDelay // another transaction was first: read again
	case err != nil:
		r.logError(ctx, err)
		return t.stepFailed(r.store.Now())
	case w.Version != version:
		t.stepChanged(w.State != state)
		return 0 // the change queues it
	case w.State == models.StateStarting || w.State == models.StateStopping:
		return t.stepIdle()
	}
	return 0
}
