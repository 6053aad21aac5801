package broker

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// mostConflicts is how many of the reservations in the way of a request are named.
const mostConflicts = 5

// conflicts are the first reservations on the GPUs that a request cannot have from its earliest start; changed is the
// reservation that is to be changed, and the zero value that of a new request.
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
	span := timeline.Span{From: from.UnixMicro(), Until: until.UnixMicro()}
	var taken []int64
	for _, d := range devices {
		large := d.Capacity.Cores >= each.Cores && d.Capacity.MemoryMiB >= each.MemoryMiB // enough at any time
		if large && o.calendar.FreeUntil(timeline.Grant{Device: d.ID, Amount: each, Span: span}) < span.Until {
			taken = append(taken, d.ID)
		}
	}
	return s.reservationsOn(q, actor, taken, from, until, changed.ID)
}

// reservationsOn are the first reservations on devices in a span, except one. Of those that the actor may not see only
// amounts and times are told.
func (s *Service) reservationsOn(q *store.Queries, actor policies.Actor, devices []int64, from, until time.Time, except int64) (
	list []models.ReservationView, err error) {
	if len(devices) == 0 {
		return nil, nil
	}
	list, err = q.ReservationsOn(devices, from, until, except, mostConflicts)
	for i, r := range list {
		if !s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceRead) {
			list[i] = models.ReservationView{Reservation: models.Reservation{GPUs: r.GPUs, Cores: r.Cores, StartsAt: r.StartsAt, EndsAt: r.EndsAt}}
		}
	}
	return list, err
}
