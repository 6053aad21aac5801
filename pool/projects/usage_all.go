package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// AllUsage is the usage of all projects over a span of time, with one page of them.
type AllUsage struct {
	From, Until time.Time
	Steps       []UsageStep      // without allocations
	Used        models.Usage     // by all projects, on average since the first was created, if that lies in the span
	Simulated   bool             // it includes simulated GPUs
	Capacity    models.Resources // of the pool at present; 0: not known
	Projects    []UsageOfProject
	Next        int64 // ID of the last project if there are more; otherwise 0
}

// UsageOfProject is the usage of one project among all.
type UsageOfProject struct {
	Project models.Project
	Used    models.Usage // on average since its creation, if that lies in the span
	OfQuota Fractions    // of the present quota
	OfTotal Fractions    // of the usage of all projects
}

// AllUsage returns the usage of all projects. It is for administrators and auditors.
func (s *Service) AllUsage(ctx context.Context, actor policies.Actor, in UsageQuery, page store.Page) (u AllUsage, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.CapacityRead); err != nil {
		return u, err
	}
	q := s.store.Read(ctx)
	if u.From, u.Until, err = in.span(q.Now()); err != nil {
		return u, err
	}
	first, err := q.ListProjects(store.AllProjects, store.ProjectFilter{}, store.Page{Limit: 1})
	if err != nil {
		return u, err
	}
	var oldest models.Project
	if len(first) > 0 {
		oldest = first[0]
	}
	step, n := stepsOf(u.Until.Sub(u.From))
	if u.Steps, err = usageOver(q, store.AllProjects, 0, oldest.CreatedAt, u.From, step, n); err != nil {
		return u, err
	}
	used, err := q.UsedByProjects(u.From, u.Until)
	if err != nil {
		return u, err
	}
	var all store.UsageSums
	for _, p := range used {
		all = all.Plus(p)
	}
	u.Used = all.Over(u.Until.Sub(oldest.UsedSince(u.From, u.Until)))
	if u.Simulated, err = q.UsesSimulated(0, u.From, u.Until); err != nil {
		return u, err
	}
	state, err := s.pool.present(q)
	if err != nil {
		return u, err
	}
	u.Capacity = state.capacity
	list, err := q.ListProjects(store.AllProjects, store.ProjectFilter{}, page)
	if err != nil {
		return u, err
	}
	if n := len(list); n > 0 && n == page.Limit {
		more, err := q.ListProjects(store.AllProjects, store.ProjectFilter{}, store.Page{After: list[n-1].ID, Limit: 1})
		if err != nil {
			return u, err
		}
		if len(more) > 0 {
			u.Next = list[n-1].ID
		}
	}
	for _, p := range list {
		own, lived := used[p.ID], u.Until.Sub(p.UsedSince(u.From, u.Until))
		u.Projects = append(u.Projects, UsageOfProject{Project: p, Used: own.Over(lived),
			OfQuota: ofQuota(own, p.Quota, lived), OfTotal: ofTotal(own, all)})
	}
	return u, err
}
