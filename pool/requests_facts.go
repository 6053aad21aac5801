package pool

import (
	"time"

	"weir/models"
)

// usageSpan is how far back what was really used is added up.
const usageSpan = 30 * 24 * time.Hour

// Facts are what who decides a request should know beside it.
type Facts struct {
	Now       *models.Resources // the quota or peak as it is; nil where there is none yet
	Project   *ProjectView      // nil for a new one
	Members   int64             // who have the role that is asked about: its peak counts for each
	Until     *time.Time        // the end that is asked to be later, as it is
	Promises  []Promise
	Used      *models.Usage // by the project, in the last 30 days
	UsedByOne *models.Usage // of it by who asks; nil when that is nobody of the project
	Roles     []RoleView    // from which who joins gets one
	Beyond    []models.Text // what would be promised beyond the limits, as it was asked
}

// Left is what the project's quota has for further peaks.
func (f Facts) Left() models.Resources {
	if f.Project == nil {
		return models.Resources{}
	}
	return f.Project.Quota.Sub(f.Project.Promised)
}

func (r *Requests) facts(q *models.Queries, req models.QuotaRequest) (*Facts, error) {
	f := &Facts{}
	h := hearing{q: q, req: req, terms: req.Asked}
	var err error
	if f.Promises, _, err = r.promises.rows(q); err != nil {
		return f, err
	}
	if req.ProjectID == nil {
		f.Beyond = beyond(f.Promises, h.wish().growth(&h))
		return f, nil
	}
	p, err := q.Project(models.Everything, *req.ProjectID)
	if err != nil {
		return f, err
	}
	if h.project = p; req.State == models.RequestPending {
		f.Beyond = beyond(f.Promises, h.wish().growth(&h))
	}
	views, err := withSums(q, []models.Project{p})
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
	case models.AskForQuota:
		f.Now = &f.Project.Quota
	case models.AskForPeriod:
		f.Until = f.Project.EndsAt
	case models.AskForPeak:
		if req.RoleID == nil { // deleted
			return nil
		}
		role, err := q.Role(models.Everything, f.Project.ID, *req.RoleID)
		if err != nil {
			return models.IgnoreNotFound(err)
		}
		f.Now = &role.Peak
		f.Members, err = q.RoleMembers(f.Project.ID, role.ID)
		return err
	case models.AskForDeadline:
		m, err := q.Membership(f.Project.ID, req.RequesterID)
		f.Until = m.Until
		return models.IgnoreNotFound(err)
	case models.AskForJoin:
		return f.roles(q)
	}
	return nil
}

func (f *Facts) roles(q *models.Queries) error {
	roles, err := q.Roles(models.Everything, f.Project.ID)
	if err != nil {
		return err
	}
	counts, err := q.CountRoleMembers(f.Project.ID)
	for _, role := range roles {
		f.Roles = append(f.Roles, RoleView{Role: role, Members: counts[role.ID]})
	}
	return err
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
