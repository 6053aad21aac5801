package web

import "context"

// ProjectFormView creates a project or, with an ID, edits it.
//
// Fields: name, description, quota.*, starts_at, ends_at, launch.*.
type ProjectFormView struct {
	Form Form
	ID   int64
	Name string // as stored, for the heading

	Describing bool // no more than the name, description and launch parameters
	Preview    *PreviewView
}

func (v ProjectFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Create project")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v ProjectFormView) action() string { return itemPath("/projects", v.ID) }
