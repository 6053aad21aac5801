package workspaces

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir/models"
)

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

// start launches a placed workspace and saves the runtime's state. It is
// repeated after a crash, and while the runtime is out of reach: a generation
// is started only once.
func (r *Reconciler) start(ctx context.Context, w *models.Workspace) error {
	spec, err := r.spec(ctx, *w)
	var readable *models.Error
	if err != nil && !errors.As(err, &readable) { // the database, or the storage: it may be back soon
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
	return r.transition(ctx, w, models.StateStarting, models.Say("Launched. Waiting for the notebook to respond."))
}

// startFailed retries a start that the runtime could not carry out now, until
// its stage times out, and gives up any other. An attempt may have launched
// something: that is stopped first.
func (r *Reconciler) startFailed(ctx context.Context, w *models.Workspace, reason models.Text, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	reason = r.reasonOf(ctx, w, reason, cause)
	if models.KindOf(cause) == models.KindUnavailable {
		if !r.trackers.entry(w.ID).stalled(StageLaunching, r.store.Now()) {
			return errors.Join(cause, r.addToHistory(ctx, w, reason))
		}
	}
	return r.giveUp(ctx, w, nil, reason, "")
}

// reasonOf logs what went wrong, and returns what the member reads: the given
// reason where the error was not written for people.
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
	w.Reason = models.Say("Launch failed: %s", reason)
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
	if r.trackers.entry(w.ID).stalled(status.Stage, r.store.Now()) {
		return r.giveUp(ctx, w, w.RuntimeState, stalledReason(status), status.LogTail)
	}
	return r.report(ctx, w, status)
}

// report lets the member see how a start goes on, and what it waits for when
// that takes a while.
func (r *Reconciler) report(ctx context.Context, w *models.Workspace, status Status) error {
	risen := int64(status.Progress) > w.Progress
	w.Progress = max(w.Progress, int64(status.Progress))
	if t := r.trackers.entry(w.ID); t.messageDue(status.Message, r.store.Now()) {
		if err := r.addToHistory(ctx, w, status.Message); err != nil {
			return err
		}
		t.messageWritten()
		return nil
	}
	if risen {
		return r.transition(ctx, w, models.StateStarting, models.Text{})
	}
	return nil
}

// addToHistory adds a line to the history of a start, unless it is there
// already: messages of a cluster alternate.
func (r *Reconciler) addToHistory(ctx context.Context, w *models.Workspace, message models.Text) error {
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

// stalledReason is why a start was given up.
func stalledReason(s Status) models.Text {
	seconds := int64(s.Stage.timeout() / time.Second)
	if s.Message.Empty() {
		return models.Say("The notebook did not respond within %d seconds.", seconds)
	}
	return models.Say("No progress for %d seconds: %s", seconds, s.Message)
}

func limits(list []Limit) []models.Limit {
	out := make([]models.Limit, len(list))
	for i, l := range list {
		out[i] = models.Limit(l)
	}
	return out
}

// watch polls a running workspace.
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
	if t := r.trackers.entry(w.ID); t.changeDue(status.Message, r.store.Now()) {
		if err := r.transition(ctx, w, models.StateRunning, status.Message); err != nil {
			return err
		}
		t.messageWritten()
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

// adopt finds what may have been launched for w without its state being saved:
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
	message := models.Say("Stopped. Its shares were released.")
	if state == models.StateFailed {
		message = models.Say("Failed: %s", reason)
	}
	version := w.Version
	err := r.tx(ctx, func(q *models.Queries) error {
		w.Version = version // also of a retry
		if err := q.Transition(w, from, message); err != nil {
			return err
		}
		return r.pool.Release(q, w.ID)
	})
	if err == nil {
		r.trackers.drop(w.ID)
	}
	return err
}
