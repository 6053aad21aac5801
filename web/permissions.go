package web

import (
	"context"
	"slices"
	"strings"

	"weir/models"
)

// permissionWords describe the permissions.
var permissionWords = map[string]models.Text{
	"project:read":     models.Say("View the project, its roles, members and resources. Included in every role."),
	"project:describe": models.Say("Edit the name, description and initial launch parameters."),
	"role:write":       models.Say("Create, edit and delete roles within one's own permissions."),
	"member:write":     models.Say("Add, edit and remove members, and allow join requests."),
	"request:decide":   models.Say("Decide member requests: roles, limits, joining and end dates."),
	"workspace:read":   models.Say("View the workspaces of other members."),
	"workspace:launch": models.Say("Launch and open one's own workspaces."),
	"workspace:stop":   models.Say("Stop the workspaces of other members."),
	"audit:read":       models.Say("View the audit log of the project."),
	"storage:write":    models.Say("Change the rules of the project's shared directories."),
}

// standardWords describe the standard sets.
var standardWords = map[string]models.Text{
	models.PermissionViewer:  models.Say("Views the project and what runs in it. Cannot launch workspaces."),
	models.PermissionMember:  models.Say("Launches and stops own workspaces."),
	models.PermissionManager: models.Say("Also manages roles, members and all workspaces in the project, and views its audit log."),
	models.PermissionOwner:   models.Say("Also edits the project's name, description and initial launch parameters."),
	models.PermissionCustom:  models.Say("The permissions selected below."),
}

// PermissionChoice is the choice of what a role permits, in a form whose
// fields begin with Prefix.
//
// Fields: permission, permissions (names, with spaces between).
type PermissionChoice struct {
	Form   Form
	Prefix string
	Has    models.Permissions // of the reader, who cannot grant others
	Custom bool               // a set of its own can be chosen
}

func (c PermissionChoice) words() []string {
	words := slices.Clone(models.StandardPermissions)
	if c.Custom || c.word() == models.PermissionCustom {
		words = append(words, models.PermissionCustom)
	}
	return words
}

func (c PermissionChoice) word() string { return c.Form.Value(c.Prefix + "permission") }

// chosen reports whether a set is selected: that of the form, or else the least that the reader can grant.
func (c PermissionChoice) chosen(word string) bool {
	if c.word() != "" {
		return c.word() == word
	}
	words := c.words()
	least := slices.IndexFunc(words, func(w string) bool { return c.missing(w) == 0 })
	return least >= 0 && words[least] == word
}

// missing is the part of a standard set that the reader cannot grant.
func (c PermissionChoice) missing(word string) models.Permissions {
	return models.PermissionsOf(word, 0).Without(c.Has)
}

// permissionBox is one permission to choose.
type permissionBox struct {
	name           string
	on, off, fixed bool // chosen; not the reader's to grant; always there
}

func (c PermissionChoice) boxes() (list []permissionBox) {
	chosen := strings.Fields(c.Form.Value(c.Prefix + "permissions"))
	for _, name := range models.PermissionNames() {
		set, err := models.ParsePermissions([]string{name})
		fixed := name == "project:read"
		list = append(list,
			permissionBox{name: name, fixed: fixed, on: fixed || slices.Contains(chosen, name), off: err != nil || !c.Has.Contains(set)})
	}
	return list
}

// permitted formats the permissions of a role: the name of the set, and the list of a
// custom role.
func permitted(ctx context.Context, r models.Role) string {
	if r.Permission != models.PermissionCustom {
		return stateWord(ctx, r.Permission)
	}
	return stateWord(ctx, r.Permission) + ": " + r.Permits().String()
}
