package workspaces

import (
	"context"
	"errors"
	"time"

	"weir/models"

	"weir/workspaces/runtime"
)

// partFilesPeriod is the time between searches for files that no deployment uses.
const partFilesPeriod = time.Minute

// sweepParts ends and removes what runs although no part of a deployment says so.
func (r *Reconciler) sweepParts(ctx context.Context) error {
	now := r.now()
	if within(orphanPeriod, r.partsSweptAt, now) {
		return nil
	}
	instances, err := r.config.Parts.List(ctx)
	if err != nil {
		return err
	}
	rows, err := r.config.Store.Read(ctx).PartsInUse()
	if err != nil {
		return err
	}
	r.partsSweptAt = now
	err = r.sweepPartFiles(ctx, now)
	wanted := map[int64]bool{}
	for _, p := range rows {
		wanted[p.ID] = true
	}
	return errors.Join(err, forEach(instances, func(i runtime.Instance) error {
		switch {
		case wanted[i.Workspace]:
			return nil
		case i.Ended:
			return r.config.Parts.Remove(ctx, i.State)
		default:
			r.partsSweptAt = time.Time{} // until it is gone
			return r.config.Parts.Stop(ctx, i.State)
		}
	}))
}

// sweepPartFiles removes the files that no deployment uses. Only the leader does that.
func (r *Reconciler) sweepPartFiles(ctx context.Context, now time.Time) error {
	if within(partFilesPeriod, r.partFilesSweptAt, now) {
		return nil
	}
	r.partFilesSweptAt = now
	return r.config.Served.Sweep(ctx, func(ctx context.Context) (ids []int64, err error) {
		live, err := r.config.Store.Read(ctx).DeploymentsIn(models.LiveDeployments...)
		for _, d := range live {
			ids = append(ids, d.ID)
			for _, other := range []*int64{d.FallbackID, d.RestoredID} {
				if other != nil && d.StartedAt == nil {
					ids = append(ids, *other)
				}
			}
		}
		return ids, err
	})
}
