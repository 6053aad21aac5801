package broker

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// displacement is a search for reservations that a request may change. The pool is locked
// meanwhile, so what many reservations have in common is read once.
type displacement struct {
	*Service
	q        *store.Queries
	standing func(models.Project) timeline.Standing // nil until it is needed
	asks     map[int64]asking                       // by reservation; 0: the request itself
	common   map[int64]*common
	missed   map[int64]float64 // of users; see Standing.NoShows
	failure  error
}

// common is what the reservations of a project have in common; nil for one that is gone.
type common struct {
	project  models.Project
	members  map[int64]*store.LaunchMember // by user; nil for those who may not keep a reservation
	standing timeline.Standing
	reserved []models.ReservedView
}

// asking is who has, or asks for, a reservation.
type asking struct {
	reservation models.Reservation
	project     models.Project
	member      store.LaunchMember
	demand      models.Demand
	task        models.TaskType
	zone        string // of its client
}

// displace grants a wish at the beginning of its window by changing reservations with lower
// scores, within what they were promised; false if it cannot.
func (s *Service) displace(q *store.Queries, p models.Project, m store.LaunchMember, w wish,
	demand models.Demand) (grants []timeline.Grant, moves []Move, ok bool, err error) {
	own := asking{project: p, member: m, demand: demand, task: w.priority.TaskType, zone: w.zone}
	d := displacement{Service: s, q: q, asks: map[int64]asking{0: own},
		common: map[int64]*common{}, missed: map[int64]float64{}}
	movable, err := d.movable(w.from, w.from.Add(w.duration))
	if err != nil || len(movable) == 0 {
		return nil, nil, false, err
	}
	request := timeline.Request{Score: w.score, Demand: demandOf(demand, w.duration, w.from, w.until)}
	grants, moved, ok := timeline.Displace(d.place, request, movable)
	if d.failure != nil || !ok {
		return nil, nil, false, d.failure
	}
	for _, r := range moved {
		moves = append(moves, Move{d.asks[r.ID].reservation, d.asks[r.ID].project.Name, recorded(r.Grants)})
	}
	return grants, moves, true, nil
}

// shown are the moves of reservations that the actor may see.
func (s *Service) shown(actor policies.Actor, moves []Move) (list []Move) {
	for _, m := range moves {
		if s.access.MayOwned(actor, m.Before.UserID, m.Before.ProjectID, policies.WorkspaceRead) {
			list = append(list, m)
		}
	}
	return list
}

// assumed are the reservations as they will be after moves.
func assumed(moves []Move) (as models.AssumedReservations) {
	for _, m := range moves {
		as.Without = append(as.Without, m.Before.ID)
		for _, g := range m.Grants {
			as.With = append(as.With, models.ReservedView{ReservationGrant: g, ProjectID: m.Before.ProjectID, UserID: m.Before.UserID})
		}
	}
	return as
}

// movable are the reservations in a span that may be changed, each with its score now.
func (d *displacement) movable(from, until time.Time) (list []timeline.Reservation, err error) {
	now := d.q.Now()
	all, err := d.q.MovableReservations(from, until)
	for i := range all {
		all[i].State = d.stateAt(all[i], now)
	}
	all = slices.DeleteFunc(all, func(r models.Reservation) bool {
		started := r.State == models.ReservationActive
		return r.State.Ended() || started && (r.QoS != models.QoSPreemptible || from.Before(now.Add(endNotice)))
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	ids := models.Map(all, func(r models.Reservation) int64 { return r.ID })
	grants, err := d.q.GrantsByReservation(ids...)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		a, score, ok, err := d.asker(r, now)
		if err != nil {
			return nil, err
		}
		if one, same := asMovable(r, grants[r.ID]); ok && same {
			one.Score = score
			a.demand = models.Demand{GPUs: r.GPUs, Cores: one.Demand.Each.Cores, GPUMemoryMiB: one.Demand.Each.MemoryMiB, GPUModel: r.GPUModel}
			d.asks[r.ID] = a
			list = append(list, one)
		}
	}
	return list, nil
}

// asker is who has a reservation, with its score now; false if its member may not keep it.
func (d *displacement) asker(r models.Reservation, now time.Time) (a asking, score float64, ok bool, err error) {
	c, err := d.commonOf(r.ProjectID)
	if c == nil || err != nil {
		return a, 0, false, err
	}
	m, known := c.members[r.UserID]
	if !known {
		if m, err = d.member(r, now); err != nil {
			return a, 0, false, err
		}
		c.members[r.UserID] = m
	}
	if m == nil {
		return a, 0, false, nil
	}
	missed, known := d.missed[r.UserID]
	if !known {
		of, err := noShows(d.q, r.UserID)
		if err != nil {
			return a, 0, false, err
		}
		missed = of[r.UserID]
		d.missed[r.UserID] = missed
	}
	st := c.standing
	st.NoShows = missed
	st = Priority{r.Class, r.QoS, r.TaskType}.of(st, now.Sub(r.CreatedAt))
	a = asking{reservation: r, project: c.project, member: *m, task: r.TaskType, zone: r.ClientZone}
	return a, timeline.DefaultWeights.Score(st), true, nil
}

// commonOf is what the reservations of a project have in common.
func (d *displacement) commonOf(project int64) (*common, error) {
	if c, known := d.common[project]; known {
		return c, nil
	}
	p, err := d.q.Project(store.AllProjects, project)
	if err != nil {
		d.common[project] = nil
		return nil, models.IgnoreNotFound(err)
	}
	if d.standing == nil {
		if d.standing, err = d.standings(d.q); err != nil {
			return nil, err
		}
	}
	reserved, err := d.q.ReservedBy(project)
	d.common[project] = &common{p, map[int64]*store.LaunchMember{}, d.standing(p), reserved}
	return d.common[project], err
}

// member is that of a reservation; nil if it may not keep it.
func (d *displacement) member(r models.Reservation, now time.Time) (*store.LaunchMember, error) {
	m, err := d.q.LaunchMember(r.ProjectID, r.UserID)
	if err != nil || !m.Active(now) {
		return nil, models.IgnoreNotFound(err)
	}
	return &m, nil
}

// asMovable is a reservation as it may be changed; false if it has different shares.
func asMovable(r models.Reservation, grants []models.GrantView) (one timeline.Reservation, ok bool) {
	if len(grants) == 0 {
		return one, false
	}
	first := grants[0].ReservationGrant
	demand := models.Demand{GPUs: r.GPUs, Cores: first.Cores, GPUMemoryMiB: first.MemoryMiB}
	duration, latest := r.EndsAt.Sub(r.StartsAt), r.StartsAt
	if r.AcceptLater {
		latest = later(latest, r.WindowUntil.Add(-duration))
	}
	one = timeline.Reservation{Latest: latest.UnixMicro(), Started: r.State == models.ReservationActive,
		Least: timeline.Amount{Cores: min(max(r.LeastCores, 1), first.Cores)}}
	one.Request = timeline.Request{ID: r.ID, Demand: demandOf(demand, duration, r.StartsAt, r.WindowUntil)}
	for _, g := range grants {
		if !g.StartsAt.Equal(first.StartsAt) || !g.EndsAt.Equal(first.EndsAt) || g.Cores != first.Cores {
			return one, false
		}
		amount, span := amountOf(g.ReservationGrant), spanOf(g.ReservationGrant)
		one.Grants = append(one.Grants, timeline.Grant{Device: g.DeviceID, Amount: amount, Span: span})
	}
	return one, true
}

// place finds grants as the project of the request sees the pool, within the bounds of its
// member and project.
func (d *displacement) place(r timeline.Request, without []int64, with []timeline.Reservation) ([]timeline.Grant, bool) {
	a := d.asks[r.ID]
	as := models.AssumedReservations{Without: without}
	for _, other := range with {
		by := d.asks[other.ID]
		for _, g := range recorded(other.Grants) {
			as.With = append(as.With, models.ReservedView{ReservationGrant: g, ProjectID: by.project.ID, UserID: by.member.UserID})
		}
	}
	o, err := d.offer(d.q, a.project.ID, a.demand, as)
	if err != nil {
		d.failure = err
		return nil, false
	}
	preferring, err := d.request(d.q, r.Demand, a.task, a.zone, o.devices)
	if err != nil {
		d.failure = err
		return nil, false
	}
	grants, ok := o.calendar.Earliest(preferring.Demand, preferring.Preference)
	if !ok {
		return nil, false
	}
	c, err := d.commonOf(a.project.ID)
	if err == nil && c != nil {
		err = d.checkBounds(c.reserved, a.project, a.member, recorded(grants), as)
	}
	if models.KindOf(err) != models.KindNoCapacity {
		d.failure = err
	}
	return grants, err == nil && c != nil
}

// move writes a change of a reservation, and tells its member.
func move(q *store.Queries, m Move) error {
	r, err := q.LockReservation(store.AllProjects, m.Before.ID)
	if err != nil {
		return err
	}
	before := map[string]any{"from": r.StartsAt, "until": r.EndsAt, "cores": r.Cores}
	grants := slices.Clone(m.Grants)
	if !q.Now().Before(r.StartsAt) { // it keeps its shares, until an earlier end
		views, err := q.GrantsOf(r.ID)
		if err != nil {
			return err
		}
		for i := range grants {
			grants[i].ID = views[i].ID
		}
	}
	r.StartsAt, r.EndsAt, r.MovedAt = grants[0].StartsAt, grants[0].EndsAt, new(q.Now())
	r.Cores, r.GPUMemoryMiB = grants[0].Cores, grants[0].MemoryMiB
	if err := q.ChangeReservation(&r, r.State, grants); err != nil {
		return err
	}
	text := models.Say("A request with a higher priority has changed your reservation: it is now for %s, from %s to %s.",
		describe(r), models.Instant{At: r.StartsAt}, models.Instant{At: r.EndsAt})
	if err := notify(q, r, models.NotificationReservationMoved, text); err != nil {
		return err
	}
	return policies.System("broker").Audit(q, policies.Change{Action: "update", Object: "reservation",
		ID: r.ID, Project: r.ProjectID, Before: before,
		After: map[string]any{"from": r.StartsAt, "until": r.EndsAt, "cores": r.Cores}})
}
