package workspaces

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"weir/models"
)

// heldUp is how long a message of the runtime stands before the member reads it.
const heldUp = 3 * time.Second

// Reconciler drives every workspace from what the database wants to what the
// runtime has. It alone starts and stops; one of it runs at a time. [Reconciler.Run]
// is its work queue; here are the steps.
type Reconciler struct {
	store   *models.Store
	pool    Pool
	ledger  Ledger
	storage Storage
	runtime Runtime
	env     func(models.Workspace) map[string]string
	fence   func(*models.Queries) error
	log     *slog.Logger

	work        chan struct{}                 // somebody asks for a round
	hands       atomic.Pointer[delayingQueue] // what Run works through; nil while it does not
	notes       notes                         // what is remembered between steps
	orphansSeen time.Time
	swept       time.Time
	changed     atomic.Bool // something has changed that may let the line move
	served      time.Time   // when the line was last looked at
}

// ReconcilerConfig names what a Reconciler works with.
type ReconcilerConfig struct {
	Store   *models.Store
	Pool    Pool
	Ledger  Ledger
	Storage Storage
	Runtime Runtime
	// Env gives a workspace the variables by which it finds the portal.
	Env func(models.Workspace) map[string]string
	// Fence refuses the transactions of a server that does not lead any more;
	// nil where there is only one.
	Fence  func(*models.Queries) error
	Logger *slog.Logger
}

// NewReconciler makes a Reconciler; Run starts it.
func NewReconciler(c ReconcilerConfig) *Reconciler {
	r := &Reconciler{store: c.Store, pool: c.Pool, ledger: c.Ledger, storage: c.Storage, runtime: c.Runtime,
		env: c.Env, fence: c.Fence, log: c.Logger, work: make(chan struct{}, 1), notes: notes{all: map[int64]*note{}}}
	r.changed.Store(true)
	c.Store.OnChange(r.hear)
	return r
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
// repeated after a crash, and while the runtime is out of reach: it starts a
// generation only once.
func (r *Reconciler) start(ctx context.Context, w *models.Workspace) error {
	spec, err := r.spec(ctx, *w)
	var worded *models.Error
	if err != nil && !errors.As(err, &worded) { // the database, or the storage: it may be back soon
		err = models.Unavailable(err, "The workspace could not be prepared.")
	}
	if err != nil {
		return r.startFailed(ctx, w, models.Text{}, err)
	}
	models.Failpoint("start.intent")
	state, err := r.runtime.Start(ctx, spec)
	if err != nil {
		return r.startFailed(ctx, w, models.Say("The notebook could not be launched."), err)
	}
	models.Failpoint("start.launched")
	w.RuntimeState, w.Progress = state, 10
	return r.transition(ctx, w, models.StateStarting, models.Say("Launched; waiting for the notebook to answer."))
}

// startFailed has a start tried again that could not be carried out now,
// until its time is over, and gives up the others. This try, or one before
// it, may have launched something: that is stopped first.
func (r *Reconciler) startFailed(ctx context.Context, w *models.Workspace, reason models.Text, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	reason = r.reasonOf(ctx, w, reason, cause)
	if models.KindOf(cause) == models.KindUnavailable {
		if !r.notes.of(w.ID).stalled(StageLaunching, r.store.Now()) {
			return errors.Join(cause, r.say(ctx, w, reason))
		}
	}
	return r.giveUp(ctx, w, nil, reason, "")
}

// reasonOf logs what went wrong, and words it for the member: by reason where
// it was not worded for people.
func (r *Reconciler) reasonOf(ctx context.Context, w *models.Workspace, reason models.Text, cause error) models.Text {
	r.log.ErrorContext(ctx, "start", "workspace", w.ID, "err", cause)
	var e *models.Error
	if errors.As(cause, &e) && e.Kind != models.KindInternal {
		reason = e.Message
	}
	return reason
}

// giveUp stops what did not start, or may have started: its shares are kept
// until it is gone. A workspace that is stopping and has an end already is one
// whose start has failed; see awaitEnd.
func (r *Reconciler) giveUp(ctx context.Context, w *models.Workspace, state State, reason models.Text, log string) error {
	now := r.store.Now()
	w.State, w.EndedAt, w.RuntimeState, w.LogTail = models.StateStopping, &now, state, log
	w.Reason = models.Say("The start was given up: %s", reason)
	return r.transition(ctx, w, models.StateStarting, w.Reason)
}

func (r *Reconciler) awaitReady(ctx context.Context, w *models.Workspace) error {
	status, err := r.runtime.Poll(ctx, w.RuntimeState)
	if err != nil {
		return err
	}
	switch status.Phase {
	case PhaseExited:
		return r.exited(ctx, w, status)
	case PhaseRunning:
		models.Failpoint("start.ready")
		now := r.store.Now()
		w.State, w.Progress, w.StartedAt = models.StateRunning, 100, &now
		w.Endpoint, w.Limits = models.Endpoint(status.Endpoint), limits(status.Limits)
		return r.transition(ctx, w, models.StateStarting, models.Say("Running."))
	}
	if r.notes.of(w.ID).stalled(status.Stage, r.store.Now()) {
		return r.giveUp(ctx, w, w.RuntimeState, tooLong(status), status.LogTail)
	}
	return r.report(ctx, w, status)
}

// report lets the member see how a start goes on, and reads to them what it
// waits for when that takes a while.
func (r *Reconciler) report(ctx context.Context, w *models.Workspace, status Status) error {
	risen := int64(status.Progress) > w.Progress
	w.Progress = max(w.Progress, int64(status.Progress))
	if n := r.notes.of(w.ID); n.stands(status.Message, r.store.Now()) {
		if err := r.say(ctx, w, status.Message); err != nil {
			return err
		}
		n.say()
		return nil
	}
	if risen {
		return r.transition(ctx, w, models.StateStarting, models.Text{})
	}
	return nil
}

// say adds a line to the history of a start, unless it is there already: what
// the cluster says comes and goes and comes again.
func (r *Reconciler) say(ctx context.Context, w *models.Workspace, message models.Text) error {
	events, err := r.store.Read(ctx).WorkspaceEvents(w.ID)
	if err != nil {
		return err
	}
	for _, e := range slices.Backward(events) {
		if e.State != models.StateStarting {
			break // of an earlier start
		}
		if e.Message.String() == message.String() {
			return nil
		}
	}
	return r.transition(ctx, w, models.StateStarting, message)
}

// tooLong is why a start is given up that has stood still.
func tooLong(s Status) models.Text {
	seconds := int64(s.Stage.timeout() / time.Second)
	if s.Message.Empty() {
		return models.Say("The notebook did not answer within %d seconds.", seconds)
	}
	return models.Say("For %d seconds nothing changed: %s", seconds, s.Message)
}

func limits(list []Limit) []models.Limit {
	out := make([]models.Limit, len(list))
	for i, l := range list {
		out[i] = models.Limit(l)
	}
	return out
}

// watch looks whether a running workspace still is, and how.
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
	if n := r.notes.of(w.ID); n.turns(status.Message, r.store.Now()) {
		if err := r.transition(ctx, w, models.StateRunning, status.Message); err != nil {
			return err
		}
		n.say()
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
	if w.EndedAt != nil { // its start was given up
		state = models.StateFailed
	}
	return r.finish(ctx, w, state, w.Reason)
}

// adopt finds what may have been launched for w but could not be remembered:
// the process died in between, the start failed, or the member stopped it.
func (r *Reconciler) adopt(ctx context.Context, w *models.Workspace) error {
	if w.RuntimeState != nil {
		return nil
	}
	if namer, ok := r.runtime.(Namer); ok {
		w.RuntimeState = namer.StateOf(w.ProjectID, w.ID, w.Generation)
		return nil
	}
	lister, ok := r.runtime.(Lister)
	if !ok {
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
		return r.pool.Release(q, w.ID)
	})
	if err == nil {
		r.notes.forget(w.ID)
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
	holder, err := q.Holder(w.ProjectID, w.MemberID)
	if err != nil {
		return Spec{}, err
	}
	mounts, err := r.storage.Mounts(ctx, holder)
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
