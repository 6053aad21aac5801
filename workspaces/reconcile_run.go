package workspaces

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"

	"weir/models"
)

const (
	stepTime     = 5 * time.Second       // that one part of a round may take; the next goes on with the rest
	hands        = 8                     // workspaces that take a step at the same time
	roundPeriod  = time.Second           // between rounds when nothing has happened
	roundShare   = 10                    // a round is followed by a pause of as many times its length
	shortest     = 25 * time.Millisecond // pause between rounds, and first pause of a workspace
	longest      = 4 * time.Second       // pause of a workspace that starts or stops, in which nothing happens
	longestRetry = 5 * time.Second       // pause after steps that failed
	orphanPeriod = 5 * time.Second       // between searches for what nobody knows
	sweepPeriod  = 10 * time.Minute      // between removals of expired secrets
)

// delayingQueue holds the workspaces that are to take a step, each once.
type delayingQueue = workqueue.TypedDelayingInterface[int64]

// Run drives all workspaces until ctx ends, several at a time and each by one
// hand: those that changed in the database or in the runtime at once, and all
// of them in rounds, so that nothing that was missed stays so. Workspaces go
// on running.
func (r *Reconciler) Run(ctx context.Context) {
	queue := workqueue.NewTypedDelayingQueue[int64]()
	r.notes.clear() // of an earlier time of leading; its pauses ended with its queue
	r.hands.Store(&queue)
	defer r.hands.Store(nil)
	var working sync.WaitGroup
	for range hands {
		working.Go(func() {
			for id, over := queue.Get(); !over; id, over = queue.Get() {
				if again := r.attend(ctx, id); again > 0 {
					queue.AddAfter(id, again)
				}
				queue.Done(id)
			}
		})
	}
	r.rounds(ctx, queue)
	queue.ShutDown()
	working.Wait()
}

// rounds makes rounds until ctx ends, at once when somebody asks, but not one
// immediately after the other.
func (r *Reconciler) rounds(ctx context.Context, queue delayingQueue) {
	for ctx.Err() == nil {
		began := time.Now()
		for _, id := range r.round(ctx) {
			queue.Add(id)
		}
		pause := min(max(shortest, roundShare*time.Since(began)), roundPeriod)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		select {
		case <-ctx.Done():
		case <-r.work:
		case <-time.After(max(roundPeriod-pause, 0)):
		}
	}
}

// round does what concerns no single workspace, and tells which of them are
// to take a step.
func (r *Reconciler) round(ctx context.Context) []int64 {
	for _, step := range []func(context.Context) error{r.evict, r.recall, r.orphans, r.sweep, r.serveLine} {
		within, cancel := context.WithTimeout(ctx, stepTime)
		if err := step(within); err != nil {
			r.failed(ctx, err) // the others are not held up
		}
		cancel()
	}
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	live, err := r.store.Read(ctx).WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping)
	if err != nil {
		r.failed(ctx, err)
		return nil
	}
	present := make(map[int64]bool, len(live))
	var due []int64
	for i := range live {
		present[live[i].ID] = true
		if r.due(ctx, &live[i]) {
			due = append(due, live[i].ID)
		}
	}
	r.notes.keep(present)
	return due
}

// due tells whether there is anything to do about a workspace that nobody
// told of. What starts or stops has its next step before it, unless that was
// lost, or its change was not heard of.
func (r *Reconciler) due(ctx context.Context, w *models.Workspace) bool {
	if w.State != models.StateRunning {
		return r.notes.of(w.ID).missed(w.Version)
	}
	status, err := r.runtime.Poll(ctx, w.RuntimeState)
	if err != nil || status.Phase == PhaseExited {
		return true
	}
	return status.Phase == PhaseRunning && (models.Endpoint(status.Endpoint) != w.Endpoint || r.notes.of(w.ID).turns(status.Message, r.store.Now()))
}

// hear is told by the store what has changed.
func (r *Reconciler) hear(topics []string) {
	moves := false
	for _, topic := range topics {
		if text, ok := strings.CutPrefix(topic, "workspace:"); ok {
			if id, err := strconv.ParseInt(text, 10, 64); err == nil {
				r.Look(id)
			}
		}
		moves = moves || movesLine(topic)
	}
	if moves {
		r.changed.Store(true)
		r.Wake()
	}
}

// movesLine tells whether a change may let a workspace start that waits: what
// was measured of a GPU does not.
func movesLine(topic string) bool { return !strings.HasPrefix(topic, "telemetry:") }

// Wake asks for a round now; it never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.work <- struct{}{}:
	default:
	}
}

// Look asks for a step of one workspace now; it never blocks.
func (r *Reconciler) Look(workspace int64) {
	if queue := r.hands.Load(); queue != nil {
		(*queue).Add(workspace)
	}
}

// attend takes one step of a workspace, and tells in how long it is to take
// the next; 0 leaves that to what happens.
func (r *Reconciler) attend(ctx context.Context, id int64) time.Duration {
	if ctx.Err() != nil {
		return 0
	}
	n := r.notes.of(id)
	if wait := n.wait(r.store.Now()); wait > 0 {
		return wait
	}
	w, err := r.store.Read(ctx).Workspace(models.Everything, id)
	if err != nil {
		r.failed(ctx, err)
		return n.failed(r.store.Now())
	}
	version, state := w.Version, w.State
	n.meet(version)
	err = r.step(ctx, &w)
	switch {
	case ctx.Err() != nil:
		return 0
	case errors.Is(err, models.ErrChanged):
		return shortest // somebody else was quicker: look again
	case err != nil:
		r.failed(ctx, err)
		return n.failed(r.store.Now())
	case w.Version != version:
		n.moved(w.State != state)
		return 0 // the store tells of the change
	case w.State == models.StateStarting || w.State == models.StateStopping:
		return n.still()
	}
	return 0
}

func (r *Reconciler) failed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !errors.Is(err, models.ErrFenced) {
		r.log.ErrorContext(ctx, "reconcile", "err", err)
	}
}

// notes is what is remembered of workspaces between their steps. It may be
// lost: it saves work, and words.
type notes struct {
	mu  sync.Mutex
	all map[int64]*note
}

func (n *notes) of(workspace int64) *note {
	n.mu.Lock()
	defer n.mu.Unlock()
	one := n.all[workspace]
	if one == nil {
		one = &note{}
		n.all[workspace] = one
	}
	return one
}

func (n *notes) forget(workspace int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.all, workspace)
}

func (n *notes) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.all)
}

// keep forgets all workspaces but those.
func (n *notes) keep(live map[int64]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.all, func(id int64, _ *note) bool { return !live[id] })
}

// note is what is remembered of one workspace.
type note struct {
	mu        sync.Mutex
	failures  int       // steps that failed, one after the other
	notBefore time.Time // after such a step
	stills    int       // steps in which nothing happened, one after the other
	stages    []Stage   // that the start has reached
	stageAt   time.Time // when it reached the last of them
	message   string    // that the runtime gave last
	since     time.Time // when it first gave it
	said      bool      // the member can read it
	version   int64     // of the row at the last step
	stepped   time.Time // when that was
}

// wait is how long a workspace is left alone after a step that failed.
func (n *note) wait(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return min(n.notBefore.Sub(now), longestRetry) // the clock may be set back
}

func (n *note) failed(now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	pause := min(roundPeriod<<min(n.failures, 3), longestRetry)
	n.failures++
	n.notBefore = now.Add(pause)
	return pause
}

func (n *note) moved(toAnotherState bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures, n.stills, n.notBefore = 0, 0, time.Time{}
	if toAnotherState {
		n.message, n.said, n.stages = "", false, nil
	}
}

// still is the pause after a step in which nothing happened.
func (n *note) still() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failures, n.notBefore = 0, time.Time{}
	n.stills++
	return min(shortest<<min(n.stills-1, 10), longest)
}

// meet notes that a step of a workspace begins, at a version of its row.
func (n *note) meet(version int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.version, n.stepped = version, time.Now()
}

// missed tells whether a step is due that nobody has asked for: the row is
// another since the last, or there should have been one since.
func (n *note) missed(version int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.version != version || time.Since(n.stepped) > longestRetry+longest
}

// stalled tells whether a start has stayed too long in a stage. One that
// comes back to an earlier stage has made no progress. After a change of the
// leader the present stage begins anew.
func (n *note) stalled(stage Stage, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.stages, stage) {
		n.stages, n.stageAt = append(n.stages, stage), now
	}
	return now.Sub(n.stageAt) > stage.timeout()
}

// stands tells whether a message has been the runtime's for so long that the
// member should read it, and has not yet.
func (n *note) stands(message models.Text, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if text := message.String(); text != n.message {
		n.message, n.since, n.said = text, now, false
	}
	return n.message != "" && !n.said && now.Sub(n.since) >= heldUp
}

// turns tells the same of a workspace that runs, where the first message is
// that all is well.
func (n *note) turns(message models.Text, now time.Time) bool {
	n.mu.Lock()
	if n.message == "" {
		n.message, n.said = message.String(), true
	}
	n.mu.Unlock()
	return n.stands(message, now)
}

func (n *note) say() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = true
}
