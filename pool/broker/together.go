package broker

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// mostTogether is how many requests are decided in one transaction at most.
const mostTogether = 64

// decideTimeout is how long a transaction of several requests can take; then each is decided
// alone.
const decideTimeout = 30 * time.Second

// arrivals are the requests that wait to be decided. Those that arrive while others are
// decided are then decided together, in the order of their scores.
type arrivals struct {
	deciding chan struct{} // has an element while requests are decided
	mu       sync.Mutex
	waiting  []*arrival
}

func (a *arrivals) add(one *arrival) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, one)
}

func (a *arrivals) take() []*arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(len(a.waiting), mostTogether)
	list := a.waiting[:n:n]
	a.waiting = a.waiting[n:]
	return list
}

// decided waits for the decision on a request. Whoever waits and finds that nobody decides,
// decides on all that wait.
func (s *Service) decided(one *arrival) (models.Reservation, error) {
	s.arrivals.add(one)
	select {
	case s.arrivals.deciding <- struct{}{}:
		defer func() { <-s.arrivals.deciding }()
	case <-one.ctx.Done(): // who decides sees that, too
		return models.Reservation{}, one.ctx.Err()
	}
	for !one.answered {
		s.decideAll(s.arrivals.take())
	}
	if one.claimed {
		store.KeyClaimed(one.ctx)
	}
	return one.reservation, one.err
}

// decideAll decides on requests: together as long as they are granted as they are, the
// others alone, in the order of their scores.
func (s *Service) decideAll(list []*arrival) {
	all := list
	defer func() { // nobody waits for ever, should this panic
		for _, one := range all {
			if !one.answered {
				one.err, one.answered = errors.New("the request was not decided"), true
			}
		}
	}()
	if len(list) > 1 {
		list = s.decideTogether(list)
	}
	for _, one := range list {
		one.reservation, one.err = s.reserve(one)
		one.answered = true
	}
}

// decideTogether decides on requests in one transaction, as of one state of the pool, and
// returns those that are left: from the first on that is not granted as it is, or all if
// the transaction fails.
func (s *Service) decideTogether(list []*arrival) []*arrival {
	var t together
	written := false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(list[0].ctx), decideTimeout) // its client can go
	defer cancel()
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		t, written = together{Service: s, q: q, offers: map[offerKey]offer{}}, false
		err := t.decide(list)
		written = err == nil
		return err
	})
	if err != nil && !written { // each has the error that is its own
		return list
	}
	for _, one := range list {
		if one.answered = !slices.Contains(t.left, one); one.answered && one.err == nil {
			one.err, one.claimed = err, err == nil // maybe after the database has committed: it is not tried again
		}
	}
	return t.left
}

// together is requests that are decided in one transaction. What several of them need is read
// once.
type together struct {
	*Service
	q        *store.Queries
	projects map[int64]models.Project
	members  []store.LaunchMember
	standing func(models.Project) timeline.Standing
	missed   map[int64]float64               // of users; see Standing.NoShows
	reserved map[int64][]models.ReservedView // by project
	offers   map[offerKey]offer
	as       models.AssumedReservations // granted so far
	left     []*arrival
}

// offerKey is what requests have in common to which the same is offered.
type offerKey struct {
	project int64
	demand  models.Demand
}

// decide decides on requests, and writes what is granted.
func (t *together) decide(list []*arrival) error {
	list, err := t.admitted(list)
	if err != nil || len(list) == 0 {
		return err
	}
	if err := t.q.LockPool(); err != nil {
		return err
	}
	if err := t.read(list); err != nil { // what is reserved changes under the lock of the pool
		return err
	}
	if list, err = t.checked(list); err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b *arrival) int { return cmp.Compare(b.request.score, a.request.score) })
	granted, err := t.grant(list)
	if err != nil {
		return err
	}
	return create(t.q, granted...)
}

// admitted are the requests of those who may reserve, as of now.
func (t *together) admitted(list []*arrival) (admitted []*arrival, err error) {
	needed := make([]policies.Needed, len(list))
	for i, one := range list {
		needed[i] = policies.Needed{Actor: one.actor, Project: one.in.ProjectID, Right: policies.WorkspaceLaunch}
	}
	actors, refused, err := t.access.Recheck(t.q, needed...)
	if err != nil {
		return nil, err
	}
	for i, one := range list {
		one.actor, one.err = actors[i], refused[i]
		if one.err == nil {
			admitted = append(admitted, one)
		}
		err = cmp.Or(err, internal(one.err))
	}
	return admitted, err
}

// read reads what the requests are decided with.
func (t *together) read(list []*arrival) (err error) {
	var projects, users []int64
	for _, one := range list {
		projects, users = append(projects, one.in.ProjectID), append(users, one.actor.User.ID)
	}
	slices.Sort(projects)
	projects = slices.Compact(projects)
	if t.projects, err = t.q.ProjectsByID(projects); err != nil {
		return err
	}
	if t.members, err = t.q.LaunchMembers(projects, users); err != nil {
		return err
	}
	if t.standing, err = t.standings(t.q); err != nil {
		return err
	}
	if t.reserved, err = t.q.ReservedByProject(projects...); err != nil {
		return err
	}
	t.missed, err = noShows(t.q, users...)
	return err
}

// checked are the requests that are valid, and whose clients have not gone.
func (t *together) checked(list []*arrival) (valid []*arrival, err error) {
	for _, one := range list {
		if one.err = one.ctx.Err(); one.err == nil {
			one.err = t.q.CheckKey(one.ctx)
		}
		if one.err != nil {
			continue
		}
		p, user := t.projects[one.in.ProjectID], one.actor.User.ID
		if p.ID == 0 {
			one.err = models.NotFound("project")
			continue
		}
		a := applicant{project: p, standing: t.standing(p)}
		a.standing.NoShows = t.missed[user]
		if i := slices.IndexFunc(t.members, func(m store.LaunchMember) bool { return m.ProjectID == p.ID && m.UserID == user }); i >= 0 {
			a.member = t.members[i]
		}
		if one.request, one.err = t.checkRequest(one.ctx, one.actor, a, one.in); one.err == nil {
			valid = append(valid, one)
		}
		err = cmp.Or(err, internal(one.err))
	}
	return valid, err
}

// internal is an error that is no answer to a request.
func internal(err error) error {
	if models.KindOf(err) == models.KindInternal {
		return err
	}
	return nil
}

// grant decides on the requests, the one with the highest score first, until one is not
// granted as it is.
func (t *together) grant(list []*arrival) (granted []*arrival, err error) {
	if err := t.offerAll(list); err != nil {
		return nil, err
	}
	for i, one := range list {
		found, err := t.search(t.q, t.offers[one.key()], one.request.wish)
		if err != nil {
			return nil, err
		}
		if found.decided.Outcome != timeline.Granted {
			t.left = list[i:]
			break
		}
		r := one.request
		if one.decision, one.err = t.complete(found, r.project, t.reserved[r.project.ID], r.member, t.as); internal(one.err) != nil {
			return nil, one.err
		}
		if one.err == nil { // the idempotency key of a request is committed with what it creates
			if one.err = t.q.ClaimKey(one.ctx); internal(one.err) != nil {
				return nil, one.err
			}
		}
		if one.err == nil {
			t.take(one)
			granted = append(granted, one)
		}
	}
	return granted, nil
}

func (a *arrival) key() offerKey { return offerKey{a.in.ProjectID, a.request.demand} }

// offerAll finds what is offered to the requests.
func (t *together) offerAll(list []*arrival) (err error) {
	for _, one := range list {
		key := one.key()
		if _, known := t.offers[key]; known {
			continue
		}
		if t.offers[key], err = t.offer(t.q, key.project, key.demand, models.AssumedReservations{}); err != nil {
			return err
		}
	}
	return nil
}

// take takes what is granted to a request from what is offered to the next.
func (t *together) take(one *arrival) {
	for _, g := range one.decision.grants() {
		t.as.With = append(t.as.With, models.ReservedView{ReservationGrant: g, ProjectID: one.in.ProjectID, UserID: one.actor.User.ID})
		for key, o := range t.offers {
			o.calendar.Use(timeline.Grant{Device: g.DeviceID, Amount: amountOf(g), Span: spanOf(g)}, key.project != one.in.ProjectID)
		}
	}
}
