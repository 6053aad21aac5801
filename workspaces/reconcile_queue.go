package workspaces

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// queuePeriod is the maximum time between two services of the queue.
const queuePeriod = 5 * time.Second

// serveQueue places queued holders in the order of the queue, within what the pool and
// the members' limits have available. A holder that does not fit stays queued with its
// reason; the pool decides which later ones are placed before it (backfill).
//
// Without a commit since the last call it only acts every queuePeriod, because a
// period of time may have ended.
func (r *Reconciler) serveQueue(ctx context.Context) error {
	now := r.now()
	if !r.queueChanged.Swap(false) && now.Sub(r.queueServedAt) < queuePeriod {
		return nil
	}
	r.queueServedAt = now
	entries, err := r.config.Pool.QueueEntries(r.config.Store.Read(ctx))
	if err != nil {
		r.queueChanged.Store(true)
		return err
	}
	return forEach(entries, func(e models.QueueEntry) error { return r.place(ctx, e.Claim, e.Decision) })
}

// place places one queued holder if possible; d is the pool's decision in its turn. It
// checks without a lock first, which costs no write when nothing has changed.
func (r *Reconciler) place(ctx context.Context, c models.Claim, d models.Decision) error {
	blocked, err := blocked(r.config.Store.Read(ctx), c)
	if err != nil {
		return err
	}
	if blocked.Empty() && d.Outcome != models.OutcomeGranted {
		blocked = d.Explanation
	}
	if !blocked.Empty() {
		if blocked.String() == c.Reason.String() {
			return nil
		}
		return r.config.Store.InTx(ctx, func(q *store.Queries) error { return q.SetWaitReason(c.ID, blocked) })
	}
	return r.config.Store.InTx(ctx, func(q *store.Queries) error { return r.placeNow(q, c) })
}

// placeNow checks again under the locks, and places the holder.
func (r *Reconciler) placeNow(q *store.Queries, c models.Claim) error {
	if _, err := q.LockProject(store.AllProjects, c.ProjectID); err != nil {
		return err
	}
	c, err := q.Claim(c.ID)
	if err != nil || c.Phase != models.HolderQueued {
		return err
	}
	if _, err := q.Eviction(c.ID); models.KindOf(err) != models.KindNotFound {
		return err // the next resync evicts it
	}
	if blocked, err := blocked(q, c); err != nil || !blocked.Empty() {
		return err
	}
	decision, err := r.config.Pool.Claim(q, c)
	if err != nil || decision.Outcome != models.OutcomeGranted {
		return err
	}
	return r.schedule(q, c, decision)
}

// schedule starts a placed holder by its kind.
func (r *Reconciler) schedule(q *store.Queries, c models.Claim, d models.Decision) error {
	if c.Kind == models.HolderRun {
		run, err := q.RunOf(c.ID)
		if err != nil {
			return err
		}
		return scheduleRun(q, r.config.Pool, &run, d)
	}
	w, err := q.WorkspaceOf(c.ID)
	if err != nil {
		return err
	}
	return schedule(q, r.config.Pool, &w, d)
}

// blocked returns by which limit or quota a queued holder cannot start now; empty when
// there is none.
func blocked(q *store.Queries, c models.Claim) (models.Text, error) {
	m, err := q.MemberView(store.AllProjects, c.ProjectID, c.MemberID)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		return models.Say("the member has left the project"), nil
	}
	if err != nil {
		return models.Text{}, err
	}
	project, err := q.Project(store.AllProjects, c.ProjectID)
	if err != nil {
		return models.Text{}, err
	}
	use, err := useOf(q, project, m)
	if err != nil {
		return models.Text{}, err
	}
	if over := use.ExceededBy(c.Demand.Resources()); len(over) > 0 {
		e := over[0]
		requested, remaining := models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Remaining)
		if e.OfProject {
			return models.Say("%s: %s requested; %s of the project's quota remaining", e.Label, requested, remaining), nil
		}
		return models.Say("%s: %s requested; %s of the role's limit remaining", e.Label, requested, remaining), nil
	}
	return models.Text{}, nil
}
