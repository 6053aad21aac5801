package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
)

// evict stops the workspaces of members, roles, accounts and projects whose
// right to them has ended: first those that wait, then those that start, then
// those that run; of each the newest first, so that the longest work is lost
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

// evictOne checks again, under the lock that every change of a period or a
// membership takes: the right may have been extended in between.
func (r *Reconciler) evictOne(ctx context.Context, w models.Workspace) error {
	return r.tx(ctx, func(q *models.Queries) error {
		if err := q.LockProjectRow(w.ProjectID); err != nil {
			return err
		}
		e, err := q.Eviction(w.ID)
		if err != nil {
			return ignoreNotFound(err)
		}
		return stopWorkspace(q, policies.System("reconciler"), &e.Workspace, evictionReason(e, q.Now()))
	})
}

// recall stops the workspaces whose shares have come to the end that the
// owner of the GPUs has set.
func (r *Reconciler) recall(ctx context.Context) error {
	list, err := r.store.Read(ctx).OverdueWorkspaces(r.store.Now())
	if err != nil {
		return err
	}
	var failed []error
	for i := range list {
		err := r.tx(ctx, func(q *models.Queries) error {
			w, err := q.Workspace(models.Everything, list[i].ID)
			if err != nil || w.State != list[i].State {
				return err
			}
			return stopWorkspace(q, policies.System("reconciler"), &w, models.Say("Stopped: the owner recalled the GPUs."))
		})
		if err != nil && models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// ignoreNotFound is nil for what is not found.
func ignoreNotFound(err error) error {
	if models.KindOf(err) == models.KindNotFound {
		return nil
	}
	return err
}

// evictionReason says why a workspace may not go on; one that waited was cancelled.
func evictionReason(e models.Eviction, now time.Time) models.Text {
	if e.State.UsesResources() {
		return models.Say("Stopped: %s.", endedRight(e, now))
	}
	return models.Say("Canceled while queued: %s.", endedRight(e, now))
}

// endedRight is which right has ended, the first where there are several.
func endedRight(e models.Eviction, now time.Time) models.Text {
	if e.Disabled {
		return models.Say("the account is disabled")
	}
	what, first := models.Say("the project's period of use does not start until %s", models.Moment(e.StartsAt)), now
	if e.RoleForbids && !e.StartsAt.After(now) {
		what = models.Say("the role in the project no longer allows workspaces")
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
		what = models.Say("membership in the project ended on %s", models.Moment(first))
	}
	if before(e.RemovedAt) {
		what = models.Say("the membership ended on %s", models.Moment(first))
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
		return models.Say("the member's membership ends then")
	}
	return models.Say("the project's period of use ends then")
}
