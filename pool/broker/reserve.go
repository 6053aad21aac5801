package broker

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// Preview decides on a request without any change.
func (s *Service) Preview(ctx context.Context, actor policies.Actor, in ReservationInput) (d Decision, err error) {
	if err := s.access.Check(actor, in.ProjectID, policies.WorkspaceLaunch); err != nil {
		return d, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		p, err := q.Project(actor.Scope(), in.ProjectID)
		if err == nil {
			_, d, err = s.decideRequest(ctx, q, actor, p, in)
		}
		if err == nil {
			err = q.NameGrants(d.Grants)
		}
		if err == nil && d.Outcome != timeline.Granted {
			d.Conflicts, err = s.conflicts(q, actor, in.ProjectID, d.wish, models.Reservation{})
		}
		return err
	})
	return d, err
}

// Reserve decides on a request and reserves what is granted. A refused request is an error
// of kind no_capacity. Requests that arrive together are decided in the order of their
// scores.
func (s *Service) Reserve(ctx context.Context, actor policies.Actor, in ReservationInput) (r models.Reservation, err error) {
	if err := s.access.Check(actor, in.ProjectID, policies.WorkspaceLaunch); err != nil {
		return r, err
	}
	r, err = s.decided(&arrival{ctx: ctx, actor: actor, in: in})
	models.Failpoint("reservation.committed")
	return r, err
}
