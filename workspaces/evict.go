package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
)

// evict stops the workspaces of members, roles, accounts and projects whose
// right to them has ended: first those that wait, then those that start, then those
// that run; of each the newest first, so that the longest work is disturbed
// last.
func (r *Reconciler) evict(ctx context.Context) error {
	list, err := r.store.Read(ctx).Evictions()
	if err != nil {
		return err
	}
	var failed []error
	for _, e := range list {
		if err := r.evictOne(ctx, e.Workspace); err != nil && models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// evictOne looks once more, under the lock that every change of a period or a
// membership takes: who has got more time in between keeps the workspace.
func (r *Reconciler) evictOne(ctx context.Context, w models.Workspace) error {
	return r.tx(ctx, func(q *models.Queries) error {
		if err := q.LockProjectRow(w.ProjectID); err != nil {
			return err
		}
		e, err := q.Eviction(w.ID)
		if err != nil {
			return notThere(err)
		}
		return stop(q, policies.System("reconciler"), &e.Workspace, evicted(e, q.Now()))
	})
}

// notThere is nil for what is not found.
func notThere(err error) error {
	if models.KindOf(err) == models.KindNotFound {
		return nil
	}
	return err
}

// evicted says why a workspace may not go on; one that waited was cancelled.
func evicted(e models.Eviction, now time.Time) models.Text {
	if e.State.Holding() {
		return models.Say("Stopped: %s.", lost(e, now))
	}
	return models.Say("Cancelled while it waited: %s.", lost(e, now))
}

// lost is what has ended, the first thing where there are several.
func lost(e models.Eviction, now time.Time) models.Text {
	if e.Disabled {
		return models.Say("the account is disabled")
	}
	what, first := models.Say("the project's period of use begins only on %s", models.Moment(e.StartsAt)), now
	if e.Barred && !e.StartsAt.After(now) {
		what = models.Say("the role in the project permits no workspaces any more")
	}
	before := func(end *time.Time) bool {
		if end == nil || end.After(first) {
			return false
		}
		first = *end
		return true
	}
	if before(e.EndsAt) {
		what = models.Say("the project's period of use ended on %s", models.Moment(first))
	}
	if before(e.Until) {
		what = models.Say("the participation in the project ended on %s", models.Moment(first))
	}
	if before(e.RemovedAt) {
		what = models.Say("the membership was ended on %s", models.Moment(first))
	}
	return what
}

// Ending is when a workspace is stopped, and why, as far as that is known.
type Ending struct {
	At       time.Time
	Deadline bool // the participation ends first; otherwise the project does
}

// endingOf is the first end of a term; nil when it has none.
func endingOf(t models.Term) *Ending {
	switch {
	case t.Until != nil && (t.EndsAt == nil || t.Until.Before(*t.EndsAt)):
		return &Ending{At: *t.Until, Deadline: true}
	case t.EndsAt != nil:
		return &Ending{At: *t.EndsAt}
	default:
		return nil
	}
}

// Why says why a workspace stops at its ending.
func (e Ending) Why() models.Text {
	if e.Deadline {
		return models.Say("its member's participation ends then")
	}
	return models.Say("the project's period of use ends then")
}
