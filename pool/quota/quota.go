package quota

import (
	"slices"

	"weir/models"
)

// Excess is a resource of which more is requested than remains.
type Excess struct {
	Name      string      // of the resource, as in JSON
	Label     models.Text // and for people
	Taken     int64       // before
	Requested int64       // additionally
	Bound     int64
	Remaining int64 // of the bound; never negative
	OfProject bool  // the bound is the project's quota, and Taken what the project has
}

// Limits is the sum of the members' limits, and the quota that it must not exceed.
type Limits struct {
	Quota     models.Resources
	Allocated models.Resources
}

// Remaining is the part of the quota that is not allocated; negative if exceeded.
func (l Limits) Remaining() models.Resources { return l.Quota.Sub(l.Allocated) }

// ExceededBy lists the resources that would exceed the quota if more were
// allocated, without those of which more is not positive.
func (l Limits) ExceededBy(more models.Resources) []Excess {
	return excesses(more, l.Allocated, l.Quota, l.Remaining().Floor())
}

// Fits is how many more members with a limit fit into the quota; -1 for any number.
func (l Limits) Fits(limit models.Resources) int64 {
	fits := int64(-1)
	remaining := l.Remaining().Floor().Amounts()
	for i, one := range limit.Amounts() {
		if one.Value <= 0 || models.IsUnlimited(remaining[i].Value) {
			continue
		}
		if n := remaining[i].Value / one.Value; fits < 0 || n < fits {
			fits = n
		}
	}
	return fits
}

// Use is the use of a member and of the project, with their bounds.
type Use struct {
	Quota          models.Resources `json:"quota"`             // the project's
	InUseByProject models.Resources `json:"in_use_by_project"` // by all its workspaces
	Limit          models.Resources `json:"limit"`             // the member's role's
	InUseByMember  models.Resources `json:"in_use_by_member"`
}

// UseOf is the use of a member with a limit, of what is in use in the project by its
// members.
func UseOf(p models.Project, member int64, limit models.Resources, inUse map[int64]models.Resources) Use {
	u := Use{Quota: p.Quota, Limit: limit, InUseByMember: inUse[member]}
	for _, r := range inUse {
		u.InUseByProject = u.InUseByProject.Add(r)
	}
	return u
}

// Remaining is what the member can use additionally.
func (u Use) Remaining() models.Resources {
	return u.Limit.Sub(u.InUseByMember).Min(u.Quota.Sub(u.InUseByProject)).Floor()
}

// ExceededBy lists the resources of which more is requested than remains of the
// limit or the quota, whichever leaves less.
func (u Use) ExceededBy(more models.Resources) []Excess {
	list := excesses(more, u.InUseByMember, u.Limit, u.Remaining())
	byQuota := excesses(more, u.InUseByProject, u.Quota, u.Quota.Sub(u.InUseByProject).Floor())
	for _, e := range byQuota {
		e.OfProject = true
		i := slices.IndexFunc(list, func(x Excess) bool { return x.Name == e.Name })
		if e.Remaining < max(list[i].Bound-list[i].Taken, 0) {
			list[i] = e
		}
	}
	return list
}

func excesses(more, taken, bound, remaining models.Resources) (list []Excess) {
	takens, bounds, remainings := taken.Amounts(), bound.Amounts(), remaining.Amounts()
	for i, a := range more.Amounts() {
		if a.Value > 0 && a.Value > remainings[i].Value {
			list = append(list, Excess{Name: a.Name, Label: a.Label, Taken: takens[i].Value, Requested: a.Value,
				Bound: bounds[i].Value, Remaining: remainings[i].Value})
		}
	}
	return list
}

// nearly is the part of a quota, in percent, from which it counts as nearly used.
const nearly = 90

// Nearly is a nearly used resource of a quota.
type Nearly struct {
	models.Amount // in use
	Quota         int64
}

// NearlyUsed lists the resources of which so much of the quota is in use that it is
// nearly used, and was not before.
func NearlyUsed(before, after, quota models.Resources) (list []Nearly) {
	was, bounds := before.Amounts(), quota.Amounts()
	for i, a := range after.Amounts() {
		threshold := bounds[i].Value * nearly
		if bounds[i].Value > 0 && was[i].Value*100 < threshold && a.Value*100 >= threshold {
			list = append(list, Nearly{a, bounds[i].Value})
		}
	}
	return list
}
