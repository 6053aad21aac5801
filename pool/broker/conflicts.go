package broker

import (
	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// mostConflicts is how many of the reservations in the way of a request are named.
const mostConflicts = 5

// conflicts are the first reservations on the GPUs that a request cannot have from its earliest start. Of those that the
// actor may not see only amounts and times are told.
func (s *Service) conflicts(q *store.Queries, actor policies.Actor, project int64, w wish) (list []models.ReservationView, err error) {
	o, err := s.offer(q, project, w.demand, models.AssumedReservations{})
	if err != nil {
		return nil, err
	}
	until := w.from.Add(w.duration)
	each := timeline.Amount{Cores: o.demand.Cores, MemoryMiB: o.demand.GPUMemoryMiB}
	span := timeline.Span{From: w.from.UnixMicro(), Until: until.UnixMicro()}
	var taken []int64
	for _, d := range o.devices {
		large := d.Capacity.Cores >= each.Cores && d.Capacity.MemoryMiB >= each.MemoryMiB // enough at any time
		if large && o.calendar.FreeUntil(timeline.Grant{Device: d.ID, Amount: each, Span: span}) < span.Until {
			taken = append(taken, d.ID)
		}
	}
	if len(taken) == 0 {
		return nil, nil
	}
	list, err = q.ReservationsOn(taken, w.from, until, mostConflicts)
	for i, r := range list {
		if !s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceRead) {
			list[i] = models.ReservationView{Reservation: models.Reservation{GPUs: r.GPUs, Cores: r.Cores, StartsAt: r.StartsAt, EndsAt: r.EndsAt}}
		}
	}
	return list, err
}
