package workspaces

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/workspaces/runtime"
)

// runPeriod is the maximum time between two looks at all runs.
const runPeriod = time.Second

// watchRuns moves all runs towards their end, until ctx ends. They go on after it. A round
// does not wait for the steps of the one before it, so that one that takes long delays no
// other run.
func (r *Reconciler) watchRuns(ctx context.Context) {
	r.runTrackers.Clear() // of an earlier term as the leader, like the next one
	r.runWork.Clear()
	steps := runSteps{stepping: map[int64]bool{}, free: make(chan struct{}, runWorkers)}
	defer steps.wg.Wait()
	for r.config.Runs != nil && ctx.Err() == nil {
		orphans := r.endOrphans(ctx)
		live, err := r.config.Store.Read(ctx).RunsIn(models.LiveRuns...)
		present := make(map[int64]bool, len(live))
		for _, run := range live {
			present[run.ID] = true
			steps.begin(ctx, run.ID, func() {
				if err := r.stepRun(ctx, &run); models.KindOf(err) != models.KindConflict { // otherwise another transaction was first
					r.logError(ctx, err)
				}
			})
		}
		if err == nil {
			r.runTrackers.retain(present)
		}
		r.logError(ctx, errors.Join(orphans, err, r.sweepRuns(ctx), r.refreshRuns(ctx)))
		select {
		case <-ctx.Done():
		case <-r.runSteps:
		case <-time.After(runPeriod):
		}
	}
}

// runWorkers is the maximum of runs that are stepped at once.
const runWorkers = 16

// runSteps are the steps of runs that go on.
type runSteps struct {
	wg       sync.WaitGroup
	free     chan struct{} // has an element for each step
	mu       sync.Mutex
	stepping map[int64]bool
}

// begin begins a step of a run, unless one goes on or there are too many.
func (s *runSteps) begin(ctx context.Context, run int64, step func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stepping[run] {
		return
	}
	select {
	case s.free <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.stepping[run] = true
	s.wg.Go(func() {
		step()
		<-s.free
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.stepping, run)
	})
}

func (r *Reconciler) stepRun(ctx context.Context, run *models.Run) error {
	if ended, err := r.endUnrenewed(ctx, *run); ended || err != nil || run.State == models.RunQueued {
		return err
	}
	if run.State == models.RunStarting && run.RuntimeState == nil {
		return r.startRun(ctx, run)
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	if run.State == models.RunStopping && run.RuntimeState == nil {
		return r.adoptRun(ctx, run)
	}
	status, err := r.config.Runs.Poll(ctx, run.RuntimeState)
	if models.KindOf(err) == models.KindUnavailable && run.State == models.RunStarting {
		r.runTrackers.entry(run.ID).blind(r.now())
	}
	if err != nil {
		return err
	}
	r.tellPrinted(run.ID, status)
	if status.Ended {
		return r.finishRun(ctx, run, status)
	}
	r.runTrackers.entry(run.ID).saw(r.config.Store.Now())
	if run.State == models.RunStopping {
		return r.config.Runs.Stop(ctx, run.RuntimeState)
	}
	if run.State == models.RunStarting {
		return r.awaitRun(ctx, run, status)
	}
	if limit := time.Duration(run.TimeLimitSeconds) * time.Second; limit > 0 && status.Ran >= limit {
		return r.stopRun(ctx, *run, models.Say("The time limit of %s was reached.", limit.String()))
	}
	if known, err := r.observeRun(ctx, run, status); err != nil || !known {
		return err
	}
	return r.watchRunIdleness(ctx, *run)
}

// tellPrinted tells the pages of a run that it has printed more since the last look.
func (r *Reconciler) tellPrinted(run int64, status runtime.RunStatus) {
	before, known := r.printed.Swap(run, status.Printed)
	if known && before != status.Printed || !known && status.Printed > 0 {
		r.config.Store.Publish(outputTopic + strconv.FormatInt(run, 10))
	}
	if status.Ended {
		r.printed.Delete(run)
		r.runWork.Delete(run)
	}
}

// startRun starts the command and saves the runtime's state. It is repeated after a crash;
// the runtime starts a run only once.
func (r *Reconciler) startRun(ctx context.Context, run *models.Run) error {
	state, access, err := r.launchRun(ctx, run)
	if err != nil {
		return r.runFailed(ctx, run, err)
	}
	models.Failpoint("run.launched")
	run.RuntimeState, run.FileAccess = state, access
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	status, err := r.config.Runs.Poll(ctx, state)
	if err != nil || status.Stage != "" { // the state is saved, so that the run is polled from now on
		run.Reason = status.Message
		return errors.Join(err, r.transitionRun(ctx, run, models.RunStarting, models.Text{}))
	}
	return r.runStarted(ctx, run, status)
}

func (r *Reconciler) runStarted(ctx context.Context, run *models.Run, status runtime.RunStatus) error {
	at := r.config.Store.Now()
	if status.Ended { // maybe long ago, while no server ran
		at = r.endOf(*run, status)
	}
	run.State, run.Reason, run.StartedAt = models.RunRunning, models.Text{}, &at
	return r.transitionRun(ctx, run, models.RunStarting, models.Say("The command was started."))
}

// awaitRun records what the start of a run waits for, and ends one that waits for too long.
func (r *Reconciler) awaitRun(ctx context.Context, run *models.Run, status runtime.RunStatus) error {
	switch {
	case status.Stage == "":
		return r.runStarted(ctx, run, status)
	case r.runTrackers.entry(run.ID).stalled(status.Stage, r.now()):
		run.State, run.Reason = models.RunStopping, models.Say("The run failed: %s", status.Message)
		return r.transitionRun(ctx, run, models.RunStarting, run.Reason)
	case run.Reason.String() != status.Message.String():
		run.Reason = status.Message
		return r.transitionRun(ctx, run, models.RunStarting, models.Text{})
	}
	return nil
}

// launchRun starts the command, and returns what the rules of the mounted directories give.
func (r *Reconciler) launchRun(ctx context.Context, run *models.Run) (runtime.State, []models.PathAccess, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	spec, access, err := r.runSpec(ctx, *run)
	if _, readable := errors.AsType[*models.Error](err); err != nil && !readable { // of the database or the storage: possibly temporary
		err = models.Unavailable(err, "The run could not be prepared.")
	}
	if err != nil {
		return nil, nil, err
	}
	models.Failpoint("run.intent")
	state, err := r.config.Runs.Start(ctx, run.ID, spec, run.Command)
	if err != nil && ctx.Err() != nil {
		err = models.Unavailable(err, "The sandbox was not ready within %d seconds.", int64(stepTimeout/time.Second))
	}
	return state, access, err
}

// runFailed ends a run that cannot be started, unless a retry may succeed and the first
// attempt was not too long ago. Something may have been started, so its shares are in use
// until that is gone.
func (r *Reconciler) runFailed(ctx context.Context, run *models.Run, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	if models.KindOf(cause) == models.KindUnavailable && !r.runTrackers.entry(run.ID).stalled(runtime.StageLaunching, r.now()) {
		return cause
	}
	why := models.Say("the command could not be started")
	if e, ok := errors.AsType[*models.Error](cause); ok && e.Kind != models.KindInternal {
		why = e.Message // the error is for people
	}
	run.State, run.Reason = models.RunStopping, models.Say("The run failed: %s", why)
	return errors.Join(cause, r.transitionRun(ctx, run, models.RunStarting, run.Reason))
}

// adoptRun finds what may have been started for a run that is to stop although its state
// was not saved, and ends the run if that is nothing.
func (r *Reconciler) adoptRun(ctx context.Context, run *models.Run) error {
	list, err := r.config.Runs.List(ctx)
	if err != nil {
		return err
	}
	for _, i := range list {
		if i.Workspace == run.ID {
			run.RuntimeState = i.State
			return r.transitionRun(ctx, run, models.RunStopping, models.Text{})
		}
	}
	return r.finishRun(ctx, run, runtime.RunStatus{ExitCode: -1})
}

// finishRun records how a run has ended and releases its shares, in one transaction.
func (r *Reconciler) finishRun(ctx context.Context, run *models.Run, status runtime.RunStatus) error {
	from := run.State
	if from == models.RunStarting {
		run.Reason = models.Text{} // what it has waited for
	}
	ended := r.endOf(*run, status)
	run.State, run.EndedAt = models.RunEnded, &ended
	if status.Limits != nil {
		run.Limits = status.Limits
	}
	if status.ExitCode >= 0 {
		run.ExitCode = new(int64(status.ExitCode))
	}
	if status.CPU > 0 {
		run.CPUTimeMs = new(status.CPU.Milliseconds())
	}
	switch {
	case run.Reason.Empty() && !status.Message.Empty():
		run.Reason = status.Message
	case status.OutOfMemory && run.Reason.Empty():
		run.Reason = models.Say("A process was killed because the run reached its memory limit.")
	case status.ExitCode < 0 && run.Reason.Empty():
		run.Reason = models.Say("The exit code is not known: the machine has restarted, or the sandbox was killed.")
	}
	message := models.Say("Ended. Its shares were released.")
	if run.ExitCode != nil {
		message = models.Say("Ended with exit code %d. Its shares were released.", *run.ExitCode)
	}
	models.Failpoint("run.ended")
	return r.transitionRun(ctx, run, from, message, func(q *store.Queries) error { return notifyRunEnded(q, *run) },
		func(q *store.Queries) error { return r.config.Pool.ReleaseAt(q, run.HolderID, ended) })
}

// endOf is when a run has ended.
func (r *Reconciler) endOf(run models.Run, status runtime.RunStatus) time.Time {
	began := run.RequestedAt
	if run.StartedAt != nil {
		began = *run.StartedAt
	}
	return r.runTrackers.entry(run.ID).endedAt(status.EndedAt, began, r.config.Store.Now())
}

// sweepRuns stops what runs although no row says so, removes what runs without a row have
// left, and deletes the oldest ended runs of each member, so that their logs are bounded.
func (r *Reconciler) sweepRuns(ctx context.Context) error {
	now := r.now()
	if within(orphanPeriod, r.runsSweptAt, now) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	instances, err := r.config.Runs.List(ctx)
	if err != nil {
		return err
	}
	rows, err := r.config.Store.Read(ctx).RunStates()
	if err != nil {
		return err
	}
	r.runsSweptAt = now
	states, ended := map[int64]models.RunState{}, map[int64]int{}
	for _, run := range rows {
		states[run.ID] = run.State
		if run.State == models.RunEnded {
			ended[run.MemberID]++
		}
	}
	errs := []error{forEach(instances, func(i runtime.Instance) error { return r.sweepRun(ctx, i, states[i.Workspace]) })}
	for member, n := range ended {
		if n > keptRuns {
			errs = append(errs, r.deleteSurplus(ctx, member))
		}
	}
	return errors.Join(errs...)
}

// sweepRun handles what a run in a state has on the machine; without a row the state is empty.
func (r *Reconciler) sweepRun(ctx context.Context, i runtime.Instance, state models.RunState) error {
	switch {
	case !i.Ended && (state == "" || state == models.RunEnded || state == models.RunQueued):
		r.runsSweptAt = time.Time{} // until it is gone
		r.config.Logger.WarnContext(ctx, "stopping a run that no row wants", "run", i.Workspace)
		return r.config.Runs.Stop(ctx, i.State)
	case i.Ended && state == "":
		return r.config.Runs.Remove(ctx, i.State)
	default:
		return nil
	}
}

// deleteSurplus deletes the oldest ended runs of a member. A later sweep removes their logs.
func (r *Reconciler) deleteSurplus(ctx context.Context, member int64) error {
	surplus, err := r.config.Store.Read(ctx).SurplusRuns(member, keptRuns)
	if err != nil || len(surplus) == 0 {
		return err
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		return forEach(surplus, q.DeleteRun)
	})
}

// refreshRuns keeps the mounts of all running runs as the rules are.
func (r *Reconciler) refreshRuns(ctx context.Context) error {
	refresher, refreshes := r.config.Runs.(runtime.Refresher)
	now, period := r.now(), withdrawalPeriod
	if refreshes {
		period = refreshPeriod
	}
	if within(period, r.runsRefreshedAt, now) {
		return nil
	}
	r.runsRefreshedAt = now
	running, err := r.config.Store.Read(ctx).RunsIn(models.RunRunning)
	if err != nil {
		return err
	}
	r.runsUnmounted.begin()
	return forEach(running, func(run models.Run) error {
		holder, err := r.config.Store.Read(ctx).DirectoryUser(run.ProjectID, run.MemberID)
		if err != nil {
			return err
		}
		if !refreshes {
			return r.endIfWithdrawn(ctx, run, holder)
		}
		mounts, _, err := r.config.Storage.EnsureMounts(ctx, holder)
		if err == nil {
			err = refresher.Refresh(ctx, run.RuntimeState, mounts)
		}
		if r.runsUnmounted.passes(ctx, run.ID, err) {
			return err
		}
		return errors.Join(unlessUnsupported(err), r.endIfWithdrawn(ctx, run, holder))
	})
}

// endIfWithdrawn stops a run whose mounts cannot change if rules give its member less access
// to a directory than when it started.
func (r *Reconciler) endIfWithdrawn(ctx context.Context, run models.Run, holder models.DirectoryUser) error {
	path, err := r.withdrawn(ctx, holder, run.FileAccess)
	if err != nil || path == "" {
		return err
	}
	return r.stopRun(ctx, run, models.Say("Stopped: rules now give less access to %s.", path))
}
