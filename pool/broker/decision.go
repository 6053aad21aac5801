package broker

import (
	"time"

	"weir/models"
	"weir/pool/timeline"
)

// Decision is the answer to a request.
type Decision struct {
	Outcome timeline.Outcome
	Demand  models.Demand      // as decided on, with its GPU memory
	Grants  []models.GrantView // without IDs
	// Explanation says by which objectives the devices were chosen; empty if none were.
	Explanation models.Text
	// Earliest is when a refused request could begin; nil if the pool cannot meet it as
	// far ahead as it is known, or as the actor is a member.
	Earliest *time.Time
	// Latest is until when a reservation could be extended, if an extension is refused.
	Latest *time.Time
	Moves  []Move // what would be changed of reservations with lower scores
	Shown  []Move // those of them that the actor may see
	// Conflicts are the first reservations in the way of a request that a preview does not grant from its earliest start;
	// without ID those that the actor may not see.
	Conflicts []models.ReservationView
	wish      // that was decided on
}

// Move is a change of a reservation for a request with a higher score.
type Move struct {
	Before  models.Reservation
	Project string // its name
	Grants  []models.ReservationGrant
}

// grants are the grants as they are recorded.
func (d Decision) grants() []models.ReservationGrant {
	list := make([]models.ReservationGrant, len(d.Grants))
	for i, g := range d.Grants {
		list[i] = g.ReservationGrant
	}
	return list
}

// Score is the request's score with its parts; without parts it has none.
func (d Decision) Score() (float64, models.ScoreParts) { return d.score, d.parts }

// Span is from the first start to the last end of the grants.
func (d Decision) Span() (from, until time.Time) {
	for i, g := range d.Grants {
		if i == 0 || g.StartsAt.Before(from) {
			from = g.StartsAt
		}
		if g.EndsAt.After(until) {
			until = g.EndsAt
		}
	}
	return from, until
}

// refusal is the error of a refused request.
func (d Decision) refusal() error {
	if d.Latest != nil {
		return models.NoCapacity("ends_at", "its GPUs are free until %s", models.Moment(*d.Latest))
	}
	if d.Earliest == nil {
		return models.NoCapacity("", "The pool cannot meet this request at any time that is known ahead.")
	}
	return models.NoCapacity("", "The pool cannot meet this request in its window. The earliest start is %s.", models.Moment(*d.Earliest))
}
