package web

import (
	"cmp"
	"context"
	"slices"

	"weir/models"
)

// MemberFormView adds a member or, with an ID, edits one.
//
// Fields: email (new only), role_id, joined_at, until.
type MemberFormView struct {
	Lacks     map[int64]models.Permissions // by role, the permissions that the reader cannot grant
	Form      Form
	ProjectID int64
	Project   string
	ID        int64
	Name      string
	Email     string
	Roles     []RoleChoice
	Remaining models.Resources // quota − Σ of the other members' limits
	Preview   *PreviewView
	Service   bool // a new service account
}

func (v MemberFormView) title(ctx context.Context) string {
	if v.Service {
		return T(ctx, "Add service account")
	}
	if v.ID == 0 {
		return T(ctx, "Add member")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v MemberFormView) subtitle(ctx context.Context) string {
	if v.Email == "" {
		return v.Project
	}
	return v.Project + " · " + accountText(ctx, v.Email)
}

func (v MemberFormView) action() string {
	if v.Service {
		return projectPath(v.ProjectID) + "/service-accounts"
	}
	return itemPath(projectPath(v.ProjectID)+"/members", v.ID)
}

// ChosenRole is the role that is chosen in the form; see [ChosenRole].
func (v MemberFormView) ChosenRole() int64 {
	return ChosenRole(v.Form.Value("role_id"), v.Roles, v.Remaining, v.Lacks)
}

// ChosenRole is the role that a form has chosen, or else the least that the reader can
// grant, if it fits. It is 0 when the reader has to choose.
func ChosenRole(chosen string, roles []RoleChoice, remaining models.Resources, lacks map[int64]models.Permissions) int64 {
	for _, r := range roles {
		if number(r.ID) == chosen {
			return r.ID
		}
	}
	roles = slices.DeleteFunc(slices.Clone(roles), func(r RoleChoice) bool { return lacks[r.ID] != 0 })
	if chosen != "" || len(roles) == 0 {
		return 0
	}
	least := slices.MinFunc(roles, func(a, b RoleChoice) int { return cmp.Compare(a.rank(), b.rank()) })
	if len(least.Limit.Exceeding(remaining)) > 0 {
		return 0
	}
	return least.ID
}

// RoleChoice is a role that a member may get.
type RoleChoice struct {
	ID         int64
	Name       string
	Permission string
	Limit      models.Resources
}

// rank orders roles by what they permit. A custom set can be anything, but less than an owner's.
func (r RoleChoice) rank() int {
	if r.Permission == models.PermissionOwner {
		return len(models.StandardPermissions) + 1
	}
	if i := slices.Index(models.StandardPermissions, r.Permission); i >= 0 {
		return i
	}
	return len(models.StandardPermissions)
}

// ConfirmRemoveMember asks for confirmation before a member is removed.
func ConfirmRemoveMember(project models.Project, member models.MemberView) ConfirmView {
	base := projectPath(project.ID)
	return ConfirmView{
		Title: models.Say("Remove %s from %s?", member.UserName, project.Name),
		Consequences: []models.Text{
			models.Say("Their workspaces in this project are stopped and the resources are released."),
			models.Say("Their directory and its files are kept."),
		},
		Button: models.Say("Remove member"),
		Action: base + "/members/" + number(member.ID) + "/delete",
		Back:   base, Version: member.Version,
	}
}

// roleSelection are the roles of which a form chooses one.
type roleSelection struct {
	Form      Form
	Name      string // of the input
	Roles     []RoleChoice
	Chosen    string                       // the id of the chosen role
	Remaining *models.Resources            // of the quota; nil: not shown
	Lacks     map[int64]models.Permissions // by role, the permissions that the reader cannot grant
}
