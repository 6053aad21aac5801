package web

import (
	"context"
	"strings"
	"time"

	"weir/models"
)

// What the forms are called, where they post to and where they lead back.

func (v ProjectFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Create a project")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v ProjectFormView) does(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Create project")
	}
	return T(ctx, "Save")
}

func (v ProjectFormView) action() string {
	if v.ID == 0 {
		return "/projects"
	}
	return projectPath(v.ID)
}

func (v ProjectFormView) back() string { return v.action() }

func (v RoleFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add a role")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v RoleFormView) does(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add role")
	}
	return T(ctx, "Save")
}

func (v RoleFormView) action() string {
	return under(projectPath(v.ProjectID)+"/roles", v.ID)
}

func (v MemberFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add a member")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v MemberFormView) below() string {
	if v.Email == "" {
		return v.Project
	}
	return v.Project + " · " + v.Email
}

func (v MemberFormView) does(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add member")
	}
	return T(ctx, "Save")
}

func (v MemberFormView) action() string {
	return under(projectPath(v.ProjectID)+"/members", v.ID)
}

// chosen tells whether the i-th role is the one chosen; a new member gets the
// first that fits.
func (v MemberFormView) chosen(i int) bool {
	if want := v.Form.Value("role_id"); want != "" {
		return id(v.Roles[i].ID) == want
	}
	for j, r := range v.Roles {
		if len(r.Peak.Exceeding(v.Remaining)) == 0 && v.Lacks[r.ID] == 0 {
			return i == j
		}
	}
	return i == 0
}

// ChosenRole is the role that is chosen in the form; 0 when there is none to
// choose.
func (v MemberFormView) ChosenRole() int64 {
	for i, r := range v.Roles {
		if v.chosen(i) {
			return r.ID
		}
	}
	return 0
}

func (v EnvironmentFormView) title(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add an environment")
	}
	return T(ctx, "Edit %s", v.Name)
}

func (v EnvironmentFormView) does(ctx context.Context) string {
	if v.ID == 0 {
		return T(ctx, "Add environment")
	}
	return T(ctx, "Save")
}

func (v EnvironmentFormView) action() string { return under("/environments", v.ID) }

// under is the address of a thing in a list, or of the list for a new one.
func under(list string, n int64) string {
	if n == 0 {
		return list
	}
	return list + "/" + id(n)
}

// below is what stands under a project's name.
func (v ProjectView) below(ctx context.Context) string {
	s := period(ctx, v.Project.StartsAt, v.Project.EndsAt)
	if v.MyRole != "" {
		s += " · " + T(ctx, "your role: %s", v.MyRole)
	}
	return s
}

// period words a period of use by its days.
func period(ctx context.Context, from time.Time, until *time.Time) string {
	if until == nil {
		return T(ctx, "from %s", day(from))
	}
	return T(ctx, "%s to %s", day(from), day(*until))
}

// amounts words a vector of resources in one line.
func amounts(ctx context.Context, r models.Resources) string {
	var parts []string
	for _, a := range r.Amounts() {
		parts = append(parts, TT(ctx, a.Label)+" "+models.Quantity(a.Name, a.Value))
	}
	return strings.Join(parts, " · ")
}

// excess words by how much a vector is too large.
func excess(ctx context.Context, over []models.Excess) string {
	var parts []string
	for _, e := range over {
		parts = append(parts, T(ctx, "%s needs %s, %s is left", TT(ctx, e.Label),
			models.Quantity(e.Name, e.Value), models.Quantity(e.Name, max(0, e.Limit))))
	}
	return strings.Join(parts, T(ctx, "; "))
}
