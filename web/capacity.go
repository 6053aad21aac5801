package web

import (
	"context"
	"strings"

	"weir/models"
)

// CapacityView compares what is allocated with the capacity.
//
// Fields: ratio.* in percent, stated.*.
type CapacityView struct {
	Form     Form
	Foreign  []models.Foreign // what others run here
	Rows     []CapacityRow
	Projects []AllocatedTo
	Next     string
}

// CapacityRow is one resource: how much is allocated, and how much there is.
type CapacityRow struct {
	models.Amount
	Known            bool
	Capacity         int64
	Simulated        int64 // of the capacity
	Machine          bool  // it is that of the portal's machine
	Ratio            int64
	Allocatable      int64
	AboveAllocatable int64 // allocated beyond what is allocatable
	AboveCapacity    int64 // allocated beyond the capacity
}

// AllocatedTo is a project that has a quota.
type AllocatedTo struct {
	ID        int64
	Name      string
	Quota     models.Resources
	Allocated models.Resources // to its members
	InUse     models.Resources
}

// capacity formats the capacity of a resource.
func (p CapacityRow) capacity(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "unknown")
	}
	all := models.Quantity(p.Name, p.Capacity)
	if p.Machine {
		return T(ctx, "%s (this machine)", all)
	}
	switch p.Simulated {
	case 0:
		return all
	case p.Capacity:
		return T(ctx, "%s (simulated)", all)
	}
	return T(ctx, "%s (%s simulated)", all, models.Quantity(p.Name, p.Simulated))
}

// allocatable formats how much of a resource may be allocated.
func (p CapacityRow) allocatable(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "not checked")
	}
	return models.Quantity(p.Name, p.Allocatable)
}

// aboveColumns are the columns of aboveCapacity.
func (v CapacityView) aboveColumns(ctx context.Context) (list tableColumns) {
	for _, r := range v.aboveCapacity() {
		list = append(list, num(T(ctx, "Percentage of allocated %s", TT(ctx, r.Label)))...)
	}
	return list
}

// aboveCapacity lists the resources of which more is allocated than there is.
func (v CapacityView) aboveCapacity() (rows []CapacityRow) {
	for _, r := range v.Rows {
		if r.AboveCapacity > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// amountOrDash formats an amount of a resource; 0 is a dash.
func amountOrDash(r CapacityRow, n int64) string {
	if n == 0 {
		return "–"
	}
	return models.Quantity(r.Name, n)
}

// percentOf is the part of the whole allocation that one project has.
func percentOf(r CapacityRow, to AllocatedTo) int64 {
	for _, a := range to.Quota.Amounts() {
		if a.Name == r.Name && r.Value > 0 {
			return a.Value * 100 / r.Value
		}
	}
	return 0
}

// ratioField is the input of a percentage, called as its resource.
func ratioField(a models.Amount) field {
	return field{Label: a.Label, Hint: models.Say("Percentage, such as 150."), Inputmode: "numeric", Required: true}
}

// starterOf names the generation that runs something.
func starterOf(ctx context.Context, f models.Foreign) string {
	installation, generation, ok := strings.Cut(f.Owner, ".")
	if !ok {
		return T(ctx, "an earlier version")
	}
	return T(ctx, "generation %s of %s", generation, installation)
}
