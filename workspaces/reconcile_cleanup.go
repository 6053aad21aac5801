package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
)

const (
	orphanPeriod = 5 * time.Second  // between searches for orphans
	sweepPeriod  = 10 * time.Minute // between removals of expired secrets
)

// within reports whether something was done within the last period.
func within(period time.Duration, done, now time.Time) bool { return now.Sub(done) < period }

// stopOrphans stops what runs without a row in the database that uses resources.
func (r *Reconciler) stopOrphans(ctx context.Context) error {
	now := r.now()
	if within(orphanPeriod, r.orphansCheckedAt, now) {
		return nil
	}
	instances, err := r.config.Runtime.List(ctx)
	if err != nil || len(instances) == 0 {
		r.orphansCheckedAt = now
		return err
	}
	live, err := r.config.Store.Read(ctx).WorkspacesIn(models.InUseStates...)
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
		r.config.Logger.WarnContext(ctx, "stopping a workspace that no row wants", "workspace", i.Workspace, "generation", i.Generation)
		if err := r.config.Runtime.Stop(ctx, i.State); err != nil {
			failed = append(failed, err)
		}
	}
	if !pending || len(failed) > 0 {
		r.orphansCheckedAt = now
	}
	return errors.Join(failed...)
}

// sweep removes expired sessions, visits and single-use tokens.
func (r *Reconciler) sweep(ctx context.Context) error {
	now := r.now()
	if within(sweepPeriod, r.sweptAt, now) {
		return nil
	}
	r.sweptAt = now
	err := r.config.Store.InTx(ctx, func(q *store.Queries) error {
		_, err := q.DeleteExpired(q.Now())
		return err
	})
	return errors.Join(err, r.config.Store.ReserveSpace(ctx))
}
