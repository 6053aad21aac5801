package requests

import (
	"time"

	"weir/models"
	"weir/pool/projects"
	"weir/pool/quota"
)

// usageSpan is how far back what was really used is added up.
const usageSpan = 30 * 24 * time.Hour

// Facts are what who decides a request should know beside it.
type Facts struct {
	Now       *models.Resources     // the quota or limit as it is; nil where there is none yet
	Project   *projects.ProjectView // nil for a new one
	Members   int64                 // who have the role that is asked about: its limit counts for each
	Until     *time.Time            // the end that is asked to be later, as it is
	Capacity  []projects.CapacityRow
	Used      *models.Usage       // by the project, in the last 30 days
	UsedByOne *models.Usage       // of it by who asks; nil when that is nobody of the project
	Roles     []projects.RoleView // from which who joins gets one
	Beyond    []models.Text       // what would be promised beyond the limits, as it was asked
}

// Remaining is what the project's quota has for further members' limits.
func (f Facts) Remaining() models.Resources {
	if f.Project == nil {
		return models.Resources{}
	}
	return quota.Allocation{Quota: f.Project.Quota, Allocated: f.Project.Allocated}.Remaining()
}

func (s *Service) facts(q *models.Queries, req models.QuotaRequest) (*Facts, error) {
	f := &Facts{}
	r := &review{q: q, req: req, terms: req.Requested}
	var err error
	if f.Capacity, err = s.capacity.ByResource(q); err != nil {
		return f, err
	}
	if req.ProjectID == nil {
		f.Beyond = projects.Beyond(f.Capacity, proposalOf(r).growth(r))
		return f, nil
	}
	p, err := q.Project(models.Everything, *req.ProjectID)
	if err != nil {
		return f, err
	}
	if r.project = p; req.State == models.RequestPending {
		f.Beyond = projects.Beyond(f.Capacity, proposalOf(r).growth(r))
	}
	views, err := projects.ViewsOf(q, p)
	if err != nil {
		return f, err
	}
	f.Project = &views[0]
	if err := f.present(q, req); err != nil {
		return f, err
	}
	return f, f.used(q, req)
}

// present is what is asked to be changed, as it is.
func (f *Facts) present(q *models.Queries, req models.QuotaRequest) error {
	switch req.Kind {
	case models.RequestQuota:
		f.Now = &f.Project.Quota
	case models.RequestPeriod:
		f.Until = f.Project.EndsAt
	case models.RequestLimit:
		if req.RoleID == nil { // deleted
			return nil
		}
		role, err := q.Role(models.Everything, f.Project.ID, *req.RoleID)
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

func (f *Facts) used(q *models.Queries, req models.QuotaRequest) error {
	now := q.Now()
	used, err := q.UsedBy(f.Project.ID, 0, now.Add(-usageSpan), now)
	if err != nil {
		return err
	}
	f.Used = &used
	if req.MemberID == nil {
		return nil
	}
	own, err := q.UsedBy(f.Project.ID, req.RequesterID, now.Add(-usageSpan), now)
	f.UsedByOne = &own
	return err
}
