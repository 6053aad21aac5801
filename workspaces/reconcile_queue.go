package workspaces

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// queuePeriod is the maximum time between two services of the queue.
const queuePeriod = 5 * time.Second

// serveQueue places queued workspaces in the order of the queue, within what the
// pool and the members' limits have available. A workspace that does not fit
// stays queued with its reason; the pool decides which later ones are placed
// before it (backfill).
//
// Without a commit since the last call it only acts every queuePeriod, because a
// period of time may have ended.
func (r *Reconciler) serveQueue(ctx context.Context) error {
	now := r.config.Store.Now()
	if !r.queueChanged.Swap(false) && now.Sub(r.queueServedAt) < queuePeriod {
		return nil
	}
	r.queueServedAt = now
	entries, err := r.config.Pool.QueueEntries(r.config.Store.Read(ctx))
	if err != nil {
		r.queueChanged.Store(true)
		return err
	}
	queued, err := r.config.Store.Read(ctx).WorkspacesIn(models.StateQueued)
	if err != nil {
		r.queueChanged.Store(true)
		return err
	}
	byHolder := make(map[int64]models.Workspace, len(queued))
	for _, w := range queued {
		byHolder[w.HolderID] = w
	}
	return forEach(entries, func(e models.QueueEntry) error {
		if w, ok := byHolder[e.ID]; ok {
			return r.place(ctx, w, e.Decision)
		}
		return nil
	})
}

// place places one queued workspace if possible; d is the pool's decision in its turn. It
// checks without a lock first, which costs no write when nothing has changed.
func (r *Reconciler) place(ctx context.Context, w models.Workspace, d models.Decision) error {
	blocked, err := r.blocked(r.config.Store.Read(ctx), w)
	if err != nil {
		return err
	}
	if blocked.Empty() && d.Outcome != models.OutcomeGranted {
		blocked = d.Explanation
	}
	if !blocked.Empty() {
		if blocked.String() == w.Reason.String() {
			return nil
		}
		w.Reason = blocked
		return r.transition(ctx, &w, models.StateQueued, models.Text{})
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		if _, err := q.LockProject(store.AllProjects, w.ProjectID); err != nil {
			return err
		}
		now, err := q.Workspace(store.AllProjects, w.ID)
		if err != nil || now.State != models.StateQueued {
			return err
		}
		if _, err := q.Eviction(now.ID); models.KindOf(err) != models.KindNotFound {
			return err // the next resync evicts it
		}
		if blocked, err := r.blocked(q, now); err != nil || !blocked.Empty() {
			return err
		}
		decision, err := r.config.Pool.Claim(q, now.Claim())
		if err != nil || decision.Outcome != models.OutcomeGranted {
			return err
		}
		return schedule(q, r.config.Pool, &now, decision)
	})
}

// blocked returns by which limit or quota a queued workspace cannot start now;
// empty when there is none.
func (r *Reconciler) blocked(q *store.Queries, w models.Workspace) (models.Text, error) {
	m, err := q.MemberView(store.AllProjects, w.ProjectID, w.MemberID)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		return models.Say("the member has left the project"), nil
	}
	if err != nil {
		return models.Text{}, err
	}
	project, err := q.Project(store.AllProjects, w.ProjectID)
	if err != nil {
		return models.Text{}, err
	}
	use, err := useOf(q, project, m)
	if err != nil {
		return models.Text{}, err
	}
	if over := use.ExceededBy(w.Demand.Resources()); len(over) > 0 {
		e := over[0]
		requested, remaining := models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Remaining)
		if e.OfProject {
			return models.Say("%s: %s requested; %s of the project's quota remaining", e.Label, requested, remaining), nil
		}
		return models.Say("%s: %s requested; %s of the role's limit remaining", e.Label, requested, remaining), nil
	}
	return models.Text{}, nil
}
