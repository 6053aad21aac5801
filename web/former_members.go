package web

import (
	"context"
	"strconv"
	"time"

	"weir/models"
)

// LeaversView lists who has left a project, with their directories.
type LeaversView struct {
	ProjectID int64
	Project   string
	Rows      []models.Leaver
	CanManage bool   // hand over and take back
	Next      string // address of the next page, empty on the last
}

// HandoverView chooses who gets the directory of a member who has left.
//
// Fields: to_member_id.
type HandoverView struct {
	Form    Form
	Project models.Project
	Leaver  models.Leaver
	Heirs   []models.Heir
}

// options are the heirs to choose from.
func (v HandoverView) options() []Option {
	list := make([]Option, len(v.Heirs))
	for i, h := range v.Heirs {
		list[i] = Option{strconv.FormatInt(h.ID, 10), h.UserName + " (" + h.UserEmail + ")"}
	}
	return list
}

func leaversPath(project int64) string { return projectPath(project) + "/leavers" }

func handoverPath(l models.Leaver) string {
	return projectPath(l.ProjectID) + "/members/" + id(l.ID) + "/handover"
}

// directoryOf is where workspaces see a member's own directory.
func directoryOf(m models.Member) string { return "/notebook/" + id(m.ProjectID) + "/" + id(m.ID) }

// extensionWords say which end is near, or over.
func extensionWords(ctx context.Context, e models.Extension) string {
	now, at := From(ctx).Now, models.Moment(e.EndsAt)
	switch period := e.Kind == models.AskForPeriod; {
	case period && e.Over(now):
		return T(ctx, "The project %s ended on %s.", e.Project, at)
	case period:
		return T(ctx, "The project %s ends in %s, on %s.", e.Project, span(ctx, now, e.EndsAt), at)
	case e.Over(now):
		return T(ctx, "Your participation in %s ended on %s.", e.Project, at)
	default:
		return T(ctx, "Your participation in %s ends in %s, on %s.", e.Project, span(ctx, now, e.EndsAt), at)
	}
}

// extensionEdit is where the end can be set by who may.
func extensionEdit(e models.Extension) string {
	if e.Kind == models.AskForPeriod {
		return projectPath(e.ProjectID) + "/edit"
	}
	return projectPath(e.ProjectID) + "/members/" + id(e.MemberID) + "/edit"
}

// extensionField is the input by which the later end is posted.
func extensionField(e models.Extension) string {
	if e.Kind == models.AskForPeriod {
		return "period.ends_at"
	}
	return "deadline.until"
}

// lastDay is how long before its end a workspace's page warns.
const lastDay = 24 * time.Hour

// Stopping is when a workspace is stopped, and why.
type Stopping struct {
	At        time.Time
	Why       models.Text
	Extension *models.Extension // what its reader can do about it
}

// soon tells whether the page should say so.
func (s *Stopping) soon(ctx context.Context) bool {
	return s != nil && s.At.Sub(From(ctx).Now) <= lastDay
}
