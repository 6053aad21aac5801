package workspaces

import (
	"cmp"
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// evict ends the holders of disabled accounts, of former members, of roles that no
// longer allow launches and of projects outside their period of use: first queued
// ones, then those that have not started, and of each the newest first, so that the
// least work is lost.
func (r *Reconciler) evict(ctx context.Context) error {
	list, err := r.config.Store.Read(ctx).Evictions()
	if err != nil {
		return err
	}
	return forEach(list, func(e store.Eviction) error { return r.evictOne(ctx, e.Claim) })
}

// evictOne checks the eviction again under the lock that every change of a
// period or a membership takes, because either may have been extended.
func (r *Reconciler) evictOne(ctx context.Context, c models.Claim) error {
	return r.config.Store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockProjectRows(c.ProjectID); err != nil {
			return err
		}
		e, err := q.Eviction(c.ID)
		if err != nil {
			return models.IgnoreNotFound(err)
		}
		return r.end(q, e.Claim, evictionReason(e, q.Now()))
	})
}

// end tells a holder, by its kind, to end.
func (r *Reconciler) end(q *store.Queries, c models.Claim, why models.Text) error {
	if c.Kind == models.HolderRun {
		run, err := q.RunOf(c.ID)
		if err != nil {
			return err
		}
		return stopRun(q, policies.System("reconciler"), &run, why)
	}
	if c.Kind == models.HolderDeployment {
		d, err := q.DeploymentOf(c.ID)
		if err != nil {
			return err
		}
		d.Updating = false
		return stopDeployment(q, policies.System("reconciler"), &d, why)
	}
	w, err := q.WorkspaceOf(c.ID)
	if err != nil {
		return err
	}
	return stopWorkspace(q, policies.System("reconciler"), &w, why)
}

// recall ends the holders whose shares have reached the end time that the
// owner of the GPUs set.
func (r *Reconciler) recall(ctx context.Context) error {
	list, err := r.config.Store.Read(ctx).OverdueHolders(r.config.Store.Now())
	if err != nil {
		return err
	}
	return r.endAll(ctx, list, announced)
}

// announced is why a holder's shares have reached their end, as it was announced.
func announced(q *store.Queries, c models.Claim) (models.Text, error) {
	shares, err := q.SharesOf(c.ID)
	for _, s := range shares {
		if s.EndsAt != nil && !s.EndsAt.After(q.Now()) && !s.EndReason.Empty() {
			return models.Say("Stopped: %s.", s.EndReason), err
		}
	}
	return models.Say("Stopped: the owner recalled the GPUs."), err
}

// stopAhead is how long before a reservation begins what must have ended is told to end.
const stopAhead = time.Minute

// endReserved ends the holders whose reservations have ended, and those that another needs to have ended.
func (r *Reconciler) endReserved(ctx context.Context) error {
	q, now := r.config.Store.Read(ctx), r.config.Store.Now()
	past, err1 := q.HoldersPastReservation(now)
	inTheWay, err2 := r.config.Pool.InTheWay(q, now.Add(stopAhead))
	if err := cmp.Or(err1, err2); err != nil {
		return err
	}
	because := func(why models.Text) func(*store.Queries, models.Claim) (models.Text, error) {
		return func(*store.Queries, models.Claim) (models.Text, error) { return why, nil }
	}
	return errors.Join(r.endAll(ctx, past, because(models.Say("Stopped: its reservation has ended."))),
		r.endAll(ctx, inTheWay, because(models.Say("Stopped: its GPU is reserved, and its time is over."))))
}

// endAll ends holders that are still in the phase in which they were read.
func (r *Reconciler) endAll(ctx context.Context, list []models.Claim,
	reason func(*store.Queries, models.Claim) (models.Text, error)) error {
	return forEach(list, func(read models.Claim) error {
		return r.config.Store.InTx(ctx, func(q *store.Queries) error {
			c, err := q.Claim(read.ID)
			if err != nil || c.Phase != read.Phase {
				return err
			}
			why, err := reason(q, c)
			if err != nil {
				return err
			}
			return r.end(q, c, why)
		})
	})
}

func evictionReason(e store.Eviction, now time.Time) models.Text {
	if e.Phase == models.HolderInUse {
		return models.Say("Stopped: %s.", evictionCause(e, now))
	}
	return models.Say("Canceled while queued: %s.", evictionCause(e, now))
}

// evictionCause returns the cause of an eviction, of several the first in time.
func evictionCause(e store.Eviction, now time.Time) models.Text {
	if e.Disabled {
		return models.Say("the account is disabled")
	}
	cause, first := models.Say("the project's period of use does not start until %s", models.Moment(e.StartsAt)), now
	if e.RoleForbids && (!e.StartsAt.After(now) || !e.StartsAt.After(e.RequestedAt)) {
		cause = models.Say("the role in the project no longer allows workspaces")
	}
	before := func(end *time.Time) bool {
		if end == nil || end.After(first) {
			return false
		}
		first = *end
		return true
	}
	if before(e.EndsAt) {
		cause = models.Say("the project's period of use ended on %s", models.EndMoment(first))
	}
	if before(e.Until) {
		cause = models.Say("membership in the project ended on %s", models.EndMoment(first))
	}
	if before(e.RemovedAt) {
		cause = models.Say("the membership ended on %s", models.EndMoment(first))
	}
	return cause
}

// ScheduledStop is the known time at which a workspace will be stopped.
type ScheduledStop struct {
	At            time.Time
	Deadline      bool  // the membership ends
	ReservationID int64 // ends; 0: none. Without both the project's period of use does
}

// scheduledStopOf returns the earlier end of a term; nil when it has none.
func scheduledStopOf(t models.Term) *ScheduledStop {
	switch {
	case t.Until != nil && (t.EndsAt == nil || t.Until.Before(*t.EndsAt)):
		return &ScheduledStop{At: *t.Until, Deadline: true}
	case t.EndsAt != nil:
		return &ScheduledStop{At: *t.EndsAt}
	default:
		return nil
	}
}

// Reason returns the reason for the stop.
func (e ScheduledStop) Reason() models.Text {
	switch {
	case e.ReservationID != 0:
		return models.Say("its reservation ends then")
	case e.Deadline:
		return models.Say("the member's membership ends then")
	default:
		return models.Say("the project's period of use ends then")
	}
}
