package web

import (
	"strconv"

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

// options are the members to choose from.
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
