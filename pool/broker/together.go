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
		one.reservation, one.err = s.reserve(one.ctx, one.actor, one.in)
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
		t, written = together{Service: s, q: q, projects: map[int64]*projectTogether{}}, false
		if err := t.lock(list); err != nil {
			return err
		}
		for _, one := range list {
			if one.err = t.access.RecheckOwned(q, one.actor, 0, one.in.ProjectID, policies.WorkspaceLaunch); internal(one.err) != nil {
				return one.err
			}
		}
		if err := q.LockPool(); err != nil {
			return err
		}
		for _, one := range list { // what is reserved changes under the lock of the pool
			if err := t.check(one); err != nil {
				return err
			}
		}
		if err := t.decide(); err != nil {
			return err
		}
		err := t.write()
		written = err == nil
		return err
	})
	if err != nil && !written { // each has the error that is its own
		return list
	}
	for _, one := range list {
		if one.answered = !slices.Contains(t.left, one); one.answered && one.err == nil {
			one.err = err // maybe after the database has committed: it is not tried again
		}
	}
	return t.left
}

// together is requests that are decided in one transaction.
type together struct {
	*Service
	q        *store.Queries
	projects map[int64]*projectTogether
	checked  []*arrival
	left     []*arrival
	as       models.AssumedReservations // granted so far
}

// projectTogether is what the requests in a project have in common.
type projectTogether struct {
	models.Project
	standing timeline.Standing
	reserved []models.ReservedView
}

// lock locks what the requests need in the order in which everybody does.
func (t *together) lock(list []*arrival) error {
	var projects, users []int64
	for _, one := range list {
		projects, users = append(projects, one.in.ProjectID), append(users, one.actor.User.ID)
	}
	slices.Sort(projects)
	slices.Sort(users)
	for _, id := range slices.Compact(projects) {
		if err := t.q.LockProjectRow(id); err != nil {
			return err
		}
	}
	for _, id := range slices.Compact(users) {
		if _, err := t.q.LockUser(id); err != nil {
			return err
		}
	}
	return nil
}

// check checks what a request asks for, unless it is refused or its client has gone. The error
// is one that is no answer.
func (t *together) check(one *arrival) error {
	if one.err == nil {
		one.err = one.ctx.Err()
	}
	if one.err != nil {
		return nil
	}
	if one.request, one.err = t.requestOf(one); one.err == nil {
		t.checked = append(t.checked, one)
	}
	return internal(one.err)
}

// internal is an error that is no answer to a request.
func internal(err error) error {
	if models.KindOf(err) == models.KindInternal {
		return err
	}
	return nil
}

func (t *together) requestOf(one *arrival) (r checkedRequest, err error) {
	p := t.projects[one.in.ProjectID]
	if p == nil {
		project, err := t.q.Project(one.actor.Scope(), one.in.ProjectID)
		if err != nil {
			return r, err
		}
		p = &projectTogether{Project: project}
		if p.standing, err = t.projectStanding(t.q, project); err != nil {
			return r, err
		}
		if p.reserved, err = t.q.ReservedBy(project.ID); err != nil {
			return r, err
		}
		t.projects[project.ID] = p
	}
	return t.checkRequest(one.ctx, t.q, one.actor, p.Project, p.standing, one.in)
}

// decide decides on the requests, the one with the highest score first, until one is not
// granted as it is.
func (t *together) decide() error {
	slices.SortStableFunc(t.checked, func(a, b *arrival) int { return cmp.Compare(b.request.score, a.request.score) })
	for i, one := range t.checked {
		found, err := t.search(t.q, one.request.project, one.request.wish, t.as)
		if err != nil {
			return err
		}
		if found.decided.Outcome != timeline.Granted {
			t.checked, t.left = t.checked[:i], t.checked[i:]
			return nil
		}
		p := t.projects[one.in.ProjectID]
		if one.decision, one.err = t.complete(found, p.Project, p.reserved, one.request.member, t.as); one.err != nil {
			if internal(one.err) != nil {
				return one.err
			}
			continue
		}
		for _, g := range one.decision.grants() {
			t.as.With = append(t.as.With, models.ReservedView{ReservationGrant: g, ProjectID: p.ID, UserID: one.actor.User.ID})
		}
	}
	return nil
}

// write writes what is granted.
func (t *together) write() error {
	for _, one := range t.checked {
		if one.err != nil {
			continue
		}
		r, err := t.create(one.ctx, t.q, one.actor, one.in, one.request, one.decision)
		if err != nil {
			return err
		}
		one.reservation = r
	}
	return nil
}
