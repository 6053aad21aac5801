package broker

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// checkedRequest is a checked request of an applicant.
type checkedRequest struct {
	wish
	applicant
}

// applicant is who asks for a reservation in a project.
type applicant struct {
	project  models.Project
	member   store.LaunchMember // without ID if they are no member
	standing timeline.Standing
}

// decideRequest decides on a request of the actor in a project.
func (s *Service) decideRequest(ctx context.Context, q *store.Queries, actor policies.Actor, p models.Project, in ReservationInput) (
	r checkedRequest, d Decision, err error) {
	a, err := s.applicant(q, actor, p)
	if err != nil {
		return r, d, err
	}
	if r, err = s.checkRequest(ctx, actor, a, in); err != nil {
		return r, d, err
	}
	d, err = s.decide(q, p, r.member, r.wish, models.AssumedReservations{})
	d.Shown = s.shown(actor, d.Moves)
	return r, d, err
}

// applicant reads the actor as the applicant in a project.
func (s *Service) applicant(q *store.Queries, actor policies.Actor, p models.Project) (a applicant, err error) {
	a.project = p
	if a.member, err = q.LaunchMember(p.ID, actor.User.ID); models.IgnoreNotFound(err) != nil {
		return a, err
	}
	standing, err := s.standings(q)
	if err != nil {
		return a, err
	}
	a.standing = standing(p)
	missed, err := noShows(q, actor.User.ID)
	a.standing.NoShows = missed[actor.User.ID]
	return a, err
}

// checkRequest checks a request of the actor, who is an applicant.
func (s *Service) checkRequest(ctx context.Context, actor policies.Actor, a applicant, in ReservationInput) (r checkedRequest, err error) {
	r.applicant = a
	last, err := s.last(a.project, a.member)
	if err != nil {
		return r, err
	}
	if r.wish, err = in.check(s.store.Now(), last, s.rules); err != nil {
		return r, err
	}
	if r.zone, err = s.clientZone(in.ClientZone, policies.ClientAddress(ctx)); err != nil {
		return r, err
	}
	r.priority = in.Priority
	if err := s.checkPriority(actor, a.project.ID, &r.priority); err != nil {
		return r, err
	}
	st := r.priority.of(a.standing, 0)
	r.score, r.parts = timeline.DefaultWeights.Score(st), partsOf(st)
	return r, nil
}

// last is when a reservation of a member of a project must end, if they can use it now.
func (s *Service) last(p models.Project, m store.LaunchMember) (time.Time, error) {
	now := s.store.Now()
	if m.ID == 0 || !m.Active(now) {
		return now, models.Forbidden("You are not a member of this project and have no resources in it.")
	}
	last := now.Add(s.rules.MaxAhead)
	for _, end := range []*time.Time{p.EndsAt, m.Until} {
		if end != nil {
			last = earlier(last, *end)
		}
	}
	return last, p.CheckActive(now)
}

// decide decides on a wish of a member beside reservations as they are assumed to be.
func (s *Service) decide(q *store.Queries, p models.Project, m store.LaunchMember, w wish, as models.AssumedReservations) (
	d Decision, err error) {
	o, err := s.offer(q, p.ID, w.demand, as)
	if err != nil {
		return d, err
	}
	found, err := s.search(q, o, w)
	if err != nil {
		return d, err
	}
	if w.parts != nil && found.decided.Outcome != timeline.Granted {
		grants, moves, ok, err := s.displace(q, p, m, w, found.demand)
		if err != nil {
			return d, err
		}
		if ok {
			found.decided.Outcome, found.moves, found.decided.Grants = timeline.Granted, moves, grants
			as = assumed(moves)
		}
	}
	reserved, err := q.ReservedBy(p.ID)
	if err != nil {
		return d, err
	}
	return s.complete(found, p, reserved, m, as)
}

// complete is the decision on what was found, if it is within the bounds of the member and
// the project.
func (s *Service) complete(f found, p models.Project, reserved []models.ReservedView, m store.LaunchMember,
	as models.AssumedReservations) (d Decision, err error) {
	d = Decision{Outcome: f.decided.Outcome, Demand: f.demand, Moves: f.moves, wish: f.wish}
	if d.Outcome == timeline.Refused {
		if at := time.UnixMicro(f.decided.Earliest).UTC(); !at.Add(f.duration).After(f.last) {
			d.Earliest = &at
		}
		return d, nil
	}
	for _, g := range recorded(f.decided.Grants) {
		d.Grants = append(d.Grants, models.GrantView{ReservationGrant: g})
	}
	d.Explanation = s.rules.Objectives.explain(f.priority.TaskType, f.zone)
	return d, s.checkBounds(reserved, p, m, d.grants(), as)
}
