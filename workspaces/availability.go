package workspaces

import (
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/quota"
)

// SizeAvailability is a demand of a common size, and whether it can be satisfied now.
type SizeAvailability struct {
	Demand  models.Demand
	Outcome string        // as in models.Decision; also refused when it exceeds limit or quota
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

// ProjectUse is a project, with what one of its members uses and may use.
type ProjectUse struct {
	Project models.Project
	Use     quota.Use
}

// Available returns for common sizes of GPU shares whether a member of a project
// could launch them now, within the role's limit, the project's quota and the
// pool, and the reasons otherwise. CPU and memory are those of a launch that requests
// nothing else, in an environment without defaults of its own.
func (s *Service) Available(ctx context.Context, actor policies.Actor, project int64) ([]SizeAvailability, error) {
	if err := s.access.Check(actor, project, policies.WorkspaceLaunch); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	p, err := q.Project(actor.Scope(), project)
	if err != nil {
		return nil, err
	}
	_, use, err := membership(q, actor, p)
	if err != nil {
		return nil, err
	}
	if err := p.CheckActive(q.Now()); err != nil {
		return nil, err
	}
	available, err := s.AvailableIn(ctx, actor, []ProjectUse{{p, use}})
	return available[project], err
}

// AvailableIn is Available for several projects, by project, as they were read just now.
func (s *Service) AvailableIn(ctx context.Context, actor policies.Actor, list []ProjectUse) (map[int64][]SizeAvailability, error) {
	if len(list) == 0 {
		return nil, nil
	}
	pool, err := s.pool.DisplayedAvailability(ctx)
	if err != nil {
		return nil, err
	}
	available := make(map[int64][]SizeAvailability, len(list))
	for _, in := range list {
		if err := s.access.Check(actor, in.Project.ID, policies.WorkspaceLaunch); err != nil {
			return nil, err
		}
		for _, d := range commonSizes {
			available[in.Project.ID] = append(available[in.Project.ID], s.sizeAvailability(pool, in, d))
		}
	}
	return available, nil
}

func (s *Service) sizeAvailability(pool models.Availability, in ProjectUse, size models.Demand) SizeAvailability {
	target, err := MergeParameters(Layers{Platform: s.Defaults, Project: in.Project.Launch, Limit: in.Use.Limit,
		Request: models.LaunchParameters{GPUs: &size.GPUs, Cores: &size.Cores}})
	d := withGPUMemory(pool, target.Demand, in.Use.Limit)
	decision := pool.Decide(in.Project, d)
	a := SizeAvailability{Demand: d, Outcome: decision.Outcome}
	if err == nil {
		err = checkHeadroom(d, in.Use, models.LaunchParameters{})
	}
	switch e, refused := errors.AsType[*models.Error](err); {
	case refused:
		a.Outcome = models.OutcomeRefused
		for _, field := range e.Fields {
			a.Reasons = append(a.Reasons, field.Reason)
		}
	case a.AvailableNow():
		a.Simulated = slices.ContainsFunc(decision.Grants, func(g models.Grant) bool { return g.Device.Simulated })
	default:
		a.Reasons = append([]models.Text{decision.Explanation}, decision.Reasons...)
	}
	return a
}
