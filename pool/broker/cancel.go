package broker

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Cancel ends a reservation. What is used in it ends with it.
func (s *Service) Cancel(ctx context.Context, actor policies.Actor, id int64) error {
	v, err := s.View(ctx, actor, id)
	if err != nil {
		return err
	}
	return s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		r, err := q.LockReservation(store.AllProjects, id)
		if err != nil {
			return err
		}
		switch state := s.stateAt(r, q.Now()); {
		case state.Ended():
			return models.Conflict("This reservation is already %s.", state.Words())
		case r.UserID == actor.User.ID && s.late(r, q.Now()):
			return end(q, actor, &r, models.ReservationExpired, models.Say("Canceled by %s after its start, without being used.", actor.Label()))
		default:
			return end(q, actor, &r, models.ReservationCanceled, models.Say("Canceled by %s.", actor.Label()))
		}
	})
}

// late reports whether a reservation that its owner cancels now counts as not used: half of
// the time in which it has to be used is over. Otherwise whoever cancels it just in time
// would block its GPUs for nothing.
func (s *Service) late(r models.Reservation, now time.Time) bool {
	began := usableSince(r)
	half := s.expiry(r).Sub(began) / 2
	return r.UsedAt == nil && !s.cutShort(r) && !now.Before(began.Add(half))
}
