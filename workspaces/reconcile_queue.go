package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
)

// queuePeriod is how long the queue waits for a change at most.
const queuePeriod = 5 * time.Second

// serveQueue places waiting workspaces in the order of the queue, as far as the
// pool and the members' peaks have room. What does not fit stays and says why;
// later ones that do fit pass it, as long as the pool lets them.
//
// It does nothing unless something was committed since the last time, or a
// period of time may have ended.
func (r *Reconciler) serveQueue(ctx context.Context) error {
	now := r.store.Now()
	if !r.queueChanged.Swap(false) && now.Sub(r.queueServedAt) < queuePeriod {
		return nil
	}
	r.queueServedAt = now
	turns, err := r.pool.QueueEntries(r.store.Read(ctx))
	if err != nil {
		r.queueChanged.Store(true)
		return err
	}
	var failed []error
	for _, turn := range turns {
		if err := r.place(ctx, turn); err != nil && models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// place tries one waiting workspace, at first without a lock: that costs no
// write when nothing has changed.
func (r *Reconciler) place(ctx context.Context, turn models.QueueEntry) error {
	w := turn.Workspace
	blocked, err := r.blocked(r.store.Read(ctx), w)
	if err != nil {
		return err
	}
	if blocked.Empty() && turn.Decision.Outcome != models.OutcomeGranted {
		blocked = turn.Decision.Explanation
	}
	if !blocked.Empty() {
		if blocked.String() == w.Reason.String() {
			return nil
		}
		w.Reason = blocked
		return r.transition(ctx, &w, models.StateQueued, models.Text{})
	}
	placed := false
	err = r.tx(ctx, func(q *models.Queries) error {
		placed = false
		if _, err := q.LockProject(models.Everything, w.ProjectID); err != nil {
			return err
		}
		now, err := q.Workspace(models.Everything, w.ID)
		if err != nil || now.State != models.StateQueued {
			return err
		}
		if _, err := q.Eviction(now.ID); models.KindOf(err) != models.KindNotFound {
			return err // its right has ended: the next round stops it
		}
		if blocked, err := r.blocked(q, now); err != nil || !blocked.Empty() {
			return err
		}
		a, err := r.pool.Claim(q, now)
		if err != nil || a.Outcome != models.OutcomeGranted {
			return err
		}
		placed = true
		now.State, now.Reason, now.Generation = models.StateStarting, models.Text{}, now.Generation+1
		if err := q.Transition(&now, models.StateQueued, models.Say("Scheduled. %s", a.Explanation)); err != nil {
			return err
		}
		return r.pool.Record(q, now, a)
	})
	if err == nil && placed {
		r.Resync()
	}
	return err
}

// blocked says what of the member's peak or the project's quota keeps a waiting
// workspace from starting; empty is nothing.
func (r *Reconciler) blocked(q *models.Queries, w models.Workspace) (models.Text, error) {
	project, err := q.Project(models.Everything, w.ProjectID)
	if err != nil {
		return models.Text{}, err
	}
	use, err := r.ledger.Use(q, project, w.MemberID)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		return models.Say("the member has left the project"), nil
	}
	if err != nil {
		return models.Text{}, err
	}
	if over := use.ExceededBy(w.Demand.Resources()); len(over) > 0 {
		e := over[0]
		return models.Say("%s: %s requested; %s of the role's limit or the project's quota remaining", e.Label,
			models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Remaining)), nil
	}
	return models.Text{}, nil
}
