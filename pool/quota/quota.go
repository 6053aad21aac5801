package quota

import "weir/models"

// Excess is a resource of which more is asked than remains.
type Excess struct {
	Name      string      // of the resource, as in JSON
	Label     models.Text // and for people
	Taken     int64       // before
	Requested int64       // in addition
	Bound     int64
	Remaining int64 // of the bound; never negative
}

// Exceeded lists the resources of which a sum is larger than its bound.
func Exceeded(sum, bound models.Resources) []models.Excess { return sum.Exceeding(bound) }

// Allocation is the first sum: a quota, and what of it is allocated to members
// by the limits of their roles.
type Allocation struct {
	Quota     models.Resources
	Allocated models.Resources
}

// Remaining is what of the quota is not allocated; negative where more is.
func (a Allocation) Remaining() models.Resources { return a.Quota.Sub(a.Allocated) }

// ExceededBy lists what would exceed the quota if more were allocated. What
// shrinks, or stays, is not in the list: it makes nothing worse.
func (a Allocation) ExceededBy(more models.Resources) []Excess {
	return exceededBy(more, a.Allocated, a.Quota, a.Remaining().Floor())
}

// Fits counts how many more members with a limit the quota has for; -1 is as
// many as there are.
func (a Allocation) Fits(limit models.Resources) int64 {
	fits := int64(-1)
	remaining := a.Remaining().Floor().Amounts()
	for i, l := range limit.Amounts() {
		if l.Value <= 0 {
			continue
		}
		if n := remaining[i].Value / l.Value; fits < 0 || n < fits {
			fits = n
		}
	}
	return fits
}

// Use is the second sum: what a member and the whole project have in use, and
// what bounds both.
type Use struct {
	Quota          models.Resources `json:"quota"`             // the project's
	InUseByProject models.Resources `json:"in_use_by_project"` // by all its workspaces
	Limit          models.Resources `json:"limit"`             // the member's role's
	InUseByMember  models.Resources `json:"in_use_by_member"`
}

// Remaining is the most that the member may use in addition.
func (u Use) Remaining() models.Resources {
	a, b := u.Limit.Sub(u.InUseByMember).Floor(), u.Quota.Sub(u.InUseByProject).Floor()
	return models.Resources{GPUCores: min(a.GPUCores, b.GPUCores), GPUMemoryMiB: min(a.GPUMemoryMiB, b.GPUMemoryMiB),
		CPUMilli: min(a.CPUMilli, b.CPUMilli), MemoryMiB: min(a.MemoryMiB, b.MemoryMiB), StorageMiB: min(a.StorageMiB, b.StorageMiB)}
}

// ExceededBy lists what is asked in addition beyond what remains; taken and
// bound are the member's.
func (u Use) ExceededBy(asked models.Resources) []Excess {
	return exceededBy(asked, u.InUseByMember, u.Limit, u.Remaining())
}

func exceededBy(asked, taken, bound, remaining models.Resources) (list []Excess) {
	takens, bounds, remainings := taken.Amounts(), bound.Amounts(), remaining.Amounts()
	for i, a := range asked.Amounts() {
		if a.Value > 0 && a.Value > remainings[i].Value {
			list = append(list, Excess{Name: a.Name, Label: a.Label, Taken: takens[i].Value, Requested: a.Value,
				Bound: bounds[i].Value, Remaining: remainings[i].Value})
		}
	}
	return list
}
