package web

import (
	"context"

	"weir/models"
)

// FitRow tells whether GPUs of a usual size are available now, and why not.
type FitRow struct {
	Demand  models.Demand
	Outcome string // as in models.Answer
	Why     []models.Text
	// Simulated tells that the available GPUs are simulated.
	Simulated bool
}

func (f FitRow) now() bool { return f.Outcome == models.OutcomeGranted }

// size words the GPUs of a row.
func (f FitRow) size(ctx context.Context) string {
	switch {
	case f.Demand.Cores < 100:
		return T(ctx, "%d cores of a GPU", f.Demand.Cores)
	case f.Demand.GPUs == 1:
		return T(ctx, "a whole GPU")
	}
	return T(ctx, "%d whole GPUs", f.Demand.GPUs)
}

// outcome words the outcome.
func (f FitRow) outcome(ctx context.Context) string {
	switch f.Outcome {
	case models.OutcomeGranted:
		return T(ctx, "now")
	case models.OutcomePartial:
		return T(ctx, "fewer now, or after a wait")
	case models.OutcomeDelayed:
		return T(ctx, "after a wait")
	}
	return T(ctx, "not")
}

// availableSummary says in one line how much is available now, and why not more.
func availableSummary(ctx context.Context, rows []FitRow) string {
	most, next := -1, -1
	for i, f := range rows {
		if f.now() {
			most, next = i, -1
		} else if next < 0 {
			next = i
		}
	}
	line := T(ctx, "No share of a GPU could be had now.")
	if most >= 0 {
		line = T(ctx, "Could be had now: up to %s.", rows[most].size(ctx))
	}
	if next >= 0 && len(rows[next].Why) > 0 {
		line += " " + T(ctx, "Not %s: %s.", rows[next].size(ctx), TT(ctx, rows[next].Why[0]))
	}
	return line
}
