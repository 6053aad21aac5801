package workspaces

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces/idleness"
)

const (
	observePeriod  = 15 * time.Second // between observations of a workspace
	observeTimeout = 5 * time.Second  // of one observation
	observers      = 16               // concurrent observations
	savePeriod     = time.Minute      // between updates of when a working workspace last worked
	freshGPU       = 2 * time.Minute  // age of a measurement of a GPU at most
)

// watchIdleness observes all running workspaces until ctx ends. It reminds the users
// of idle ones, and stops those that stay idle.
func (r *Reconciler) watchIdleness(ctx context.Context) {
	r.observed = map[int64]observed{}
	wait.UntilWithContext(ctx, func(ctx context.Context) { r.logError(ctx, r.observeAll(ctx)) }, observePeriod)
}

// observeAll observes every running workspace once.
func (r *Reconciler) observeAll(ctx context.Context) error {
	q := r.config.Store.Read(ctx)
	running, err := q.WorkspacesIn(models.StateRunning)
	if err != nil {
		return err
	}
	gpus, err := q.GPUUtilisation(r.config.Store.Now().Add(-freshGPU))
	if err != nil {
		return err
	}
	runs, err := q.RunsIn(models.LiveRuns...) // one that waits for its GPUs needs its environment, too
	if err != nil {
		return err
	}
	worked := lastWorked(runs, r.config.Store.Now())
	observations := make([]*idleness.Observation, len(running))
	workqueue.ParallelizeUntil(ctx, observers, len(running), func(i int) {
		observations[i] = r.observe(ctx, running[i], gpus[running[i].ID])
		if at := worked[running[i].ID]; !at.IsZero() && observations[i] != nil && running[i].Demand.GPUs == 0 {
			observations[i].Ran = new(observations[i].At.Sub(at))
		}
	})
	next := make(map[int64]observed, len(running))
	failed := []error{r.saveTelemetry(ctx, running, observations, gpus)}
	for i, w := range running {
		o, last, state := observations[i], r.observed[w.ID], idleStateOf(w)
		if o == nil { // unknown is not idle
			next[w.ID] = last
			continue
		}
		if last.state.WorkedAt.After(state.WorkedAt) {
			state.WorkedAt, state.Signal = last.state.WorkedAt, last.state.Signal
		}
		state = state.Observe(last.observation, *o)
		next[w.ID] = observed{o, state}
		if err := r.applyIdleness(ctx, w, state, o.At, last.observation == nil); models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	r.observed = next
	return errors.Join(failed...)
}

// lastWorked is when runs in the environment of each workspace last worked. One with a lease, such as
// the kernel of a notebook, tells that itself; another one counts from its request to its end.
func lastWorked(runs []models.Run, now time.Time) map[int64]time.Time {
	last := map[int64]time.Time{}
	for _, r := range runs {
		at := now
		if r.LeaseSeconds > 0 && !r.Attached {
			at = runIdleState(r).WorkedAt
		}
		if r.WorkspaceID != nil && at.After(last[*r.WorkspaceID]) {
			last[*r.WorkspaceID] = at
		}
	}
	return last
}

// observe returns what a workspace shows; nil when that is not known.
func (r *Reconciler) observe(ctx context.Context, w models.Workspace, gpu int64) *idleness.Observation {
	ctx, cancel := context.WithTimeout(ctx, observeTimeout)
	defer cancel()
	o, err := r.config.Activity(ctx, w.Endpoint, w.Secret)
	if err != nil {
		r.config.Logger.DebugContext(ctx, "activity is not known", "workspace", w.ID, "err", err)
		return nil
	}
	o.At, o.GPU = r.config.Store.Now(), gpu
	return &o
}

// applyIdleness stores the state of a workspace, and reminds its user or stops it if that
// is due, unless somebody has kept or stopped it since it was read. The first look, as after a
// restart of the server, stops none: what computes shows only between two.
func (r *Reconciler) applyIdleness(ctx context.Context, read models.Workspace, after idleness.State, now time.Time, first bool) error {
	action, stop := IdleLimit(read).Next(after, now)
	switch action {
	case idleness.Stop:
		if first {
			return nil
		}
	case idleness.Remind:
		after.RemindedAt = &now
	case idleness.Clear:
		after.RemindedAt = nil
	case idleness.Nothing:
		if read.WorkedAt != nil && !saveDue(after.WorkedAt.Sub(*read.WorkedAt).Abs(), now.Sub(after.WorkedAt)) {
			return nil
		}
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		w, err := q.LockWorkspace(store.AllProjects, read.ID)
		if err != nil || w.State != models.StateRunning || !idleStateOf(w).WorkedAt.Equal(idleStateOf(read).WorkedAt) {
			return models.IgnoreNotFound(err)
		}
		if action == idleness.Stop {
			minutes := int64(time.Duration(IdleLimit(w)) / time.Minute)
			return stopWorkspace(q, policies.System("reconciler"), &w, models.Say("Stopped: idle for %d minutes.", minutes))
		}
		if err := saveIdleness(q, w, after); err != nil || action != idleness.Remind {
			return err
		}
		return notifyOwner(q, w, models.NotificationWorkspaceIdle,
			models.Say("The workspace %s is idle. It will be stopped on %s unless you use it or keep it running.", w.Name, models.Instant{At: stop}))
	})
}

// saveIdleness stores the state of a workspace that is locked.
func saveIdleness(q *store.Queries, w models.Workspace, s idleness.State) error {
	reminded := w.RemindedAt != nil
	w.WorkedAt, w.WorkSignal, w.RemindedAt = &s.WorkedAt, string(s.Signal), s.RemindedAt
	return q.SaveIdleness(w, reminded != (s.RemindedAt != nil))
}

// saveDue reports whether to store when a workspace last worked, which differs from
// what is stored: once in a while when it works, and when it has stopped to work. Ages
// that a notebook reports vary by less than a second.
func saveDue(differs, rests time.Duration) bool {
	return differs >= savePeriod || differs >= time.Second && rests >= observePeriod
}

// IdleLimit is for how long a workspace may be idle: the shorter of the two limits for
// one with GPUs. Of a workspace from before there were limits it is 0.
func IdleLimit(w models.Workspace) idleness.Limit {
	limit := limitOf(w.Target, "idle_minutes")
	if gpu := limitOf(w.Target, "gpu_idle_minutes"); w.Demand.GPUs > 0 && gpu > 0 && (limit == 0 || gpu < limit) {
		limit = gpu
	}
	return limit
}

// limitOf is a limit of launch parameters.
func limitOf(target []models.Parameter, name string) idleness.Limit {
	n, _ := strconv.ParseInt(parameter(target, name), 10, 64)
	return idleness.Limit(time.Duration(n) * time.Minute)
}

func idleStateOf(w models.Workspace) idleness.State {
	s := idleness.State{Signal: idleness.Signal(w.WorkSignal), RemindedAt: w.RemindedAt}
	if at := cmp.Or(w.WorkedAt, w.StartedAt); at != nil {
		s.WorkedAt = *at
	}
	return s
}

// runIdleState is the state of a run with a lease by which it is ended as idle.
func runIdleState(r models.Run) idleness.State {
	s := idleness.State{Signal: idleness.Code, RemindedAt: r.RemindedAt}
	if at := cmp.Or(r.WorkedAt, r.StartedAt); at != nil {
		s.WorkedAt = *at
	}
	return s
}

// Idleness is how idle a workspace is.
type Idleness struct {
	Limit    idleness.Limit  // 0: it is never stopped as idle
	Known    bool            // its activity is known
	WorkedAt time.Time       // when it last worked; zero if not known
	Signal   idleness.Signal // what showed that
	Reminded bool            // its user was told that it will be stopped, and can keep it
	StopsAt  *time.Time      // unless it works before; nil: never, or not known
}

// idlenessOf is the idleness of a running workspace.
func idlenessOf(w models.Workspace, now time.Time) Idleness {
	i := Idleness{Limit: IdleLimit(w), Known: w.WorkedAt != nil}
	if !i.Known {
		return i
	}
	s := idleStateOf(w)
	i.WorkedAt, i.Signal, i.Reminded = s.WorkedAt, s.Signal, s.RemindedAt != nil
	if _, stop := i.Limit.Next(s, now); !stop.IsZero() {
		i.StopsAt = &stop
	}
	return i
}

// Keep counts as work: the workspace is stopped as idle only after another whole limit.
func (s *Service) Keep(ctx context.Context, actor policies.Actor, id int64) (w models.Workspace, err error) {
	if w, err = s.authorize(ctx, actor, id, policies.WorkspaceStop); err != nil {
		return w, err
	}
	return w, s.access.WriteOwned(ctx, s.store, actor, w.UserID, w.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if w, err = q.LockWorkspace(store.AllProjects, id); err != nil {
			return err
		}
		switch {
		case w.State != models.StateRunning:
			return models.Conflict("This workspace is %s. Only a running workspace can be kept.", w.State.Words())
		case IdleLimit(w) == 0:
			return models.Conflict("This workspace is not stopped when it is idle.")
		}
		if err := saveIdleness(q, w, idleness.State{WorkedAt: q.Now(), Signal: idleness.Kept}); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "keep", Object: "workspace", ID: w.ID, Project: w.ProjectID})
	})
}
