package broker

import (
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// mostConflicts is how many of the reservations in the way of a request are named.
const mostConflicts = 5

// conflicts are the first reservations while which a request cannot have their GPUs, from its earliest start on; changed
// is the reservation that is to be changed, and the zero value that of a new request.
func (s *Service) conflicts(q *store.Queries, actor policies.Actor, project int64, w wish, changed models.Reservation) (
	[]models.ReservationView, error) {
	o, err := s.offer(q, project, w.demand, models.AssumedReservations{Without: []int64{changed.ID}})
	if err != nil {
		return nil, err
	}
	devices, from, until := o.devices, w.from, w.from.Add(w.duration)
	if changed.State == models.ReservationActive { // it keeps its devices
		grants, err := q.GrantsOf(changed.ID)
		if err != nil {
			return nil, err
		}
		from = changed.EndsAt
		devices = slices.DeleteFunc(devices, func(d timeline.Device) bool {
			return !slices.ContainsFunc(grants, func(g models.GrantView) bool { return g.DeviceID == d.ID && g.EndsAt.Equal(from) })
		})
	}
	each := timeline.Amount{Cores: o.demand.Cores, MemoryMiB: o.demand.GPUMemoryMiB}
	var large []int64 // with enough at any time
	for _, d := range devices {
		if d.Capacity.Cores >= each.Cores && d.Capacity.MemoryMiB >= each.MemoryMiB {
			large = append(large, d.ID)
		}
	}
	grants, err := q.GrantsOn(large, from, until)
	if err != nil {
		return nil, err
	}
	var taking []int64
	for _, g := range grants {
		span := spanOf(g)
		span.From, span.Until = max(span.From, from.UnixMicro()), min(span.Until, until.UnixMicro())
		while := timeline.Grant{Device: g.DeviceID, Amount: each, Span: span}
		if g.ReservationID != changed.ID && o.calendar.FreeUntil(while) < span.Until {
			taking = append(taking, g.ReservationID)
		}
	}
	return s.firstReservations(q, actor, taking)
}

// firstReservations are those of reservations that begin first. Of those that the actor may not see only amounts and
// times are told.
func (s *Service) firstReservations(q *store.Queries, actor policies.Actor, ids []int64) ([]models.ReservationView, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	list, err := q.FirstReservations(ids, mostConflicts)
	for i, r := range list {
		if !s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceRead) {
			list[i] = models.ReservationView{Reservation: models.Reservation{GPUs: r.GPUs, Cores: r.Cores, StartsAt: r.StartsAt, EndsAt: r.EndsAt}}
		}
	}
	return list, err
}
