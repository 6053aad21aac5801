package workspaces

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"weir/models"
)

const (
	startTimeout = 2 * time.Minute        // from launch until the notebook answers
	idlePeriod   = time.Second            // between looks when nothing is on its way
	busyPeriod   = 25 * time.Millisecond  // while something starts or stops
	orphanPeriod = 5 * time.Second        // between searches for what nobody knows
	sweepPeriod  = 10 * time.Minute       // between removals of expired secrets
	backoff      = 500 * time.Millisecond // after a failed look at the database
)

// Reconciler drives every workspace from what the database wants to what the
// runtime has. It alone starts and stops; one of it runs at a time.
type Reconciler struct {
	store   *models.Store
	pool    Pool
	books   Books
	line    Line
	ledger  Ledger
	storage Storage
	runtime Runtime
	env     func(models.Workspace) map[string]string
	ended   func(workspace int64)
	fence   func(*models.Queries) error
	log     *slog.Logger

	work        chan struct{}
	orphansSeen time.Time
	swept       time.Time
	notBefore   map[int64]time.Time // after a step that failed, by workspace
	changed     atomic.Bool         // something has changed that may let the queue move
	served      time.Time           // when the queue was last looked at
}

// ReconcilerConfig names what a Reconciler works with.
type ReconcilerConfig struct {
	Store   *models.Store
	Pool    Pool
	Books   Books
	Line    Line
	Ledger  Ledger
	Storage Storage
	Runtime Runtime
	// Env gives a workspace the variables by which it finds the portal.
	Env func(models.Workspace) map[string]string
	// Ended hears of a workspace that is stopping or gone: its open
	// connections must end.
	Ended func(workspace int64)
	// Fence refuses the transactions of a server that does not lead any more;
	// nil where there is only one.
	Fence  func(*models.Queries) error
	Logger *slog.Logger
}

// NewReconciler makes a Reconciler; Run starts it.
func NewReconciler(c ReconcilerConfig) *Reconciler {
	r := &Reconciler{store: c.Store, pool: c.Pool, books: c.Books, line: c.Line, ledger: c.Ledger, storage: c.Storage, runtime: c.Runtime,
		env: c.Env, ended: c.Ended, fence: c.Fence, log: c.Logger, work: make(chan struct{}, 1), notBefore: map[int64]time.Time{}}
	r.changed.Store(true)
	c.Store.OnChange(func(topics []string) {
		if slices.ContainsFunc(topics, movesQueue) {
			r.changed.Store(true)
		}
	})
	return r
}

// movesQueue tells whether a change may let a workspace start that waits:
// what was measured of a GPU does not.
func movesQueue(topic string) bool { return !strings.HasPrefix(topic, "telemetry:") }

// Wake asks for a look now; it never blocks.
func (r *Reconciler) Wake() {
	select {
	case r.work <- struct{}{}:
	default:
	}
}

// Run looks again and again until ctx ends. Workspaces go on running.
func (r *Reconciler) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := r.Tick(ctx)
		select {
		case <-ctx.Done():
		case <-r.work:
		case <-time.After(pause):
		}
	}
}

// Tick takes every live workspace one step further, and tells how long it is
// until the next look is due.
func (r *Reconciler) Tick(ctx context.Context) time.Duration {
	pause := idlePeriod
	for _, step := range []func(context.Context) error{r.evict, r.recall, r.orphans, r.sweep} {
		if err := step(ctx); err != nil {
			r.failed(ctx, err) // the others are not held up
		}
	}
	q := r.store.Read(ctx)
	live, err := q.WorkspacesIn(models.StateStarting, models.StateRunning, models.StateStopping, models.StateRequested)
	if err != nil {
		return r.failed(ctx, err)
	}
	for i := range live {
		if live[i].State != models.StateRunning {
			pause = busyPeriod
		}
		r.attempt(ctx, &live[i])
	}
	if err := r.serveQueue(ctx); err != nil {
		return r.failed(ctx, err)
	}
	return pause
}

// attempt takes one step, and after one that failed waits before the next.
func (r *Reconciler) attempt(ctx context.Context, w *models.Workspace) {
	now := r.store.Now()
	if now.Before(r.notBefore[w.ID]) {
		return
	}
	delete(r.notBefore, w.ID)
	if err := r.step(ctx, w); err != nil && models.KindOf(err) != models.KindConflict {
		r.notBefore[w.ID] = r.store.Now().Add(idlePeriod)
		r.failed(ctx, err)
	}
}

func (r *Reconciler) failed(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil {
		r.log.ErrorContext(ctx, "reconcile", "err", err)
	}
	return backoff
}

func (r *Reconciler) step(ctx context.Context, w *models.Workspace) error {
	switch w.State {
	case models.StateStarting:
		if w.RuntimeState == nil {
			return r.start(ctx, w)
		}
		return r.awaitReady(ctx, w)
	case models.StateRunning:
		return r.watch(ctx, w)
	case models.StateStopping:
		return r.awaitEnd(ctx, w)
	default:
		return nil
	}
}

// start launches a placed workspace and remembers the runtime's state. It is
// repeated after a crash: the runtime starts a generation only once.
func (r *Reconciler) start(ctx context.Context, w *models.Workspace) error {
	spec, err := r.spec(ctx, *w)
	if err != nil {
		return r.fail(ctx, w, models.Say("The workspace could not be prepared."), err)
	}
	models.Failpoint("start.intent")
	state, err := r.runtime.Start(ctx, spec)
	if err != nil {
		return r.fail(ctx, w, models.Say("The notebook could not be launched."), err)
	}
	models.Failpoint("start.launched")
	w.RuntimeState, w.Progress = state, 10
	return r.transition(ctx, w, models.StateStarting, models.Say("Launched; waiting for the notebook to answer."))
}

// fail ends a workspace that never ran. What went wrong is logged; the member
// reads it only where it was worded for people.
func (r *Reconciler) fail(ctx context.Context, w *models.Workspace, reason models.Text, cause error) error {
	r.log.ErrorContext(ctx, "start", "workspace", w.ID, "err", cause)
	var e *models.Error
	if errors.As(cause, &e) && e.Kind != models.KindInternal {
		reason = e.Message
	}
	return r.finish(ctx, w, models.StateFailed, reason)
}

func (r *Reconciler) awaitReady(ctx context.Context, w *models.Workspace) error {
	status, err := r.runtime.Poll(ctx, w.RuntimeState)
	if err != nil {
		return err
	}
	switch {
	case status.Phase == PhaseExited:
		return r.exited(ctx, w, status)
	case status.Phase == PhaseRunning:
		models.Failpoint("start.ready")
		now := r.store.Now()
		w.State, w.Progress, w.StartedAt = models.StateRunning, 100, &now
		w.Endpoint, w.Limits = models.Endpoint(status.Endpoint), limits(status.Limits)
		return r.transition(ctx, w, models.StateStarting, models.Say("Running."))
	case r.store.Now().Sub(w.RequestedAt) > startTimeout && r.overdue(ctx, w):
		w.State, w.LogTail = models.StateStopping, status.LogTail
		w.Reason = silent
		return r.transition(ctx, w, models.StateStarting, w.Reason)
	case int64(status.Progress) > w.Progress:
		w.Progress = int64(status.Progress)
		return r.transition(ctx, w, models.StateStarting, models.Text{})
	}
	return nil
}

// silent is why a workspace is stopped that never answered.
var silent = models.Say("The notebook did not answer within %d seconds.", int64(startTimeout/time.Second))

// overdue tells whether the start itself, not the waiting before it, took too
// long: the newest line of the history is from when it was launched.
func (r *Reconciler) overdue(ctx context.Context, w *models.Workspace) bool {
	events, err := r.store.Read(ctx).WorkspaceEvents(w.ID)
	return err == nil && len(events) > 0 && r.store.Now().Sub(events[len(events)-1].At) > startTimeout
}

func limits(list []Limit) []models.Limit {
	out := make([]models.Limit, len(list))
	for i, l := range list {
		out[i] = models.Limit(l)
	}
	return out
}

// watch looks whether a running workspace still is.
func (r *Reconciler) watch(ctx context.Context, w *models.Workspace) error {
	status, err := r.runtime.Poll(ctx, w.RuntimeState)
	if err != nil {
		return err
	}
	if status.Phase == PhaseExited {
		return r.exited(ctx, w, status)
	}
	if e := models.Endpoint(status.Endpoint); status.Phase == PhaseRunning && e != w.Endpoint {
		w.Endpoint = e // adopted: the address may be another one for this process
		return r.transition(ctx, w, models.StateRunning, models.Text{})
	}
	return nil
}

// exited ends a workspace whose notebook ended by itself.
//
// Its reason and last lines are written first: Stop removes them.
func (r *Reconciler) exited(ctx context.Context, w *models.Workspace, status Status) error {
	if w.Reason.Empty() {
		w.Reason, w.LogTail = status.Message, status.LogTail
		if err := r.transition(ctx, w, w.State, models.Text{}); err != nil {
			return err
		}
	}
	if err := r.runtime.Stop(ctx, w.RuntimeState); err != nil {
		return err
	}
	return r.finish(ctx, w, models.StateFailed, w.Reason)
}

// awaitEnd asks the runtime to stop until nothing runs any more.
func (r *Reconciler) awaitEnd(ctx context.Context, w *models.Workspace) error {
	if err := r.adopt(ctx, w); err != nil {
		return err
	}
	if w.RuntimeState != nil {
		if err := r.runtime.Stop(ctx, w.RuntimeState); err != nil {
			return err
		}
		status, err := r.runtime.Poll(ctx, w.RuntimeState)
		if err != nil || status.Phase != PhaseExited {
			return err
		}
		models.Failpoint("stop.gone")
	}
	state := models.StateStopped
	if w.Reason.Format == silent.Format {
		state = models.StateFailed
	}
	return r.finish(ctx, w, state, w.Reason)
}

// adopt finds what was launched for w but could not be remembered: the process
// died in between, or the member stopped it.
func (r *Reconciler) adopt(ctx context.Context, w *models.Workspace) error {
	lister, ok := r.runtime.(Lister)
	if !ok || w.RuntimeState != nil {
		return nil
	}
	instances, err := lister.List(ctx)
	for _, i := range instances {
		if i.Workspace == w.ID && i.Generation == w.Generation {
			w.RuntimeState = i.State
		}
	}
	return err
}

// finish ends w and releases its shares, in one transaction.
func (r *Reconciler) finish(ctx context.Context, w *models.Workspace, state models.WorkspaceState, reason models.Text) error {
	from := w.State
	now := r.store.Now()
	w.State, w.Reason, w.EndedAt, w.RuntimeState, w.Endpoint, w.Progress = state, reason, &now, nil, models.Endpoint{}, 0
	message := models.Say("Stopped; its shares are free.")
	if state == models.StateFailed {
		message = models.Say("Failed: %s", reason)
	}
	version := w.Version
	err := r.tx(ctx, func(q *models.Queries) error {
		w.Version = version // of every try
		if err := q.Transition(w, from, message); err != nil {
			return err
		}
		return r.books.Release(q, w.ID)
	})
	if err == nil {
		delete(r.notBefore, w.ID)
		r.ended(w.ID)
	}
	return err
}

// tx writes what only the leader may.
func (r *Reconciler) tx(ctx context.Context, fn func(*models.Queries) error) error {
	return r.store.InTx(ctx, func(q *models.Queries) error {
		if r.fence != nil {
			if err := r.fence(q); err != nil {
				return err
			}
		}
		return fn(q)
	})
}

func (r *Reconciler) transition(ctx context.Context, w *models.Workspace, from models.WorkspaceState, message models.Text) error {
	version := w.Version
	return r.tx(ctx, func(q *models.Queries) error {
		w.Version = version // of every try
		return q.Transition(w, from, message)
	})
}

// spec resolves everything that the runtime needs to launch w.
func (r *Reconciler) spec(ctx context.Context, w models.Workspace) (Spec, error) {
	q := r.store.Read(ctx)
	env, err := q.Environment(w.EnvironmentID)
	if err != nil {
		return Spec{}, err
	}
	user, err := q.User(w.UserID)
	if err != nil {
		return Spec{}, err
	}
	mounts, err := r.storage.Mounts(ctx, w.ProjectID, w.MemberID)
	if err != nil {
		return Spec{}, err
	}
	s := Spec{Workspace: w.ID, Generation: w.Generation, Project: w.ProjectID, Member: w.MemberID, User: user.Email,
		Command: env.Command, Image: env.Image, Env: r.env(w), Token: w.Secret, Mounts: mounts,
		CPU: w.Demand.CPUMilli, Memory: w.Demand.MemoryMiB, Shm: shmOf(w)}
	maps.Copy(s.Env, envOf(w))
	s.GPUs, s.Node, err = gpus(q, w.ID)
	return s, err
}

// gpus lists the shares that a workspace holds, and names the provider that
// has their devices: the pool places all of them on one.
func gpus(q *models.Queries, workspace int64) (list []GPU, node string, err error) {
	shares, err := q.SharesOf(workspace)
	if err != nil || len(shares) == 0 {
		return nil, "", err
	}
	var provider int64
	for _, s := range shares {
		d, err := q.Device(s.DeviceID)
		if err != nil {
			return nil, "", err
		}
		provider = d.ProviderID
		list = append(list, GPU{UUID: d.UUID, Index: int(d.Number), Minor: int(d.Minor), Cores: s.Cores,
			MemoryMiB: s.MemoryMiB, Simulated: d.Simulated, Enforcement: s.Enforcement})
	}
	p, err := q.Provider(provider)
	return list, p.Name, err
}
