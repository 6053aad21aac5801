package broker

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// ReservationChange moves, extends or shortens a reservation. One that has begun keeps its
// start and its devices.
type ReservationChange struct {
	StartsAt *time.Time `json:"starts_at,omitempty" doc:"new start, before the reservation begins; absent: unchanged"`
	EndsAt   *time.Time `json:"ends_at,omitempty" doc:"new end; absent: the duration is unchanged"`
	Version  int64      `json:"-"` // that the actor has seen; 0: any
}

// PreviewChange decides on a change without making it.
func (s *Service) PreviewChange(ctx context.Context, actor policies.Actor, id int64, in ReservationChange) (d Decision, err error) {
	v, err := s.View(ctx, actor, id)
	if err != nil {
		return d, err
	}
	if err := s.access.Check(actor, v.ProjectID, policies.WorkspaceLaunch); err != nil {
		return d, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		p, err := q.Project(actor.Scope(), v.ProjectID)
		if err == nil {
			d, err = s.decideChange(q, actor, p, v.Reservation, in)
		}
		if err == nil {
			err = q.NameGrants(d.Grants)
		}
		if err == nil && d.Outcome != timeline.Granted {
			v.State = s.stateAt(v.Reservation, q.Now())
			d.Conflicts, err = s.conflicts(q, actor, v.ProjectID, d.wish, v.Reservation)
		}
		return err
	})
	return d, err
}

// Change changes a reservation of the actor. If the pool cannot grant the change, the
// error is of kind no_capacity and the reservation stays as it is.
func (s *Service) Change(ctx context.Context, actor policies.Actor, id int64, in ReservationChange) error {
	v, err := s.View(ctx, actor, id)
	if err != nil {
		return err
	}
	return s.access.Write(ctx, s.store, actor, v.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		p, err := q.LockProject(actor.Scope(), v.ProjectID)
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		r, err := q.LockReservation(actor.Scope(), id)
		if err != nil {
			return err
		}
		if err := models.CheckVersion("reservation", in.Version, r.Version); err != nil {
			return err
		}
		d, err := s.decideChange(q, actor, p, r, in)
		if err != nil {
			return err
		}
		if d.Outcome == timeline.Refused {
			return d.refusal()
		}
		return s.change(q, actor, r, d)
	})
}

// change writes a change that was granted.
func (s *Service) change(q *store.Queries, actor policies.Actor, r models.Reservation, d Decision) error {
	span := func(r models.Reservation) map[string]any {
		return map[string]any{"from": r.StartsAt, "until": r.EndsAt}
	}
	from, before, blameless := r.State, span(r), s.cutShort(r)
	if s.stateAt(r, q.Now()) == models.ReservationGranted { // it was decided anew
		r.Outcome = d.Outcome.String()
	}
	r.DurationMinutes, r.WindowFrom, r.WindowUntil = int64((d.duration+time.Minute-1)/time.Minute), d.from, d.until
	r.StartsAt, r.EndsAt = d.Span()
	if !d.Explanation.Empty() { // the same GPUs are kept otherwise
		r.Explanation = d.Explanation
	}
	if !blameless && s.cutShort(r) { // by its owner, who is to blame
		r.MovedAt = nil
	}
	if !q.Now().Before(r.StartsAt) {
		r.State = models.ReservationActive
	}
	if err := q.ChangeReservation(&r, from, d.grants()); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "update", Object: "reservation", ID: r.ID, Project: r.ProjectID, Before: before,
		After: span(r)})
}

// decideChange decides on a change of a reservation.
func (s *Service) decideChange(q *store.Queries, actor policies.Actor, p models.Project, r models.Reservation,
	in ReservationChange) (d Decision, err error) {
	switch r.State = s.stateAt(r, q.Now()); {
	case r.State.Ended():
		return d, models.Conflict("This reservation is already %s.", r.State.Words())
	case r.UserID != actor.User.ID:
		return d, models.Forbidden("Only its owner can change this reservation.")
	}
	m, err := q.LaunchMember(p.ID, actor.User.ID)
	if models.IgnoreNotFound(err) != nil {
		return d, err
	}
	last, err := s.last(p, m)
	if err != nil {
		return d, err
	}
	w, err := in.check(r, q.Now(), last, s.rules)
	switch {
	case err != nil:
		return d, err
	case r.State == models.ReservationActive:
		return s.decideEnd(q, p, m, r, w)
	default:
		return s.decide(q, p, m, w, models.AssumedReservations{Without: []int64{r.ID}})
	}
}

// check returns the wish for a reservation as it is to be.
func (in ReservationChange) check(r models.Reservation, now, last time.Time, rules Rules) (w wish, err error) {
	var p models.Problems
	begun := r.State == models.ReservationActive
	w = wish{last: last, from: r.StartsAt, until: r.EndsAt, demand: models.Demand{GPUs: r.GPUs, Cores: r.Cores, GPUMemoryMiB: r.GPUMemoryMiB,
		GPUModel: r.GPUModel}, priority: Priority{TaskType: r.TaskType}, zone: r.ClientZone}
	if in.StartsAt == nil && in.EndsAt == nil {
		p.Add("ends_at", "must be given unless the start is")
	}
	if in.StartsAt != nil {
		w.from = later(in.StartsAt.Round(time.Microsecond), now)
		w.until = w.from.Add(r.EndsAt.Sub(r.StartsAt))
		if begun {
			p.Add("starts_at", "cannot change: the reservation has begun")
		}
	}
	if in.EndsAt != nil {
		w.until = in.EndsAt.Round(time.Microsecond)
	}
	w.duration = w.until.Sub(w.from)
	if w.part = !begun && r.Outcome == timeline.Partial.String(); w.part { // its parts are shorter than its span
		w.duration -= r.EndsAt.Sub(r.StartsAt) - time.Duration(r.DurationMinutes)*time.Minute
	}
	first := w.from
	if begun {
		first = now
	}
	switch most := int64(rules.MaxDuration / time.Minute); {
	case !w.until.After(first) || w.duration <= 0:
		p.Add("ends_at", "must be after %s", models.Moment(first))
	case w.duration > rules.MaxDuration:
		p.Add("ends_at", "must be at most %d minutes after the start", most)
	case w.until.After(now.Add(rules.MaxAhead)):
		p.Add("ends_at", "must be at most %d days ahead", int64(rules.MaxAhead/(24*time.Hour)))
	case w.until.After(last):
		p.Add("ends_at", "must be by %s, when the project or your membership in it ends", models.Moment(last))
	}
	return w, p.Err()
}

// decideEnd decides on another end of a reservation that has begun. What it has until its
// end, it has for longer, on the same devices; what is after a new end goes.
func (s *Service) decideEnd(q *store.Queries, p models.Project, m store.LaunchMember, r models.Reservation, w wish) (
	d Decision, err error) {
	d = Decision{Outcome: timeline.Granted, Demand: w.demand, wish: w}
	list, err := q.GrantsOf(r.ID)
	if err != nil {
		return d, err
	}
	var more []models.ReservationGrant
	for _, g := range list {
		if !g.StartsAt.Before(w.until) {
			continue
		}
		if g.EndsAt.Equal(r.EndsAt) && w.until.After(r.EndsAt) {
			extension := g.ReservationGrant
			extension.StartsAt, extension.EndsAt = r.EndsAt, w.until
			more = append(more, extension)
			g.EndsAt = w.until
		}
		g.EndsAt = earlier(g.EndsAt, w.until)
		d.Grants = append(d.Grants, g)
	}
	if len(more) == 0 {
		return d, nil
	}
	latest, err := s.freeUntil(q, p, w, more)
	if err != nil {
		return d, err
	}
	if latest.Before(w.until) {
		d.Outcome, d.Grants, d.Latest = timeline.Refused, nil, &latest
		return d, nil
	}
	reserved, err := q.ReservedBy(p.ID)
	if err != nil {
		return d, err
	}
	return d, s.checkBounds(reserved, p, m, more, models.AssumedReservations{})
}

// freeUntil is until when extensions of a reservation can be granted.
func (s *Service) freeUntil(q *store.Queries, p models.Project, w wish, extensions []models.ReservationGrant) (
	latest time.Time, err error) {
	o, err := s.offer(q, p.ID, w.demand, models.AssumedReservations{})
	if err != nil {
		return latest, err
	}
	latest = w.until
	for _, g := range extensions {
		grant := timeline.Grant{Device: g.DeviceID, Amount: amountOf(g), Span: spanOf(g)}
		latest = earlier(latest, time.UnixMicro(o.calendar.FreeUntil(grant)).UTC())
		o.calendar.Add([]timeline.Grant{grant})
	}
	return latest, nil
}
