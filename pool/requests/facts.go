package requests

import (
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/pool/quota"
)

// usageSpan is the time over which usage is summed.
const usageSpan = 30 * oneDay

// Facts help an approver to decide a request.
type Facts struct {
	Now       *models.Resources // current quota or limit; nil for a new one
	Project   *models.Project   // nil for a new one
	Allocated models.Resources  // to its members
	Members   int64             // with the role whose limit is requested
	Until     *time.Time        // current end
	Capacity  []projects.CapacityRow
	Used      *models.Usage       // by the project, in the last 30 days
	UsedByOne *models.Usage       // by the requester; nil for a non-member
	Roles     []projects.RoleView // choices for a join request
	Beyond    []models.Text       // by how much the request exceeds the capacity
}

// Remaining is the part of the project's quota that is not allocated.
func (f Facts) Remaining() models.Resources {
	if f.Project == nil {
		return models.Resources{}
	}
	return quota.Limits{Quota: f.Project.Quota, Allocated: f.Allocated}.Remaining()
}

func (s *Service) facts(q *store.Queries, req models.QuotaRequest) (*Facts, error) {
	f := &Facts{}
	r := &review{q: q, req: req, terms: req.Requested}
	var err error
	if f.Capacity, err = s.capacity.ByResource(q); err != nil {
		return f, err
	}
	beyond := func(p models.Project) []models.Text {
		proposed := proposalOf(r.terms).proposed(p)
		if asked := req.Requested.Quota; asked != nil {
			proposed.Quota = projects.AsRequested(proposed.Quota, p.Quota, asked.Quota, req.Baseline)
		}
		return projects.Beyond(f.Capacity, projects.Growth(p, proposed, q.Now()))
	}
	if req.ProjectID == nil {
		f.Beyond = beyond(models.Project{})
		return f, nil
	}
	p, err := q.Project(store.AllProjects, *req.ProjectID)
	if err != nil {
		return f, err
	}
	if req.State == models.RequestPending {
		f.Beyond = beyond(p)
	}
	f.Project = &p
	if f.Allocated, err = q.AllocatedLimits(p.ID); err != nil {
		return f, err
	}
	if err := f.present(q, req); err != nil {
		return f, err
	}
	return f, f.used(q, req)
}

// present sets the current values of what the request would change.
func (f *Facts) present(q *store.Queries, req models.QuotaRequest) error {
	switch req.Kind {
	case models.RequestQuota:
		f.Now = &f.Project.Quota
	case models.RequestPeriod:
		f.Until = f.Project.EndsAt
	case models.RequestLimit:
		if req.RoleID == nil { // deleted
			return nil
		}
		role, err := q.Role(store.AllProjects, f.Project.ID, *req.RoleID)
		if err != nil {
			return models.IgnoreNotFound(err)
		}
		f.Now = &role.Limit
		f.Members, err = q.RoleMembers(f.Project.ID, role.ID)
		return err
	case models.RequestDeadline:
		m, err := q.Membership(f.Project.ID, req.RequesterID)
		f.Until = m.Until
		return models.IgnoreNotFound(err)
	case models.RequestJoin:
		roles, err := projects.RolesOf(q, f.Project.ID)
		f.Roles = roles
		return err
	}
	return nil
}

func (f *Facts) used(q *store.Queries, req models.QuotaRequest) error {
	now := q.Now()
	since := f.Project.UsedSince(now.Add(-usageSpan), now)
	used, own, err := q.UsedBy(f.Project.ID, req.RequesterID, since, now)
	f.Used = new(used.Over(now.Sub(since)))
	if req.MemberID != nil {
		f.UsedByOne = new(own.Over(now.Sub(since)))
	}
	return err
}
