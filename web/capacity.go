package web

import (
	"context"

	"weir/models"
)

// PromisesView compares what is allocated with the capacity.
//
// Fields: ratio.* in percent, stated.*.
type PromisesView struct {
	Form     Form
	Rows     []PromiseRow
	Projects []PromisedTo
	Next     string
}

// PromiseRow is one resource: how much is allocated, and how much there is.
type PromiseRow struct {
	models.Amount
	Known     bool
	Capacity  int64
	Simulated int64 // of the capacity
	Ratio     int64
	Limit     int64
	Excess    int64 // beyond the limit
	Missing   int64 // beyond the capacity
}

// PromisedTo is a project that has a quota.
type PromisedTo struct {
	ID       int64
	Name     string
	Quota    models.Resources
	Promised models.Resources // to its members
	Held     models.Resources
}

// capacity words how much there is of a resource.
func (p PromiseRow) capacity(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "not known")
	}
	all := models.Quantity(p.Name, p.Capacity)
	switch p.Simulated {
	case 0:
		return all
	case p.Capacity:
		return T(ctx, "%s (simulated)", all)
	}
	return T(ctx, "%s (%s of it simulated)", all, models.Quantity(p.Name, p.Simulated))
}

// limit words how much of a resource may be allocated.
func (p PromiseRow) limit(ctx context.Context) string {
	if !p.Known {
		return T(ctx, "not checked")
	}
	return models.Quantity(p.Name, p.Limit)
}

// missing lists the resources of which more is allocated than there is.
func (v PromisesView) missing() (rows []PromiseRow) {
	for _, r := range v.Rows {
		if r.Missing > 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// amountOrDash words an amount of a resource; none is a dash.
func amountOrDash(r PromiseRow, n int64) string {
	if n == 0 {
		return "–"
	}
	return models.Quantity(r.Name, n)
}

// percentOf is the part of the whole allocation that one project has.
func percentOf(r PromiseRow, to PromisedTo) int64 {
	for _, a := range to.Quota.Amounts() {
		if a.Name == r.Name && r.Value > 0 {
			return a.Value * 100 / r.Value
		}
	}
	return 0
}

// ratioField is the input of a percentage, called as its resource.
func ratioField(a models.Amount) field {
	return field{Label: a.Label, Hint: models.Say("Percent, such as 150."), Inputmode: "numeric", Required: true}
}
