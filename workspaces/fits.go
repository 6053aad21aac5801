package workspaces

import (
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/quota"
)

// Fit is whether a demand of a usual size could be met now.
type Fit struct {
	Demand  models.Demand
	Outcome string        // as in models.Decision; refused as well when limit or quota forbid it
	Why     []models.Text // why not, where it could not
	// Simulated tells that what would be had now is of simulated GPUs.
	Simulated bool
}

// Now reports whether all of it would be had now.
func (f Fit) Now() bool { return f.Outcome == models.OutcomeGranted }

// usualSizes are the GPUs that people ask for, the smallest first.
var usualSizes = []models.Demand{
	{GPUs: 1, Cores: 10}, {GPUs: 1, Cores: 25}, {GPUs: 1, Cores: 50},
	{GPUs: 1, Cores: 100}, {GPUs: 2, Cores: 100}, {GPUs: 4, Cores: 100}, {GPUs: 8, Cores: 100},
}

// Available tells a member of a project which usual sizes of GPU shares could be
// had there now, by the role's limit, the project's quota and the pool, and
// why the others could not. Of CPU and memory nothing is asked.
func (s *Service) Available(ctx context.Context, actor policies.Actor, project int64) (list []Fit, err error) {
	if err := s.access.Check(actor, project, policies.WorkspaceLaunch); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	p, err := q.Project(actor.Scope(), project)
	if err != nil {
		return nil, err
	}
	member, err := membership(q, project, actor.User.ID)
	if err != nil {
		return nil, err
	}
	use, err := s.ledger.Use(q, p, member.ID)
	if err != nil {
		return nil, err
	}
	if !p.Active(q.Now()) {
		return nil, models.Forbidden("The project is not within its period of use.")
	}
	demands, err := s.usualDemands(q)
	if err != nil {
		return nil, err
	}
	answers, err := s.pool.Decisions(q, project, demands)
	for i, a := range answers {
		list = append(list, newFit(demands[i], a, use))
	}
	return list, err
}

// usualDemands are the usual sizes with the memory that they would get.
func (s *Service) usualDemands(q *models.Queries) ([]models.Demand, error) {
	whole, err := s.pool.Complete(q, models.Demand{GPUs: 1, Cores: 100})
	demands := slices.Clone(usualSizes)
	for i := range demands {
		demands[i].GPUMemoryMiB = whole.GPUMemoryMiB * demands[i].Cores / 100
	}
	return demands, err
}

// newFit is what limit and quota say to a demand, and then the pool.
func newFit(d models.Demand, a models.Decision, use quota.Use) Fit {
	f := Fit{Demand: d, Outcome: a.Outcome}
	var e *models.Error
	switch {
	case errors.As(checkFits(d, use), &e):
		f.Outcome, f.Why = models.OutcomeRefused, reasonsOf(e)
	case f.Now():
		f.Simulated = slices.ContainsFunc(a.Grants, func(g models.Grant) bool { return g.Device.Simulated })
	default:
		f.Why = append([]models.Text{a.Explanation}, a.Reasons...)
	}
	return f
}

// reasonsOf are what an error says of the fields, or else of the whole.
func reasonsOf(e *models.Error) (list []models.Text) {
	for _, field := range e.Fields {
		list = append(list, field.Reason)
	}
	if len(list) == 0 {
		list = append(list, e.Message)
	}
	return list
}
