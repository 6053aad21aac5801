package broker

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// arrival is a request with its decision.
type arrival struct {
	ctx         context.Context
	actor       policies.Actor
	in          ReservationInput
	request     checkedRequest
	decision    Decision
	reservation models.Reservation
	err         error
	answered    bool // reservation and err are the answer
	claimed     bool // its idempotency key is committed, with those of others
}

// reserve decides on a request alone.
func (s *Service) reserve(one *arrival) (r models.Reservation, err error) {
	err = s.access.Write(one.ctx, s.store, one.actor, one.in.ProjectID, policies.WorkspaceLaunch, func(q *store.Queries) error {
		p, err := q.LockProject(one.actor.Scope(), one.in.ProjectID)
		if err != nil {
			return err
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		if one.request, one.decision, err = s.decideRequest(one.ctx, q, one.actor, p, one.in); err != nil {
			return err
		}
		if one.decision.Outcome == timeline.Refused {
			return one.decision.refusal()
		}
		for _, m := range one.decision.Moves {
			if err := move(q, m); err != nil {
				return err
			}
		}
		return create(q, one)
	})
	return one.reservation, err
}

// create writes the reservations that requests are granted.
func create(q *store.Queries, granted ...*arrival) error {
	list, grants := make([]models.Reservation, len(granted)), make([][]models.ReservationGrant, len(granted))
	for i, one := range granted {
		list[i], grants[i] = one.granted(q.Now()), one.decision.grants()
	}
	if err := q.CreateReservations(list, grants); err != nil {
		return err
	}
	models.Failpoint("reservation.created")
	for i, one := range granted {
		r := list[i]
		one.reservation = r
		if err := one.actor.AuditIn(one.ctx, q, policies.Change{Action: "create", Object: "reservation", ID: r.ID, Project: r.ProjectID,
			After: map[string]any{"gpus": r.GPUs, "cores": r.Cores, "from": r.StartsAt, "until": r.EndsAt}}); err != nil {
			return err
		}
	}
	return nil
}

// granted is the reservation that a request is granted.
func (a *arrival) granted(now time.Time) models.Reservation {
	in, d := a.in, a.decision
	r := models.Reservation{ProjectID: in.ProjectID, MemberID: a.request.member.ID, UserID: a.actor.User.ID,
		State: models.ReservationGranted, Outcome: d.Outcome.String(), GPUs: in.GPUs, Cores: in.Cores,
		GPUMemoryMiB: d.Demand.GPUMemoryMiB, GPUModel: in.GPUModel, DurationMinutes: in.DurationMinutes, WindowFrom: d.from,
		WindowUntil: d.until, AcceptPart: in.AcceptPart, AcceptLater: in.AcceptLater, Version: 1, CreatedAt: now}
	r.Class, r.QoS, r.TaskType = d.priority.Class, d.priority.QoS, d.priority.TaskType
	r.Score, r.ScoreParts, r.Explanation = d.score, d.parts, d.Explanation
	r.LeastCores, r.ClientZone = leastCores(r.QoS, r.Cores), d.zone
	r.StartsAt, r.EndsAt = d.Span()
	if !now.Before(r.StartsAt) {
		r.State = models.ReservationActive
	}
	return r
}
