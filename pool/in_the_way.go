package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/timeline"
)

// InTheWay lists the holders whose time is over and that do not leave what is reserved until a moment. Who fits beside it
// goes on; where not all fit, those whose time was over last do.
func (s *Scheduler) InTheWay(q *store.Queries, at time.Time) ([]models.Claim, error) {
	overdue, err := q.OverdueBesideReservations(at)
	if err != nil || len(overdue) == 0 {
		return nil, err
	}
	snap, err := s.load(q)
	return snap.inTheWay(overdue, at), err
}

func (s snapshot) inTheWay(overdue []models.Claim, at time.Time) (list []models.Claim) {
	shares := map[int64][]store.ShareView{} // by holder, of those whose time is over
	staying := map[int64]timeline.Amount{}  // by device, outside reservations
	stay := func(share store.ShareView) {
		a := staying[share.DeviceID]
		staying[share.DeviceID] = timeline.Amount{Cores: a.Cores + share.Cores, MemoryMiB: a.MemoryMiB + share.MemoryMiB}
	}
	for _, share := range s.shares {
		switch {
		case share.GrantID != nil: // it takes what is reserved, and ends with that
		case share.EndsBy == nil || share.EndsBy.After(at):
			stay(share)
		default: // also of those that are being stopped, which are not among the overdue
			shares[share.HolderID] = append(shares[share.HolderID], share)
		}
	}
	latest := func(c models.Claim) (end time.Time) {
		for _, share := range shares[c.ID] {
			end = *share.EndsBy
		}
		return end
	}
	slices.SortStableFunc(overdue, func(a, b models.Claim) int { return latest(b).Compare(latest(a)) })
	for _, c := range overdue {
		if slices.ContainsFunc(shares[c.ID], func(share store.ShareView) bool { return !s.fitsBeside(share, staying[share.DeviceID], at) }) {
			list = append(list, c)
			continue
		}
		for _, share := range shares[c.ID] {
			stay(share)
		}
	}
	return list
}

// fitsBeside reports whether a share that stays, beside others, leaves what is reserved of its device until a moment.
func (s snapshot) fitsBeside(share store.ShareView, others timeline.Amount, at time.Time) bool {
	d, m := s.device(share.DeviceID)
	var reserved timeline.Timeline
	for _, g := range m.reservedOf(d.ID) {
		if !g.EndsAt.After(s.now) || g.StartsAt.After(at) {
			continue
		}
		if d.Exclusive() || !d.Mixed && g.ProjectID != share.ProjectID {
			return false
		}
		reserved.Add(spanOf(g.StartsAt, g.EndsAt), timeline.Amount{Cores: g.Cores, MemoryMiB: g.MemoryMiB})
	}
	most := reserved.Max(spanOf(s.now, at.Add(time.Microsecond)))
	return most.Cores+others.Cores+share.Cores <= d.Cores && most.MemoryMiB+others.MemoryMiB+share.MemoryMiB <= d.MemoryMiB
}
