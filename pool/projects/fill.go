package projects

import (
	"weir/models"
	"weir/pool/quota"
)

// Filled is one amount of a quota or limit, and where it comes from.
type Filled struct {
	models.Amount
	Source quota.Source
}

func filledOf(r models.Resources, from quota.Sources) (list []Filled) {
	for i, a := range r.Amounts() {
		list = append(list, Filled{a, from[i]})
	}
	return list
}

// FillQuota fills the amounts of a project's quota that are left open, from the pool;
// p is the project as it is, or a new one.
func (e Editor) FillQuota(in models.ResourcesInput, p models.Project) (models.Resources, quota.Sources, error) {
	var base quota.Base
	if in.Open() {
		var err error
		if base, err = e.pool.quotaBase(e.q, allocatedTo(p, e.q.Now())); err != nil {
			return models.Resources{}, base.Sources, err
		}
	}
	filled, from := base.Fill(in)
	return filled, from, nil
}

// FillLimit fills the amounts of a role's limit that are left open, from the quota of
// its project; none if the role cannot launch workspaces.
func FillLimit(in models.ResourcesInput, total models.Resources, role models.Permissions) (models.Resources, quota.Sources) {
	return quota.LimitBase(total, role.Contains(models.WorkspaceLaunch)).Fill(in)
}
