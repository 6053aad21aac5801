package web

import (
	"context"
	"time"

	"weir/models"
)

// extensionText describes an upcoming or past end.
func extensionText(ctx context.Context, e models.Extension) string {
	now, at := From(ctx).Now, models.EndMoment(e.EndsAt)
	switch period := e.Kind == models.RequestPeriod; {
	case period && e.Over(now):
		return T(ctx, "Project %s ended on %s.", e.Project, at)
	case period:
		return T(ctx, "Project %s ends in %s, on %s.", e.Project, span(ctx, now, e.EndsAt), at)
	case e.Over(now):
		return T(ctx, "Your membership in %s ended on %s.", e.Project, at)
	default:
		return T(ctx, "Your membership in %s ends in %s, on %s.", e.Project, span(ctx, now, e.EndsAt), at)
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
