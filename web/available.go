package web

import (
	"context"

	"weir/models"
)

// AvailableRow is the availability of a common share size.
type AvailableRow struct {
	Demand  models.Demand
	Outcome string // as in models.Decision
	Reasons []models.Text
	// Simulated is set if the available GPUs are simulated.
	Simulated bool
}

func (f AvailableRow) now() bool { return f.Outcome == models.OutcomeGranted }

// size formats the GPUs of a row.
func (f AvailableRow) size(ctx context.Context) string {
	switch {
	case f.Demand.Cores < 100:
		return T(ctx, "%d GPU cores", f.Demand.Cores)
	case f.Demand.GPUs == 1:
		return T(ctx, "1 GPU")
	}
	return T(ctx, "%d GPUs", f.Demand.GPUs)
}

// outcome formats the outcome.
func (f AvailableRow) outcome(ctx context.Context) string {
	switch f.Outcome {
	case models.OutcomeGranted:
		return T(ctx, "now")
	case models.OutcomePartial:
		return T(ctx, "some now, or all later")
	case models.OutcomeDelayed:
		return T(ctx, "later")
	}
	return T(ctx, "not available")
}

// launchPath is the address of a launch with the GPUs of a row.
func (f AvailableRow) launchPath(project int64) string {
	return "/launch?project_id=" + number(project) + "&gpus=" + number(f.Demand.GPUs) + "&cores=" + number(f.Demand.Cores)
}

// nextUnavailable is why the size after those that are available now is not; empty if all
// are.
func nextUnavailable(ctx context.Context, rows []AvailableRow) string {
	next := -1
	for i, f := range rows {
		switch {
		case f.now():
			next = -1
		case next < 0:
			next = i
		}
	}
	if next < 0 || len(rows[next].Reasons) == 0 {
		return ""
	}
	return T(ctx, "%s not available (%s).", rows[next].size(ctx), TT(ctx, rows[next].Reasons[0]))
}
