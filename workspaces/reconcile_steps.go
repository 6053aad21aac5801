package workspaces

import (
	"context"
	"errors"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"

	"weir/workspaces/runtime"
)

func (r *Reconciler) step(ctx context.Context, w *models.Workspace) error {
	switch w.State {
	case models.StateStarting:
		if w.Restarting {
			return r.endForRestart(ctx, w)
		}
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

// start launches a placed workspace and saves the runtime's state. It is repeated
// after a crash, and while the runtime is unavailable; the runtime starts a
// generation only once.
func (r *Reconciler) start(ctx context.Context, w *models.Workspace) error {
	spec, access, err := r.spec(ctx, *w)
	if _, readable := errors.AsType[*models.Error](err); err != nil && !readable { // of the database or the storage: possibly temporary
		err = models.Unavailable(err, "The workspace could not be prepared.")
	}
	if err != nil {
		return r.startFailed(ctx, w, models.Text{}, err)
	}
	models.Failpoint("start.intent")
	state, err := r.config.Runtime.Start(ctx, spec)
	if err != nil {
		return r.startFailed(ctx, w, models.Say("The notebook could not be launched."), err)
	}
	models.Failpoint("start.launched")
	w.RuntimeState, w.Progress, w.Mounts, w.FileAccess = state, 10, models.MountsDigest(spec.Mounts), access
	return r.transition(ctx, w, models.StateStarting, models.Say("Launched. Waiting for the notebook to respond."))
}

// startFailed retries a start until its stage times out if the error is of kind
// unavailable, and gives up otherwise.
func (r *Reconciler) startFailed(ctx context.Context, w *models.Workspace, reason models.Text, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	r.config.Logger.ErrorContext(ctx, "start", "workspace", w.ID, "err", cause)
	if e, ok := errors.AsType[*models.Error](cause); ok && e.Kind != models.KindInternal {
		reason = e.Message // the error is for people
	}
	if models.KindOf(cause) == models.KindUnavailable && !r.trackers.entry(w.ID).stalled(runtime.StageLaunching, r.now()) {
		return errors.Join(cause, r.addToHistory(ctx, w, reason))
	}
	return r.abandonStart(ctx, w, nil, reason, "")
}

// abandonStart stops a workspace that did not start: something may have been launched,
// so its shares are in use until that is gone. It ends as failed; see awaitEnd.
func (r *Reconciler) abandonStart(ctx context.Context, w *models.Workspace, state runtime.State, reason models.Text, log string) error {
	w.State, w.StartFailed, w.RuntimeState, w.LogTail = models.StateStopping, true, state, log
	w.Reason = models.Say("Launch failed: %s", reason)
	return r.transition(ctx, w, models.StateStarting, w.Reason)
}

func (r *Reconciler) awaitReady(ctx context.Context, w *models.Workspace) error {
	status, err := r.config.Runtime.Poll(ctx, w.RuntimeState)
	if models.KindOf(err) == models.KindUnavailable {
		r.trackers.entry(w.ID).blind(r.now())
	}
	if err != nil {
		return err
	}
	switch status.Phase {
	case runtime.PhaseExited:
		return r.exited(ctx, w, status)
	case runtime.PhaseRunning:
		models.Failpoint("start.ready")
		w.State, w.Progress = models.StateRunning, 100
		if w.StartedAt == nil { // a restart does not begin its use anew
			w.StartedAt = new(r.config.Store.Now())
		}
		w.Endpoint, w.Limits = status.Endpoint, append([]models.Limit{}, status.Limits...)
		return r.transition(ctx, w, models.StateStarting, models.Say("Running."))
	}
	if r.trackers.entry(w.ID).stalled(status.Stage, r.now()) {
		return r.abandonStart(ctx, w, w.RuntimeState, stallReason(status), status.LogTail)
	}
	return r.report(ctx, w, status)
}

// report records the progress of a start, and the runtime's message when it has
// not changed for a while.
func (r *Reconciler) report(ctx context.Context, w *models.Workspace, status runtime.Status) error {
	advanced := int64(status.Progress) > w.Progress
	w.Progress = max(w.Progress, int64(status.Progress))
	if t := r.trackers.entry(w.ID); t.messageDue(status.Message, r.now()) {
		if err := r.addToHistory(ctx, w, status.Message); err != nil {
			return err
		}
		t.messageWritten()
		return nil
	}
	if advanced {
		return r.transition(ctx, w, models.StateStarting, models.Text{})
	}
	return nil
}

// addToHistory adds an event to the history of a start, unless it is there
// already: the messages of a cluster alternate.
func (r *Reconciler) addToHistory(ctx context.Context, w *models.Workspace, message models.Text) error {
	events, err := r.config.Store.Read(ctx).WorkspaceEvents(w.ID)
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

func stallReason(s runtime.Status) models.Text {
	seconds := int64(s.Stage.Timeout() / time.Second)
	if s.Message.Empty() {
		return models.Say("The notebook did not respond within %d seconds.", seconds)
	}
	return models.Say("No progress for %d seconds: %s", seconds, s.Message)
}

// watch polls a running workspace.
func (r *Reconciler) watch(ctx context.Context, w *models.Workspace) error {
	status, err := r.config.Runtime.Poll(ctx, w.RuntimeState)
	if err != nil {
		return r.notObserved(ctx, w, err)
	}
	was := isUnobserved(w)
	if was {
		w.Reason = models.Text{}
	}
	if status.Phase == runtime.PhaseExited {
		return r.exited(ctx, w, status)
	}
	r.trackers.entry(w.ID).saw(r.config.Store.Now())
	if was {
		return r.transition(ctx, w, models.StateRunning, models.Say("The notebook can be observed again."))
	}
	if e := status.Endpoint; status.Phase == runtime.PhaseRunning && e != w.Endpoint {
		w.Endpoint = e // an adopted workspace may have another address in this process
		return r.transition(ctx, w, models.StateRunning, models.Text{})
	}
	if t := r.trackers.entry(w.ID); t.changeDue(status.Message, r.now()) {
		if err := r.transition(ctx, w, models.StateRunning, status.Message); err != nil {
			return err
		}
		t.messageWritten()
	}
	return nil
}

// unobserved is the reason that a running workspace has meanwhile.
func unobserved() models.Text {
	return models.Say("The notebook cannot be observed now: it is not known whether it still runs.")
}

func isUnobserved(w *models.Workspace) bool { return w.Reason.String() == unobserved().String() }

// notObserved says of a running workspace that it could not be observed for several times.
func (r *Reconciler) notObserved(ctx context.Context, w *models.Workspace, cause error) error {
	if isUnobserved(w) || r.trackers.entry(w.ID).failed() < unobservedSteps {
		return cause
	}
	w.Reason = unobserved()
	return errors.Join(cause, r.transition(ctx, w, models.StateRunning, w.Reason))
}

// exited ends a workspace whose notebook exited by itself, maybe while no server ran. It saves the
// reason and the end of the log before Stop removes them.
func (r *Reconciler) exited(ctx context.Context, w *models.Workspace, status runtime.Status) error {
	ended := r.config.Store.Now()
	if w.StartedAt != nil {
		ended = r.trackers.entry(w.ID).endedAt(status.EndedAt, *w.StartedAt, ended)
	}
	if w.Reason.Empty() {
		w.Reason, w.LogTail = status.Message, status.LogTail
		if err := r.transition(ctx, w, w.State, models.Text{}); err != nil {
			return err
		}
	}
	if err := r.config.Runtime.Stop(ctx, w.RuntimeState); err != nil {
		return err
	}
	return r.finish(ctx, w, models.StateFailed, w.Reason, ended)
}

// awaitEnd calls Stop of the runtime until nothing runs.
func (r *Reconciler) awaitEnd(ctx context.Context, w *models.Workspace) error {
	if err := r.adopt(ctx, w); err != nil {
		return err
	}
	if w.RuntimeState != nil {
		if gone, err := r.stopped(ctx, w); err != nil || !gone {
			return err
		}
		models.Failpoint("stop.gone")
	}
	state := models.StateStopped
	if w.StartFailed {
		state = models.StateFailed
	}
	return r.finish(ctx, w, state, w.Reason, r.config.Store.Now())
}

// endForRestart stops what runs of a workspace that restarts. Its next generation starts
// when that is gone, without the runs that were renewed from there.
func (r *Reconciler) endForRestart(ctx context.Context, w *models.Workspace) error {
	if gone, err := r.stopped(ctx, w); err != nil || !gone {
		return err
	}
	models.Failpoint("restart.gone")
	w.Restarting, w.RuntimeState, w.Generation = false, nil, w.Generation+1
	w.Mounts, w.FileAccess, w.Limits = "", []models.PathAccess{}, []models.Limit{}
	message := models.Say("Stopped. Starting again with the same resources.")
	return r.transition(ctx, w, models.StateStarting, message, func(q *store.Queries) error {
		runs, err := q.LeasedRuns(w.ID)
		for i := range runs {
			if err == nil {
				err = stopRun(q, policies.System("reconciler"), &runs[i], models.Say("Its workspace was restarted."))
			}
		}
		return err
	})
}

// stopped calls Stop of the runtime, and reports whether nothing runs any more.
func (r *Reconciler) stopped(ctx context.Context, w *models.Workspace) (bool, error) {
	if err := r.config.Runtime.Stop(ctx, w.RuntimeState); err != nil {
		return false, err
	}
	status, err := r.config.Runtime.Poll(ctx, w.RuntimeState)
	return status.Phase == runtime.PhaseExited, err
}

// adopt finds what may have been launched for w although its state was not saved:
// the server crashed in between, the start failed, or the member stopped it.
func (r *Reconciler) adopt(ctx context.Context, w *models.Workspace) error {
	if w.RuntimeState != nil {
		return nil
	}
	if namer, ok := r.config.Runtime.(runtime.Namer); ok {
		w.RuntimeState = namer.StateOf(w.ProjectID, w.ID, w.Generation)
		return nil
	}
	instances, err := r.config.Runtime.List(ctx)
	for _, i := range instances {
		if i.Workspace == w.ID && i.Generation == w.Generation {
			w.RuntimeState = i.State
		}
	}
	return err
}

// finish ends w, which ran until ended, and releases its shares, in one transaction.
func (r *Reconciler) finish(ctx context.Context, w *models.Workspace, state models.WorkspaceState, reason models.Text,
	ended time.Time) error {
	from := w.State
	w.State, w.Reason, w.EndedAt, w.RuntimeState = state, reason, &ended, nil
	w.Endpoint, w.Progress, w.Restarting = models.Endpoint{}, 0, false
	message := models.Say("Stopped. Its shares were released.")
	if state == models.StateFailed {
		message = models.Say("Failed: %s", reason)
	}
	err := r.transition(ctx, w, from, message, func(q *store.Queries) error { return r.config.Pool.ReleaseAt(q, w.HolderID, ended) })
	if err == nil {
		r.trackers.Delete(w.ID)
	}
	return err
}
