package broker

import (
	"slices"
	"time"

	"weir/models"
)

// stateAt is the state of a reservation at a moment, also if it has not been written yet.
func (s *Service) stateAt(r models.Reservation, now time.Time) models.ReservationState {
	switch {
	case r.State.Ended() || now.Before(r.StartsAt):
		return r.State
	case r.UsedAt == nil && !now.Before(s.expiry(r)) && !s.cutShort(r):
		return models.ReservationExpired
	case !now.Before(r.EndsAt):
		return models.ReservationDone
	default:
		return models.ReservationActive
	}
}

// expiry is when a reservation expires if it is not used.
func (s *Service) expiry(r models.Reservation) time.Time {
	return earlier(usableSince(r).Add(s.rules.UseWithin), r.EndsAt)
}

// usableSince is when a reservation began, or could be used if that is later.
func usableSince(r models.Reservation) time.Time {
	if r.UsableAt != nil {
		return later(r.StartsAt, *r.UsableAt)
	}
	return r.StartsAt
}

// cutShort reports whether a reservation that had begun has ended before it had to be used,
// because of a request with a higher score, or because it could not be used before: then its
// member is not to blame.
func (s *Service) cutShort(r models.Reservation) bool {
	moved := r.MovedAt != nil && !r.MovedAt.Before(r.StartsAt) && r.EndsAt.Before(r.StartsAt.Add(s.rules.UseWithin))
	return moved || usableSince(r).After(r.StartsAt) && r.EndsAt.Before(usableSince(r).Add(s.rules.UseWithin))
}

func earlier(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
