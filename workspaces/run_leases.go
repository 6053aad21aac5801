package workspaces

import (
	"context"
	"fmt"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/idleness"
	"weir/workspaces/runtime"
)

// RunRenewal renews the lease of a run.
type RunRenewal struct {
	Worked bool `json:"worked,omitempty" doc:"the program works now, or its user wants to keep it: it is not idle"`
}

// RenewRun renews the lease of a run, which otherwise ends.
func (s *Service) RenewRun(ctx context.Context, actor policies.Actor, id int64, in RunRenewal) (r models.Run, err error) {
	v, err := s.authorizeRun(ctx, actor, id, policies.WorkspaceStop)
	if err != nil {
		return r, err
	}
	err = s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if r, err = q.LockRun(id); err != nil {
			return err
		}
		switch {
		case r.LeaseSeconds == 0:
			return models.Conflict("This run has no lease. It needs no renewal.")
		case r.State == models.RunStopping || r.State == models.RunEnded:
			return models.Conflict("This run is already %s.", r.State.Words())
		}
		now := q.Now()
		r.RenewedAt = &now
		if in.Worked {
			r.WorkedAt, r.RemindedAt = &now, nil
		}
		return q.SaveLease(r, in.Worked && v.RemindedAt != nil)
	})
	return r, err
}

// RunIdleLimit is for how long the program of a run with a lease may be idle. Its end costs less
// than that of a workspace with GPUs: the workspace goes on, and the next cell starts another run.
func RunIdleLimit(r models.Run) idleness.Limit {
	switch {
	case r.LeaseSeconds == 0 || r.Attached:
		return 0
	case r.Demand.GPUs == 0:
		return limitOf(r.Target, "idle_minutes")
	case parameter(r.Target, "kernel_idle_minutes") == "": // it was started by an earlier version
		return IdleLimit(models.Workspace{Target: r.Target, Demand: r.Demand})
	default:
		return limitOf(r.Target, "kernel_idle_minutes")
	}
}

// idleEnd is when a running run is ended unless it works before; nil: never.
func idleEnd(r models.Run, now time.Time) *time.Time {
	if r.State != models.RunRunning {
		return nil
	}
	_, end := RunIdleLimit(r).Next(runIdleState(r), now)
	if end.IsZero() {
		return nil
	}
	return &end
}

// endUnrenewed stops a run whose lease nobody renews.
func (r *Reconciler) endUnrenewed(ctx context.Context, run models.Run) (ended bool, err error) {
	if run.LeaseSeconds == 0 || run.State == models.RunStopping || !r.unrenewed(run) {
		return false, nil
	}
	why := models.Say("Its lease was not renewed for %d seconds.", run.LeaseSeconds)
	if run.Attached {
		why = models.Say("The client that waited for it was away for %d seconds.", run.LeaseSeconds)
	}
	return true, r.stopRun(ctx, run, why, r.unrenewed)
}

// unrenewed reports whether the lease of a run is over.
func (r *Reconciler) unrenewed(run models.Run) bool {
	return r.runTrackers.entry(run.ID).expired(run.LeaseSince(), run.Lease(), r.now())
}

// endOrphans stops the runs with a lease whose workspace stops, without waiting until nobody
// has renewed them.
func (r *Reconciler) endOrphans(ctx context.Context) error {
	list, err := r.config.Store.Read(ctx).OrphanedRuns()
	if err != nil {
		return err
	}
	return forEach(list, func(run models.Run) error {
		return r.stopRun(ctx, run, models.Say("Its workspace was stopped."))
	})
}

// stopRun stops a run for a reason, if that still holds: a renewal, which changes no version,
// may have been written since the run was read.
func (r *Reconciler) stopRun(ctx context.Context, run models.Run, why models.Text, still ...func(models.Run) bool) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		latest, err := q.LockRun(run.ID)
		if err != nil || latest.Version != run.Version {
			return models.IgnoreNotFound(err)
		}
		for _, holds := range still {
			if !holds(latest) {
				return nil
			}
		}
		return stopRun(q, policies.System("reconciler"), &latest, why)
	})
}

// observeRun records how much a run uses of simulated GPUs, and that one with a lease works
// although nobody says so: its processes compute, as threads that a cell has left behind do, or
// its GPU does. It reports whether that is known: it takes two looks, of which a server that was
// away has none.
func (r *Reconciler) observeRun(ctx context.Context, run *models.Run, status runtime.RunStatus) (known bool, err error) {
	now := idleness.Observation{At: r.config.Store.Now(), CPU: status.CPU}
	var before *idleness.Observation
	if last, looked := r.runWork.Load(run.ID); looked {
		before = last.(*idleness.Observation)
		if now.At.Sub(before.At).Abs() < observePeriod {
			return false, nil
		}
	}
	r.runWork.Store(run.ID, &now)
	if err := r.saveUtilisation(ctx, run.Claim(), before, &now); err != nil || RunIdleLimit(*run) <= 0 {
		return err == nil, err
	}
	if now.GPU, err = r.config.Store.Read(ctx).GPUUtilisationOf(run.HolderID, now.At.Add(-freshGPU)); err != nil {
		return false, err
	}
	at, _ := idleness.Work(before, now)
	if !at.After(runIdleState(*run).WorkedAt) {
		return before != nil, nil
	}
	return true, r.config.Store.InTx(ctx, func(q *store.Queries) error {
		latest, err := q.LockRun(run.ID)
		if err != nil || latest.State != models.RunRunning {
			return models.IgnoreNotFound(err)
		}
		told := latest.RemindedAt != nil
		latest.WorkedAt, latest.RemindedAt = &at, nil
		*run = latest
		return q.SaveLease(latest, told)
	})
}

// watchRunIdleness reminds the user of an idle run with a lease, and ends one that stays idle.
func (r *Reconciler) watchRunIdleness(ctx context.Context, run models.Run) error {
	now, limit := r.config.Store.Now(), RunIdleLimit(run)
	action, end := limit.Next(runIdleState(run), now)
	idle := func(latest models.Run) bool { return runIdleState(latest).WorkedAt.Equal(runIdleState(run).WorkedAt) }
	switch action {
	case idleness.Stop:
		reason := models.Say("Stopped: idle for %d minutes.", int64(time.Duration(limit)/time.Minute))
		if run.Demand.GPUs > 0 {
			reason = models.Say("Idle for %d minutes. Its GPU was released.", int64(time.Duration(limit)/time.Minute))
		}
		return r.stopRun(ctx, run, reason, idle)
	case idleness.Nothing:
		return nil
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		latest, err := q.LockRun(run.ID)
		if err != nil || latest.State != models.RunRunning || !idle(latest) {
			return models.IgnoreNotFound(err)
		}
		latest.RemindedAt = nil
		if action == idleness.Remind {
			latest.RemindedAt = &now
		}
		if err := q.SaveLease(latest, true); err != nil || action != idleness.Remind {
			return err
		}
		return notifyRunIdle(q, latest, end)
	})
}

// notifyRunIdle tells the user of a run that it will be ended. The workspace in whose
// environment it runs goes on.
func notifyRunIdle(q *store.Queries, r models.Run, end time.Time) error {
	data := models.WorkspaceNotification{RunID: r.ID, ProjectID: r.ProjectID, Name: r.Name, UserID: r.UserID}
	if r.WorkspaceID != nil {
		data.WorkspaceID = *r.WorkspaceID
	}
	text := models.Say("The run %s is idle. It will be stopped on %s unless you use it or keep it running.", r.Name, models.Instant{At: end})
	if r.Demand.GPUs > 0 {
		text = models.Say("The GPU of the run %s is idle. It will be released on %s unless you use it or keep it.", r.Name, models.Instant{At: end})
	}
	return q.Notify([]int64{r.UserID}, models.Notification{Kind: models.NotificationWorkspaceIdle, Link: fmt.Sprintf("/runs/%d", r.ID),
		Text: text, Data: data})
}
