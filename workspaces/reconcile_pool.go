package workspaces

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"weir/models"
	"weir/policies"
)

// serveLine places what waits, in the order of the line, as far as the pool and the
// members' peaks have room. What does not fit stays and says why; later ones
// that do fit pass it, as long as the pool lets them.
//
// It looks only when something was committed since the last look, or a period
// of time may have ended.
func (r *Reconciler) serveLine(ctx context.Context) error {
	now := r.store.Now()
	if !r.changed.Swap(false) && now.Sub(r.served) < orphanPeriod {
		return nil
	}
	r.served = now
	turns, err := r.line.Turns(r.store.Read(ctx))
	if err != nil {
		r.changed.Store(true)
		return err
	}
	var failed []error
	for _, turn := range turns {
		if err := r.serve(ctx, turn); err != nil && models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// serve tries one waiting workspace. The look without a lock comes first: it
// costs no write when nothing has changed.
func (r *Reconciler) serve(ctx context.Context, turn models.Turn) error {
	w := turn.Workspace
	blocked, err := r.blocked(r.store.Read(ctx), w)
	if err != nil {
		return err
	}
	if blocked.Empty() && turn.Answer.Outcome != models.OutcomeGranted {
		blocked = turn.Answer.Explanation
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
			return err // its time is over: the next round stops it
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
		if err := q.Transition(&now, models.StateQueued, models.Say("Placed. %s", a.Explanation)); err != nil {
			return err
		}
		return r.books.Record(q, now, a)
	})
	if err == nil && placed {
		r.Wake()
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
		return models.Say("%s: %s asked, %s left of the role's peak or the project's quota", e.Label,
			models.Quantity(e.Name, e.Asked), models.Quantity(e.Name, e.Remaining)), nil
	}
	return models.Text{}, nil
}

// recall stops the workspaces whose shares have come to the end that the
// owner of the GPUs has set.
func (r *Reconciler) recall(ctx context.Context) error {
	list, err := r.store.Read(ctx).Overdue(r.store.Now())
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
			return stop(q, policies.System("reconciler"), &w, models.Say("Stopped: the owner of the GPUs has taken them back."))
		})
		if err != nil && models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// orphans stops what runs without a row that wants it.
func (r *Reconciler) orphans(ctx context.Context) error {
	lister, ok := r.runtime.(Lister)
	now := r.store.Now()
	if !ok || now.Sub(r.orphansSeen) < orphanPeriod {
		return nil
	}
	instances, err := lister.List(ctx)
	if err != nil || len(instances) == 0 {
		r.orphansSeen = now
		return err
	}
	live, err := r.store.Read(ctx).WorkspacesIn(models.HoldingStates...)
	if err != nil {
		return err
	}
	wanted := map[[2]int64]bool{}
	for _, w := range live {
		wanted[[2]int64{w.ID, w.Generation}] = true
	}
	pending, failed := false, []error(nil)
	for _, i := range instances {
		if wanted[[2]int64{i.Workspace, i.Generation}] {
			continue
		}
		pending = true
		r.log.WarnContext(ctx, "stopping a workspace that no row wants", "workspace", i.Workspace, "generation", i.Generation)
		if err := r.runtime.Stop(ctx, i.State); err != nil {
			failed = append(failed, err)
		}
	}
	if !pending || len(failed) > 0 {
		r.orphansSeen = now
	}
	return errors.Join(failed...)
}

// sweep removes expired sessions, visits and single-use tokens.
func (r *Reconciler) sweep(ctx context.Context) error {
	now := r.store.Now()
	if now.Sub(r.swept) < sweepPeriod {
		return nil
	}
	r.swept = now
	return r.tx(ctx, func(q *models.Queries) error {
		_, err := q.DeleteExpired(now)
		return err
	})
}

func shmOf(w models.Workspace) int64 {
	for _, p := range w.Target {
		if p.Name == "shm_mib" {
			n, _ := strconv.ParseInt(p.Value, 10, 64)
			return n
		}
	}
	return defaultShmMiB
}

func envOf(w models.Workspace) map[string]string {
	env := map[string]string{}
	for _, p := range w.Target {
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			env[name] = p.Value
		}
	}
	return env
}
