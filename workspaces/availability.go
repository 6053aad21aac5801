package workspaces

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/policies"
)

// SizeAvailability is a demand of a common size, and whether it can be satisfied now.
type SizeAvailability struct {
	Demand  models.Demand
	Outcome string        // as in models.Decision; also refused when a launch would be for another reason
	Reasons []models.Text // the reasons, unless it can be satisfied
	// Simulated means that the available GPUs are simulated.
	Simulated bool
}

// AvailableNow reports whether the whole demand can be satisfied now.
func (a SizeAvailability) AvailableNow() bool { return a.Outcome == models.OutcomeGranted }

// commonSizes are common demands for GPUs, in ascending order.
var commonSizes = []models.Demand{
	{GPUs: 1, Cores: 10}, {GPUs: 1, Cores: 25}, {GPUs: 1, Cores: 50},
	{GPUs: 1, Cores: 100}, {GPUs: 2, Cores: 100}, {GPUs: 4, Cores: 100}, {GPUs: 8, Cores: 100},
}

// Available returns for common sizes of GPU shares whether a launch of a member of a
// project that requests nothing else would be granted now, and the reasons otherwise.
func (s *Service) Available(ctx context.Context, actor policies.Actor, project int64) ([]SizeAvailability, error) {
	if err := s.access.Check(actor, project, policies.WorkspaceLaunch); err != nil {
		return nil, err
	}
	p, err := s.store.Read(ctx).Project(actor.Scope(), project)
	if err != nil {
		return nil, err
	}
	available, err := s.AvailableIn(ctx, actor, []models.Project{p})
	return available[project], err
}

// AvailableIn is Available for several projects, by project.
func (s *Service) AvailableIn(ctx context.Context, actor policies.Actor, list []models.Project) (map[int64][]SizeAvailability, error) {
	if len(list) == 0 {
		return nil, nil
	}
	q := s.store.Read(ctx)
	environments, err := q.Environments()
	if err != nil {
		return nil, err
	}
	pool, err := s.pool.DisplayedAvailability(ctx)
	if err != nil {
		return nil, err
	}
	available := make(map[int64][]SizeAvailability, len(list))
	for _, p := range list {
		if err := s.access.Check(actor, p.ID, policies.WorkspaceLaunch); err != nil {
			return nil, err
		}
		in := planInput{now: q.Now(), project: p, environments: environments, pool: pool, defaults: s.Defaults}
		in.member, in.use, err = membership(q, actor, p)
		if models.KindOf(err) == models.KindForbidden && len(list) > 1 { // it has just ended
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, d := range commonSizes {
			available[p.ID] = append(available[p.ID], sizeAvailability(in, d))
		}
	}
	return available, nil
}

// sizeAvailability plans a launch of the size.
func sizeAvailability(in planInput, size models.Demand) SizeAvailability {
	in.launch = LaunchInput{ProjectID: in.project.ID, Request: models.LaunchParameters{GPUs: &size.GPUs, Cores: &size.Cores}}
	p := plan(in)
	a := SizeAvailability{Demand: cmp.Or(p.Demand, p.Refused, size), Outcome: p.Decision.Outcome}
	switch e, refused := errors.AsType[*models.Error](p.Rejection); {
	case refused:
		a.Outcome, a.Reasons = models.OutcomeRefused, refusalReasons(e)
	case a.AvailableNow():
		a.Simulated = slices.ContainsFunc(p.Decision.Grants, func(g models.Grant) bool { return g.Device.Simulated })
	default:
		a.Reasons = append([]models.Text{p.Decision.Explanation}, p.Decision.Reasons...)
	}
	return a
}

// refusalReasons are the reasons of an error about a launch of which nobody has filled in a form.
func refusalReasons(e *models.Error) (reasons []models.Text) {
	for _, field := range e.Fields {
		if field.Name == "version_constraints" {
			field.Reason = models.Say("No environment matches this request.")
		}
		reasons = append(reasons, field.Reason)
	}
	if len(reasons) == 0 {
		return []models.Text{e.Message}
	}
	return reasons
}
