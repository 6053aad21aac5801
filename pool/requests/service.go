package requests

import (
	"cmp"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

// Service manages requests and their decisions.
type Service struct {
	store    *store.Store
	access   *policies.Access
	projects *projects.Service
	capacity *projects.Capacity
}

// New returns the service.
func New(store *store.Store, access *policies.Access, p *projects.Service, c *projects.Capacity) *Service {
	return &Service{store: store, access: access, projects: p, capacity: c}
}

// canDecide reports whether the actor has the right to decide the request.
func (s *Service) canDecide(actor policies.Actor, req models.QuotaRequest) bool {
	project, right := rightToDecide(req)
	return s.access.May(actor, project, right)
}

// decidesDirectly reports whether the actor may decide all requests, including their own.
func (s *Service) decidesDirectly(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, policies.RequestDecide)
}

// rightToDecide is the right that the decision of a request requires. An approver
// can grant only permissions that they have.
func rightToDecide(req models.QuotaRequest) (project int64, right policies.Right) {
	switch req.Kind {
	case models.RequestProject:
		return policies.Platform, policies.ProjectWrite
	case models.RequestQuota, models.RequestPeriod:
		return idOrZero(req.ProjectID), policies.ProjectWrite
	default:
		return idOrZero(req.ProjectID), policies.RequestDecide
	}
}

// idOrZero is an optional id; 0 for nil.
func idOrZero(id *int64) int64 { return *cmp.Or(id, new(int64)) }

// decidableBy selects the requests that the actor may decide.
func (s *Service) decidableBy(actor policies.Actor) store.DecidableRequests {
	d := store.DecidableRequests{All: s.decidesDirectly(actor), ExceptUser: actor.User.ID}
	for project := range actor.Grants {
		if !d.All && s.access.May(actor, project, policies.RequestDecide) {
			d.Projects = append(d.Projects, project)
		}
	}
	slices.Sort(d.Projects)
	return d
}

// canAudit reports whether the actor may see all requests.
func (s *Service) canAudit(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, policies.RequestRead)
}

// CanDecideAny reports whether the actor may decide any requests.
func (s *Service) CanDecideAny(actor policies.Actor) bool {
	d := s.decidableBy(actor)
	return d.All || len(d.Projects) > 0
}
