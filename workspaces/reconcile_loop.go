package workspaces

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"weir/models"
	"weir/models/store"

	"weir/workspaces/runtime"
)

const (
	workers     = 8  // concurrent steps
	resyncShare = 10 // the pause after a resync, as a multiple of its duration
)

// Run reconciles all workspaces until ctx ends, each in one worker at a time:
// those that changed in the database or in the runtime at once, and all of them
// periodically, in case a change was missed. Workspaces continue to run after it.
func (r *Reconciler) Run(ctx context.Context) {
	queue := workqueue.NewTypedDelayingQueue[int64]()
	r.trackers.Clear() // of an earlier term as the leader, whose delays ended with its queue
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
	working.Go(func() { r.watchIdleness(ctx) })
	working.Go(func() { r.watchMounts(ctx) })
	working.Go(func() { r.watchRuns(ctx) })
	working.Go(func() { r.watchDeployments(ctx) })
	r.resyncLoop(ctx, queue)
	queue.ShutDown()
	working.Wait()
}

// resyncLoop resyncs until ctx ends: periodically, and on request after a pause.
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

// resync performs the tasks that concern no single workspace, and returns the
// workspaces that need a step.
func (r *Reconciler) resync(ctx context.Context) []int64 {
	for _, step := range []func(context.Context) error{r.evict, r.recall, r.endReserved, r.stopOrphans, r.sweep, r.serveQueue} {
		within, cancel := context.WithTimeout(ctx, stepTimeout)
		if err := step(within); err != nil {
			r.logError(ctx, err)
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	live, err := r.config.Store.Read(ctx).WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping)
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

// needsStep reports whether a workspace needs a step that is not queued. Starting
// and stopping workspaces are queued, unless that was lost.
func (r *Reconciler) needsStep(ctx context.Context, w *models.Workspace) bool {
	if w.State != models.StateRunning {
		return r.trackers.entry(w.ID).stepMissed(w.Version)
	}
	status, err := r.config.Runtime.Poll(ctx, w.RuntimeState)
	if err != nil || status.Phase == runtime.PhaseExited {
		return true
	}
	return status.Phase == runtime.PhaseRunning && (status.Endpoint != w.Endpoint || isUnobserved(w) ||
		r.trackers.entry(w.ID).changeDue(status.Message, r.now()))
}

// reconcile performs one step of a workspace and returns the delay before the
// next one; 0 means that an event will trigger it.
func (r *Reconciler) reconcile(ctx context.Context, id int64) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	t := r.trackers.entry(id)
	if wait := t.retryDelay(r.now()); wait > 0 {
		return wait
	}
	w, err := r.config.Store.Read(ctx).Workspace(store.AllProjects, id)
	if err != nil {
		r.logError(ctx, err)
		return t.stepFailed(r.now())
	}
	version, state := w.Version, w.State
	t.stepBegins(version)
	err = r.step(ctx, &w)
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.Is(err, store.ErrChanged):
		return minDelay // another transaction was first
	case err != nil:
		r.logError(ctx, err)
		return t.stepFailed(r.now())
	case w.Version != version:
		t.stepChanged(w.State != state)
		return 0 // the change enqueues it
	case w.State == models.StateStarting || w.State == models.StateStopping:
		return t.stepIdle()
	}
	return 0
}
