package requests

import (
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
)

// Service keeps requests, and decides them over what projects keep and what
// capacity there is.
type Service struct {
	store    *models.Store
	access   *policies.Access
	projects *projects.Service
	capacity *projects.Capacity
}

// New keeps requests in store.
func New(store *models.Store, access *policies.Access, p *projects.Service, c *projects.Capacity) *Service {
	return &Service{store: store, access: access, projects: p, capacity: c}
}

// decides tells whether the actor has the right that the request needs.
func (s *Service) decides(actor policies.Actor, req models.QuotaRequest) bool {
	project, right := rightToDecide(req)
	return s.access.May(actor, project, right)
}

// direct tells whether the actor may decide their own requests: platform
// administrators, who could have made the change anyway.
func (s *Service) direct(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, policies.RequestDecide)
}

// rightToDecide is the right that decides a request, in a project. What belongs
// to the platform needs the right to change it. What is granted is bounded by
// what the deciding actor may grant, in any case.
func rightToDecide(req models.QuotaRequest) (project int64, right policies.Right) {
	switch req.Kind {
	case models.RequestProject:
		return policies.Platform, policies.ProjectWrite
	case models.RequestQuota, models.RequestPeriod:
		return at(req.ProjectID), policies.ProjectWrite
	default:
		return at(req.ProjectID), policies.RequestDecide
	}
}

// at is an optional id; 0 where there is none.
func at(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// deciding is which requests wait for the actor.
func (s *Service) deciding(actor policies.Actor) models.DecidableRequests {
	d := models.DecidableRequests{All: s.direct(actor), ExceptUser: actor.User.ID}
	for project := range actor.Grants {
		if !d.All && s.access.May(actor, project, policies.RequestDecide) {
			d.Projects = append(d.Projects, project)
		}
	}
	slices.Sort(d.Projects)
	return d
}

// audits tells whether the actor may see requests that others decide.
func (s *Service) audits(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, policies.RequestRead)
}

// Decides tells whether there are requests that the actor may decide at all.
func (s *Service) Decides(actor policies.Actor) bool {
	d := s.deciding(actor)
	return d.All || len(d.Projects) > 0
}
