package projects

import (
	"weir/models"
	"weir/pool/quota"
)

// CheckLimit refuses a role's limit above the project's whole quota, for then
// nobody could ever be given it.
func CheckLimit(limit, whole models.Resources) error {
	var problems models.Problems
	for _, e := range quota.Exceeded(limit, whole) {
		problems.Add("limit."+e.Name, "%s requested; the project's quota is %s",
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return breaksQuota(problems)
}

// breaksQuota refuses fields for lack of capacity; nil when there are none.
func breaksQuota(problems models.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return &models.Error{Kind: models.KindNoCapacity, Message: models.Say("This would exceed a quota or limit. No changes were made."), Fields: problems}
}

// quotaCovers holds rules 1 and 2 against a new quota.
func quotaCovers(q *models.Queries, p models.Project) error {
	allocated, err := q.AllocatedLimits(p.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range quota.Exceeded(allocated, p.Quota) {
		problems.Add("quota."+e.Name, "%s is allocated to members by role limits; the quota cannot be lower",
			models.Quantity(e.Name, e.Value))
	}
	if len(problems) > 0 {
		return breaksQuota(problems)
	}
	inUse, err := q.InUseByProject(p.ID)
	if err != nil {
		return err
	}
	for _, e := range quota.Exceeded(inUse, p.Quota) {
		problems.Add("quota."+e.Name, "%s is in use by workspaces; the quota cannot be lower", models.Quantity(e.Name, e.Value))
	}
	return breaksQuota(problems)
}

// allocationFits holds rule 1 when more is allocated, which n members share;
// field names the input's, of the limit itself or of what chooses one.
func allocationFits(q *models.Queries, p models.Project, more models.Resources, field string, n int64) error {
	allocated, err := q.AllocatedLimits(p.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range (quota.Allocation{Quota: p.Quota, Allocated: allocated}).ExceededBy(more) {
		name := field
		if field == "limit" {
			name = "limit." + e.Name
		}
		problems.Add(name, "%s: %s more requested for %d members; %s of the project's quota of %s remaining",
			e.Label, models.Quantity(e.Name, e.Requested), n, models.Quantity(e.Name, e.Remaining), models.Quantity(e.Name, e.Bound))
	}
	return breaksQuota(problems)
}

// useFits holds rule 2 when a member is given a role.
func useFits(q *models.Queries, m models.Member, limit models.Resources) error {
	inUse, err := q.InUseByMember(m.ProjectID, m.ID)
	if err != nil {
		return err
	}
	var problems models.Problems
	for _, e := range quota.Exceeded(inUse, limit) {
		problems.Add("role_id", "%s: %s is in use; the role's limit is %s", e.Label,
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, e.Limit))
	}
	return breaksQuota(problems)
}

// MemberOverLimit is a member that uses more now than a new limit would allow.
type MemberOverLimit struct {
	MemberID int64
	Name     string
	Excess   []models.Excess // what is in use beside the new limit
}

// membersAbove lists the members of a role who use more than its limit.
func membersAbove(q *models.Queries, r models.Role) (list []MemberOverLimit, err error) {
	inUse, err := q.InUseByMembers(r.ProjectID)
	if err != nil {
		return nil, err
	}
	members, err := q.MembersWithRole(r.ProjectID, r.ID)
	for _, m := range members {
		if over := quota.Exceeded(inUse[m.ID], r.Limit); len(over) > 0 {
			list = append(list, MemberOverLimit{m.ID, m.UserName, over})
		}
	}
	return list, err
}

// UseOf reads what is in use in one statement: a workspace may end at any
// moment, the project's lock or not, and the two sums belong together.
func UseOf(q *models.Queries, p models.Project, member int64, limit models.Resources) (quota.Use, error) {
	inUse, err := q.InUseByMembers(p.ID)
	u := quota.Use{Quota: p.Quota, Limit: limit, InUseByMember: inUse[member]}
	for _, r := range inUse {
		u.InUseByProject = u.InUseByProject.Add(r)
	}
	return u, err
}

// Use is what a present member may use, and does. Inside a transaction that
// has locked the project it stays true until the commit.
func (s *Service) Use(q *models.Queries, project models.Project, member int64) (quota.Use, error) {
	v, err := q.MemberView(models.Everything, project.ID, member)
	if err != nil {
		return quota.Use{}, err
	}
	return UseOf(q, project, member, v.Limit)
}
