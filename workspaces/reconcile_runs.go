package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"

	"weir/workspaces/runtime"
)

// runPeriod is the maximum time between two looks at all runs.
const runPeriod = time.Second

// StepRuns requests a step of all runs. It never blocks.
func (r *Reconciler) StepRuns() {
	select {
	case r.runSteps <- struct{}{}:
	default:
	}
}

// watchRuns moves all runs towards their end, until ctx ends. They go on after it.
func (r *Reconciler) watchRuns(ctx context.Context) {
	for r.config.Runs != nil && ctx.Err() == nil {
		r.logError(ctx, errors.Join(r.stepRuns(ctx), r.stopOrphanRuns(ctx), r.refreshRuns(ctx)))
		select {
		case <-ctx.Done():
		case <-r.runSteps:
		case <-time.After(runPeriod):
		}
	}
}

func (r *Reconciler) stepRuns(ctx context.Context) error {
	live, err := r.config.Store.Read(ctx).RunsIn(models.RunStarting, models.RunRunning, models.RunStopping)
	if err != nil {
		return err
	}
	return forEach(live, func(run models.Run) error { return r.stepRun(ctx, &run) })
}

func (r *Reconciler) stepRun(ctx context.Context, run *models.Run) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	switch {
	case run.State == models.RunStarting:
		return r.startRun(ctx, run)
	case run.State == models.RunStopping && run.RuntimeState == nil:
		return r.adoptRun(ctx, run)
	}
	status, err := r.config.Runs.Poll(run.RuntimeState)
	if err != nil {
		return err
	}
	if status.Ended {
		return r.finishRun(ctx, run, status)
	}
	if run.State == models.RunStopping {
		return r.config.Runs.Stop(run.RuntimeState)
	}
	if end := run.EndsAt(); end != nil && !r.config.Store.Now().Before(*end) {
		return r.config.Store.InTx(ctx, func(q *store.Queries) error {
			now := *run
			return stopRun(q, policies.System("reconciler"), &now, models.Say("The time limit of %s was reached.",
				(time.Duration(run.TimeLimitSeconds)*time.Second).String()))
		})
	}
	return nil
}

// startRun starts the command and saves the runtime's state. It is repeated after a crash;
// the runtime starts a run only once.
func (r *Reconciler) startRun(ctx context.Context, run *models.Run) error {
	spec, err := r.runSpec(ctx, *run)
	if err != nil {
		return r.runFailed(ctx, run, err)
	}
	models.Failpoint("run.intent")
	state, err := r.config.Runs.Start(ctx, run.ID, spec, run.Command)
	if err != nil {
		return r.runFailed(ctx, run, err)
	}
	models.Failpoint("run.launched")
	run.State, run.RuntimeState, run.StartedAt = models.RunRunning, state, new(r.config.Store.Now())
	return r.transitionRun(ctx, run, models.RunStarting)
}

// runFailed ends a run that cannot be started, unless a retry may succeed. Something may
// have been started, so its shares are in use until that is gone.
func (r *Reconciler) runFailed(ctx context.Context, run *models.Run, cause error) error {
	if ctx.Err() != nil || models.KindOf(cause) == models.KindUnavailable {
		return cause
	}
	why := models.Say("the command could not be started")
	var e *models.Error
	if errors.As(cause, &e) && e.Kind != models.KindInternal {
		why = e.Message // the error is for people
	}
	run.State, run.Reason = models.RunStopping, models.Say("The run failed: %s", why)
	return errors.Join(cause, r.transitionRun(ctx, run, models.RunStarting))
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
			return r.transitionRun(ctx, run, models.RunStopping)
		}
	}
	return r.finishRun(ctx, run, runtime.RunStatus{ExitCode: -1})
}

// finishRun records how a run has ended and releases its shares, in one transaction.
func (r *Reconciler) finishRun(ctx context.Context, run *models.Run, status runtime.RunStatus) error {
	from := run.State
	run.State, run.EndedAt = models.RunEnded, new(r.config.Store.Now())
	if status.Limits != nil {
		run.Limits = status.Limits
	}
	if status.ExitCode >= 0 {
		run.ExitCode = new(int64(status.ExitCode))
	}
	switch {
	case status.OutOfMemory && run.Reason.Empty():
		run.Reason = models.Say("A process was killed because the run reached its memory limit.")
	case status.ExitCode < 0 && run.Reason.Empty():
		run.Reason = models.Say("The exit code is not known: the machine has restarted, or the sandbox was killed.")
	}
	models.Failpoint("run.ended")
	if err := r.transitionRun(ctx, run, from, func(q *store.Queries) error { return r.config.Pool.Release(q, run.HolderID) }); err != nil {
		return err
	}
	return r.deleteSurplus(ctx, run.MemberID)
}

// deleteSurplus deletes the oldest ended runs of a member, so that their logs are bounded.
func (r *Reconciler) deleteSurplus(ctx context.Context, member int64) error {
	surplus, err := r.config.Store.Read(ctx).SurplusRuns(member, keptRuns)
	if err != nil {
		return err
	}
	return forEach(surplus, func(run models.Run) error {
		if run.RuntimeState != nil {
			if err := r.config.Runs.Remove(run.RuntimeState); err != nil {
				return err
			}
		}
		return r.config.Store.InTx(ctx, func(q *store.Queries) error { return q.DeleteRun(run) })
	})
}

// transitionRun writes run, whose state was from, and then calls the functions in the same
// transaction.
func (r *Reconciler) transitionRun(ctx context.Context, run *models.Run, from models.RunState, then ...func(*store.Queries) error) error {
	version := run.Version
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		run.Version = version // the transaction may be retried
		err := q.TransitionRun(run, from)
		for _, fn := range then {
			if err == nil {
				err = fn(q)
			}
		}
		return err
	})
}

// stopOrphanRuns stops what runs without a row in the database that uses resources.
func (r *Reconciler) stopOrphanRuns(ctx context.Context) error {
	now := r.config.Store.Now()
	if now.Sub(r.orphanRunsCheckedAt) < orphanPeriod {
		return nil
	}
	instances, err := r.config.Runs.List(ctx)
	if err != nil {
		return err
	}
	live, err := r.config.Store.Read(ctx).RunsIn(models.RunStarting, models.RunRunning, models.RunStopping)
	if err != nil {
		return err
	}
	wanted := map[int64]bool{}
	for _, run := range live {
		wanted[run.ID] = true
	}
	r.orphanRunsCheckedAt = now
	return forEach(instances, func(i runtime.Instance) error {
		if wanted[i.Workspace] {
			return nil
		}
		r.orphanRunsCheckedAt = time.Time{} // until it is gone
		r.config.Logger.WarnContext(ctx, "stopping a run that no row wants", "run", i.Workspace)
		return r.config.Runs.Stop(i.State)
	})
}

// refreshRuns keeps the mounts of all running runs as the rules are.
func (r *Reconciler) refreshRuns(ctx context.Context) error {
	now := r.config.Store.Now()
	if now.Sub(r.runsRefreshedAt) < refreshPeriod {
		return nil
	}
	r.runsRefreshedAt = now
	running, err := r.config.Store.Read(ctx).RunsIn(models.RunRunning)
	if err != nil {
		return err
	}
	return forEach(running, func(run models.Run) error {
		holder, err := r.config.Store.Read(ctx).DirectoryUser(run.ProjectID, run.MemberID)
		if err != nil {
			return err
		}
		mounts, _, err := r.config.Storage.EnsureMounts(ctx, holder)
		if err != nil {
			return err
		}
		if err = r.config.Runs.Refresh(ctx, run.RuntimeState, mounts); errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		return err
	})
}
