package web

import (
	"context"

	"weir/models"
)

// RoleFormView creates a role or, with an ID, edits it.
//
// Fields: name, permission, permissions, limit.*.
type RoleFormView struct {
	Form      Form
	ProjectID int64
	Project   string
	ID        int64
	Name      string
	Has       models.Permissions // of the reader, who cannot grant others
	Members   int64              // in this role: the limit counts that often
	Quota     models.Resources   // of the project
	Remaining models.Resources   // quota − Σ of the limits of members outside this role
	Blocked   error              // why it cannot be deleted
	Preview   *PreviewView
}

func (v RoleFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add role")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v RoleFormView) action() string { return itemPath(projectPath(v.ProjectID)+"/roles", v.ID) }

// ConfirmDeleteRole asks for confirmation before a role is deleted; blocked says
// why it cannot be.
func ConfirmDeleteRole(project models.Project, role models.Role, blocked error) ConfirmView {
	base := projectPath(project.ID)
	return ConfirmView{
		Title:        models.Say("Delete role %s?", role.Name),
		Consequences: []models.Text{models.Say("This role can no longer be assigned.")},
		Blocked:      blocked,
		Button:       models.Say("Delete role"),
		Action:       base + "/roles/" + number(role.ID) + "/delete",
		Back:         base, Version: role.Version,
	}
}
