package broker

import (
	"context"
	"math"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
	"weir/pool/timeline"
)

// ReservationInput is a request for a reservation. GPU amounts are per GPU.
type ReservationInput struct {
	ProjectID       int64      `json:"project_id" minimum:"1"`
	GPUs            int64      `json:"gpus" minimum:"1" maximum:"1024" doc:"number of GPUs, all of one machine"`
	Cores           int64      `json:"cores" minimum:"1" maximum:"100" doc:"GPU cores per GPU"`
	GPUMemoryMiB    int64      `json:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory per GPU, MiB; absent: in proportion to the cores"`
	GPUModel        string     `json:"gpu_model,omitempty" maxLength:"100" doc:"GPU model; empty: any"`
	DurationMinutes int64      `json:"duration_minutes" minimum:"1" doc:"duration in minutes"`
	From            *time.Time `json:"from,omitempty" doc:"earliest start; absent: now"`
	Until           *time.Time `json:"until,omitempty" doc:"latest end; absent: 7 days after the earliest start and the duration"`
	AcceptPart      bool       `json:"accept_part,omitempty" doc:"a part at the earliest start and the rest later is acceptable"`
	AcceptLater     bool       `json:"accept_later,omitempty" doc:"a later start is acceptable"`
	ClientZone      string     `json:"client_zone,omitempty" maxLength:"30" doc:"client zone near which GPUs are preferred; absent: that of the client's address"`
	Priority
}

// usualWindow is how much longer than its duration the window of a request is.
const usualWindow = 7 * 24 * time.Hour

func (in *ReservationInput) duration() time.Duration {
	return time.Duration(in.DurationMinutes) * time.Minute
}

// wish is a checked request.
type wish struct {
	demand      models.Demand
	duration    time.Duration
	from, until time.Time // the window
	last        time.Time // when a reservation must end
	part, later bool      // are acceptable
	zone        string    // of clients, near which devices are preferred

	priority Priority // and the score, for requests that may change other reservations
	score    float64
	parts    models.ScoreParts
}

// window is the checked span of a request, which must end by last.
func (in *ReservationInput) window(now, last time.Time, rules Rules, p *models.Problems) (from, until time.Time) {
	duration := in.duration()
	if in.DurationMinutes < 1 || in.DurationMinutes > int64(rules.MaxDuration/time.Minute) {
		p.Add("duration_minutes", "must be from 1 to %d minutes", int64(rules.MaxDuration/time.Minute))
		return now, now
	}
	from = now
	if in.From != nil && in.From.After(now) {
		from = in.From.Round(time.Microsecond)
	}
	until = from.Add(duration + usualWindow)
	if in.Until != nil {
		until = in.Until.Round(time.Microsecond)
	}
	switch {
	case from.Add(duration).After(now.Add(rules.MaxAhead)):
		p.Add("from", "must be at most %d days ahead", int64(rules.MaxAhead/(24*time.Hour)))
	case from.Add(duration).After(last):
		p.Add("duration_minutes", "must end by %s, when the project or your membership in it ends", models.Moment(last))
	case until.Before(from.Add(duration)):
		p.Add("until", "must be at least %d minutes after the start", in.DurationMinutes)
	case until.After(last):
		until = last
	}
	return from, until
}

func (in *ReservationInput) check(now, last time.Time, rules Rules) (w wish, err error) {
	var p models.Problems
	models.LaunchParameters{GPUs: &in.GPUs, Cores: &in.Cores, GPUMemoryMiB: &in.GPUMemoryMiB, GPUModel: &in.GPUModel}.Check("", &p)
	if in.GPUs < 1 {
		p.Add("gpus", "must be at least %d", 1)
	}
	if in.Cores < 1 {
		p.Add("cores", "must be at least %d", 1)
	}
	w = wish{demand: models.Demand{GPUs: in.GPUs, Cores: in.Cores, GPUMemoryMiB: in.GPUMemoryMiB, GPUModel: in.GPUModel},
		duration: in.duration(), last: last, part: in.AcceptPart, later: in.AcceptLater}
	w.from, w.until = in.window(now, last, rules, &p)
	return w, p.Err()
}

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
			d.Conflicts, err = s.conflicts(q, actor, in.ProjectID, d.wish)
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
	one := &arrival{ctx: ctx, actor: actor, in: in}
	if store.HasIdempotencyKey(ctx) { // it is committed with what it creates
		return s.reserve(one)
	}
	r, err = s.decided(one)
	models.Failpoint("reservation.committed")
	return r, err
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

// applicant is who asks for a reservation in a project.
type applicant struct {
	project  models.Project
	member   store.LaunchMember // without ID if they are no member
	standing timeline.Standing
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

// checkedRequest is a checked request of an applicant.
type checkedRequest struct {
	wish
	applicant
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

func spanOf(g models.ReservationGrant) timeline.Span {
	return timeline.Span{From: g.StartsAt.UnixMicro(), Until: g.EndsAt.UnixMicro()}
}

func amountOf(g models.ReservationGrant) timeline.Amount {
	return timeline.Amount{Cores: g.Cores, MemoryMiB: g.MemoryMiB}
}

// checkBounds checks grants beside what the member and the project have reserved, as
// assumed: the limit of the role and the quota at every moment, and the
// core-hours ahead.
func (s *Service) checkBounds(reserved []models.ReservedView, p models.Project, m store.LaunchMember, grants []models.ReservationGrant,
	as models.AssumedReservations) error {
	now := s.store.Now()
	var byProject, byMember, more timeline.Timeline
	coreHours := 0.0
	ahead := func(g models.ReservationGrant) float64 {
		return float64(g.Cores) * g.EndsAt.Sub(later(g.StartsAt, now)).Hours()
	}
	for _, r := range as.Among(reserved) {
		if r.ProjectID != p.ID { // of what is assumed
			continue
		}
		own := r.UserID == m.UserID
		if own {
			coreHours += ahead(r.ReservationGrant)
		}
		if !slices.ContainsFunc(grants, r.Overlaps) {
			continue
		}
		byProject.Add(spanOf(r.ReservationGrant), amountOf(r.ReservationGrant))
		if own {
			byMember.Add(spanOf(r.ReservationGrant), amountOf(r.ReservationGrant))
		}
	}
	for _, g := range grants {
		more.Add(spanOf(g), amountOf(g))
		coreHours += ahead(g)
	}
	var problems models.Problems
	for _, g := range grants { // whatever begins, begins with one of them
		all, own, asked := byProject.Max(spanOf(g)), byMember.Max(spanOf(g)), more.Max(spanOf(g))
		use := quota.Use{Quota: p.Quota, InUseByProject: resources(all), Limit: m.Limit, InUseByMember: resources(own)}
		for _, e := range use.ExceededBy(resources(asked)) {
			problems = append(problems, models.Field{Name: field(e.Name), Reason: excessText(e)})
		}
		if len(problems) > 0 {
			return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This exceeds the limit or quota at that time."), Fields: problems}
		}
	}
	if most := float64(m.Limit.GPUCores) * s.rules.Budget.Hours(); m.Limit.GPUCores != models.Unlimited && coreHours > most {
		return models.NoCapacity("duration_minutes", "%d GPU core-hours would be reserved ahead; your role allows %d",
			int64(math.Ceil(coreHours)), int64(most))
	}
	return nil
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

func resources(a timeline.Amount) models.Resources {
	return models.Resources{GPUCores: a.Cores, GPUMemoryMiB: a.MemoryMiB}
}

func field(resource string) string {
	if resource == "gpu_cores" {
		return "cores"
	}
	return resource
}

func excessText(e quota.Excess) models.Text {
	taken, requested, bound := models.Quantity(e.Name, e.Taken), models.Quantity(e.Name, e.Requested), models.Quantity(e.Name, e.Bound)
	if e.OfProject {
		return models.Say("%s: %s reserved by the project, %s requested, quota of the project %s", e.Label, taken, requested, bound)
	}
	return models.Say("%s: %s reserved, %s requested, limit of the role %s", e.Label, taken, requested, bound)
}
