package broker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// lifePeriod is how often reservations are looked at.
const lifePeriod = time.Second

// Run begins and ends reservations when it is time, until ctx ends. Only the
// leader may run it.
func (s *Service) Run(ctx context.Context, logger *slog.Logger) {
	tick := time.NewTicker(lifePeriod)
	defer tick.Stop()
	for {
		if err := s.Advance(ctx); err != nil && ctx.Err() == nil {
			logger.ErrorContext(ctx, "reservations", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Advance begins and ends the reservations that are due now, and cancels those of members
// who may no longer use them. It is called by one goroutine.
func (s *Service) Advance(ctx context.Context) error {
	now := s.store.Now()
	if err := s.deferUnusable(ctx, now); err != nil { // nothing expires then
		return errors.Join(err, s.cancelAbandoned(ctx))
	}
	s.advanced = now
	return errors.Join(s.advanceDue(ctx), s.tellUsable(ctx), s.tellEnding(ctx), s.cancelRemoved(ctx), s.cancelAbandoned(ctx))
}

const (
	away      = 2 * time.Minute  // without a call of Advance: the portal, or this machine, was away
	exactness = 30 * time.Second // of the moment since which a reservation can be used
)

// deferUnusable gives the whole time to use a reservation to those who could not: the GPUs of
// their reservations cannot be used, or the portal was away.
func (s *Service) deferUnusable(ctx context.Context, now time.Time) error {
	q := s.store.Read(ctx)
	ids, err := q.UnusedReservations(now, now.Add(-exactness))
	if err != nil || len(ids) == 0 {
		return err
	}
	if now.Sub(s.advanced) <= away {
		if ids, err = s.pool.Unusable(q, ids); err != nil || len(ids) == 0 {
			return err
		}
	}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil { // as every change of a reservation does
			return err
		}
		return q.SetReservationsUsable(ids, now)
	})
}

// cancelAbandoned checks each again under the lock that every change of a period or a
// membership takes, because either may have been extended.
func (s *Service) cancelAbandoned(ctx context.Context) error {
	list, err := s.store.Read(ctx).AbandonedReservations()
	if err != nil {
		return err
	}
	var failed []error
	for _, a := range list {
		failed = append(failed, s.store.InTx(ctx, func(q *store.Queries) error {
			if err := q.LockProjectRows(a.ProjectID); err != nil {
				return err
			}
			if err := q.LockPool(); err != nil {
				return err
			}
			r, err := q.AbandonedReservation(a.ID)
			if err != nil {
				return models.IgnoreNotFound(err)
			}
			return end(q, policies.System("broker"), &r, models.ReservationCanceled,
				models.Say("Canceled: its member can no longer launch workspaces in the project."))
		}))
	}
	return errors.Join(failed...)
}

// endingAhead is how long before the end of a reservation in use its user is told.
const endingAhead = 10 * time.Minute

// tellEnding tells the users of reservations in use that they end soon, once of each end.
func (s *Service) tellEnding(ctx context.Context) error {
	by := s.store.Now().Add(endingAhead)
	if list, err := s.store.Read(ctx).EndingReservations(by); err != nil || len(list) == 0 {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil { // as every change of a reservation does
			return err
		}
		list, err := q.EndingReservations(by)
		if err != nil {
			return err
		}
		for _, r := range list {
			text := models.Say("Your reservation of %s ends on %s. What runs in it will be stopped.", describe(r), models.Instant{At: r.EndsAt})
			if err := errors.Join(notify(q, r, models.NotificationReservationEnding, text), q.SetToldEnd(r)); err != nil {
				return err
			}
		}
		return nil
	})
}

// tellUsable tells the users of reservations that began while their GPUs could not be used that they can now, once.
func (s *Service) tellUsable(ctx context.Context) error {
	if list, err := s.usableAgain(s.store.Read(ctx)); err != nil || len(list) == 0 {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil { // as every change of a reservation does
			return err
		}
		list, err := s.usableAgain(q)
		if err != nil {
			return err
		}
		for _, r := range list {
			text := models.Say("Your reservation of %s can be used now. Use it within %d minutes; it ends on %s.",
				describe(r), int64(s.rules.UseWithin/time.Minute), models.Instant{At: r.EndsAt})
			if err := errors.Join(notify(q, r, models.NotificationReservationActive, text), q.SetToldUsable(r)); err != nil {
				return err
			}
		}
		return nil
	})
}

// usableAgain lists the reservations that can be used now, and of which their users were told that they cannot.
func (s *Service) usableAgain(q *store.Queries) ([]models.Reservation, error) {
	list, err := q.ReservationsToldUnusable()
	if err != nil || len(list) == 0 {
		return nil, err
	}
	away, err := s.pool.Unusable(q, models.Map(list, func(r models.Reservation) int64 { return r.ID }))
	return slices.DeleteFunc(list, func(r models.Reservation) bool { return slices.Contains(away, r.ID) }), err
}

// cancelRemoved cancels the reservations of machines that were removed from the pool.
func (s *Service) cancelRemoved(ctx context.Context) error {
	if list, err := s.store.Read(ctx).RemovedReservations(); err != nil || len(list) == 0 {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil { // as whoever removes a machine does
			return err
		}
		list, err := q.RemovedReservations()
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := end(q, policies.System("broker"), &r, models.ReservationCanceled,
				models.Say("Canceled: its machine was removed from the pool.")); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) advanceDue(ctx context.Context) error {
	now := s.store.Now()
	due, err := s.store.Read(ctx).DueReservations(now, now.Add(-s.rules.UseWithin))
	if err != nil {
		return err
	}
	var failed []error
	for _, d := range due {
		err := s.store.InTx(ctx, func(q *store.Queries) error {
			if err := q.LockPool(); err != nil {
				return err
			}
			r, err := q.LockReservation(store.AllProjects, d.ID)
			if err != nil || r.State.Ended() {
				return models.IgnoreNotFound(err)
			}
			return s.advance(q, &r)
		})
		if models.KindOf(err) != models.KindConflict {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// advance moves a reservation to the state that its times and its use give it now.
func (s *Service) advance(q *store.Queries, r *models.Reservation) error {
	system := policies.System("broker")
	switch state := s.stateAt(*r, q.Now()); {
	case state == models.ReservationExpired:
		reason := models.Say("Expired: not used within %d minutes.", int64(s.rules.UseWithin/time.Minute))
		if err := end(q, system, r, state, reason); err != nil {
			return err
		}
		return notify(q, *r, models.NotificationReservationExpired,
			models.Say("Your reservation of %s has expired, because it was not used.", describe(*r)))
	case state == models.ReservationDone:
		return end(q, system, r, state, models.Say("Its time is over."))
	case r.State == models.ReservationActive && r.UsedAt != nil:
		return s.releaseUnused(q, *r)
	case state == models.ReservationActive && r.State == models.ReservationGranted:
		return s.begin(q, r)
	}
	return nil
}

// begin makes a reservation active and tells its user, also if its GPUs cannot be used now.
func (s *Service) begin(q *store.Queries, r *models.Reservation) error {
	unusable, err := s.pool.Unusable(q, []int64{r.ID})
	if err != nil {
		return err
	}
	r.State, r.ToldUnusable = models.ReservationActive, len(unusable) > 0
	if err := q.TransitionReservation(r, models.ReservationGranted); err != nil {
		return err
	}
	models.Failpoint("reservation.begun")
	if r.ToldUnusable {
		return notify(q, *r, models.NotificationReservationAtRisk,
			models.Say("Your reservation of %s has begun, but its GPUs cannot be used now. The time to use it starts when they can.", describe(*r)))
	}
	return notify(q, *r, models.NotificationReservationActive,
		models.Say("Your reservation of %s has begun. Use it within %d minutes; it ends on %s.",
			describe(*r), int64(s.rules.UseWithin/time.Minute), models.Instant{At: r.EndsAt}))
}

// releaseUnused releases the parts of a reservation in use, each with a start of its own,
// that have begun and were not used in time.
func (s *Service) releaseUnused(q *store.Queries, r models.Reservation) error {
	unused, err := q.ReleaseUnusedGrants(&r, q.Now().Add(-s.rules.UseWithin))
	if err != nil || len(unused) == 0 {
		return err
	}
	before := map[string]any{"gpus": len(unused), "cores": unused[0].Cores, "from": unused[0].StartsAt, "until": unused[0].EndsAt}
	change := policies.Change{Action: "update", Object: "reservation", ID: r.ID, Project: r.ProjectID, Before: before}
	if err := policies.System("broker").Audit(q, change); err != nil {
		return err
	}
	return notify(q, r, models.NotificationReservationExpired, models.Say(
		"A part of your reservation, %s, was released, because it was not used.",
		models.Say("%d × %d GPU cores", len(unused), unused[0].Cores)))
}

// end ends a reservation now, with an entry in the audit log. Its user is told, unless they have canceled it; whoever
// did not use it is told so instead.
func end(q *store.Queries, actor policies.Actor, r *models.Reservation, state models.ReservationState, reason models.Text) error {
	from, now := r.State, q.Now()
	r.State, r.Reason, r.EndedAt = state, reason, &now
	if err := q.TransitionReservation(r, from); err != nil {
		return err
	}
	models.Failpoint("reservation.ended")
	if state != models.ReservationExpired && actor.User.ID != r.UserID {
		if err := notify(q, *r, models.NotificationReservationEnded,
			models.Say("Your reservation of %s has ended. %s", describe(*r), reason)); err != nil {
			return err
		}
	}
	return actor.Audit(q, policies.Change{Action: "end", Object: "reservation", ID: r.ID, Project: r.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": state}})
}

func describe(r models.Reservation) models.Text {
	return models.Say("%d × %d GPU cores", r.GPUs, r.Cores)
}

func notify(q *store.Queries, r models.Reservation, kind string, text models.Text) error {
	return q.Notify([]int64{r.UserID}, r.Notification(kind, text))
}
