package web

import (
	"strconv"

	"weir/models"
)

// FormerMembersView lists a project's former members, with their directories.
type FormerMembersView struct {
	ProjectID int64
	Project   string
	Rows      []models.FormerMember
	CanManage bool   // hand over and take back
	Next      string // address of the next page, empty on the last
}

// HandoverView selects the recipient of a former member's directory.
//
// Fields: to_member_id.
type HandoverView struct {
	Form         Form
	Project      models.Project
	FormerMember models.FormerMember
	Recipients   []models.Recipient
}

// options are the members to choose from.
func (v HandoverView) options() []Option {
	list := make([]Option, len(v.Recipients))
	for i, h := range v.Recipients {
		list[i] = Option{strconv.FormatInt(h.ID, 10), h.UserName + " (" + h.UserEmail + ")"}
	}
	return list
}

func formerMembersPath(project int64) string { return projectPath(project) + "/former-members" }

func handoverPath(l models.FormerMember) string {
	return projectPath(l.ProjectID) + "/members/" + number(l.ID) + "/handover"
}

// directoryOf is where workspaces see a member's own directory.
func directoryOf(m models.Member) string {
	return "/notebook/" + number(m.ProjectID) + "/" + number(m.ID)
}

// ConfirmEndHandover asks for confirmation before the handover of a directory ends.
func ConfirmEndHandover(l models.FormerMember) ConfirmView {
	return ConfirmView{Title: models.Say("End the handover of the directory of %s?", l.UserName), Button: models.Say("End handover"),
		Consequences: []models.Text{models.Say("Its files can then no longer be changed. Running workspaces can write to them until they stop.")},
		Action:       handoverPath(l) + "/end", Back: projectPath(l.ProjectID)}
}
