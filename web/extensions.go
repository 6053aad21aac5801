package web

import (
	"context"
	"time"

	"weir/models"
)

// extensionText describes a past end, or begins the sentence about an upcoming one.
func extensionText(ctx context.Context, e models.Extension) string {
	switch period, over := e.Kind == models.RequestPeriod, e.Over(From(ctx).Now); {
	case period && over:
		return T(ctx, "Project %s ended on %s.", e.Project, models.EndMoment(e.EndsAt))
	case period:
		return T(ctx, "Project %s ends", e.Project)
	case over:
		return T(ctx, "Your membership in %s ended on %s.", e.Project, models.EndMoment(e.EndsAt))
	default:
		return T(ctx, "Your membership in %s ends", e.Project)
	}
}

// extensionEdit is the address of the form that changes the end.
func extensionEdit(e models.Extension) string {
	if e.Kind == models.RequestPeriod {
		return projectPath(e.ProjectID) + "/edit"
	}
	return projectPath(e.ProjectID) + "/members/" + number(e.MemberID) + "/edit"
}

// extensionField is the input by which the later end is posted.
func extensionField(e models.Extension) string {
	if e.Kind == models.RequestPeriod {
		return "period.ends_at"
	}
	return "deadline.until"
}

// warnBefore is how long before its end a workspace's page warns.
const warnBefore = 24 * time.Hour

// ScheduledStop is when a workspace is stopped, and why.
type ScheduledStop struct {
	At            time.Time
	Reason        models.Text
	Extension     *models.Extension // that the reader can request
	ReservationID int64             // that ends then; 0: none
}

// soon reports whether the page should show the end.
func (s *ScheduledStop) soon(ctx context.Context) bool {
	return s != nil && s.At.Sub(From(ctx).Now) <= warnBefore
}
