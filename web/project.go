package web

import (
	"context"
	"net/url"
	"time"

	"weir/models"
)

// ProjectsView lists the projects that the reader may see.
//
// Fields: search, state.
type ProjectsView struct {
	Form      Form
	Sort      string // as in models.ProjectSorts; empty: by id
	Down      bool   // the largest first
	Rows      []ProjectRow
	Mine      bool   // the reader has a role in some of them
	Many      bool   // there are more than one look finds
	Next      string // address of the next page, empty on the last
	CanCreate bool
}

// ProjectRow is a project in the list.
type ProjectRow struct {
	ID         int64
	Name       string
	Role       string // mine, or empty
	Members    int64
	Workspaces int64 // live
	Held       models.Resources
	Promised   models.Resources
	Quota      models.Resources
	StartsAt   time.Time
	EndsAt     *time.Time
	Active     bool
}

var projectSearchField = field{Label: models.Say("Name"), Hint: models.Say("A part of it is enough."), Type: "search"}

// projectStates are what the period of use may be.
func projectStates(ctx context.Context) []Option {
	return []Option{{"", T(ctx, "any")}, {models.ProjectsActive, T(ctx, "now")}, {models.ProjectsPlanned, T(ctx, "not begun")}, {models.ProjectsEnded, T(ctx, "over")}}
}

// Filtered tells whether the list was chosen.
func (v ProjectsView) Filtered() bool {
	return v.Form.Value("search") != "" || v.Form.Value("state") != ""
}

// query is the address of the same choice in another order.
func (v ProjectsView) query(sort string, down bool) string {
	q := url.Values{}
	for name, text := range map[string]string{"search": v.Form.Value("search"), "state": v.Form.Value("state"), "sort": sort} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if down {
		q.Set("down", "true")
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// turned tells whether a click on a column's head puts the largest first:
// numbers begin with it.
func (v ProjectsView) turned(sort string, number bool) bool {
	if v.Sort == sort {
		return !v.Down
	}
	return number
}

func (v ProjectsView) sorted(sort string) string {
	switch {
	case v.Sort != sort:
		return "none"
	case v.Down:
		return "descending"
	}
	return "ascending"
}

func (v ProjectsView) arrow(sort string) string {
	return map[string]string{"none": "", "descending": " ↓", "ascending": " ↑"}[v.sorted(sort)]
}

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

// ProjectView is one project.
type ProjectView struct {
	Project       models.Project
	Held          models.Resources
	Promised      models.Resources // Σ over members of their role's peak
	Roles         []RoleRow
	Members       []MemberRow
	Workspaces    []WorkspaceRow // live
	Fits          []FitRow       // what a member could have now
	MyRole        string
	CanEdit       bool // name, quota, period, launch parameters
	CanDescribe   bool // name and launch parameters
	CanManage     bool // roles
	CanAdmit      bool // members
	CanAudit      bool
	Has           models.Permissions // of the reader: what permits more is not theirs to change
	CanAsk        bool               // for more, as a member
	CanLaunch     bool
	ShowWhoHolds  bool               // may see what each member holds
	Extensions    []models.Extension // of ends that are near
	Leavers       LeaversView
	MoreMembers   string // address of the next page of members, or empty
	MembersOnNext bool   // this page is not the first
}

// RoleRow is a role with how many are in it.
type RoleRow struct {
	Role    models.Role
	Members int64
}

// MemberRow is a member with what it holds.
type MemberRow struct {
	Member models.MemberView
	Held   models.Resources
	Me     bool
}

// RoleFormView creates a role or, with an ID, edits it.
//
// Fields: name, permission (manager or member), peak.*.
type RoleFormView struct {
	Form      Form
	ProjectID int64
	Project   string
	ID        int64
	Name      string
	Has       models.Permissions // of the reader, who can grant no more
	Members   int64              // in this role: the peak counts that often
	Quota     models.Resources   // of the project
	Remaining models.Resources   // quota − Σ of the peaks of members outside this role
	CanDelete bool
	Preview   *PreviewView
}

// MemberFormView adds a member or, with an ID, edits one.
//
// Fields: email (new only), role_id, joined_at, until.
type MemberFormView struct {
	Lacks     map[int64]models.Permissions // by role, what it permits that the reader cannot grant
	Form      Form
	ProjectID int64
	Project   string
	ID        int64
	Name      string
	Email     string
	Roles     []RoleChoice
	Remaining models.Resources // quota − Σ of the other members' peaks
	Preview   *PreviewView
}

// RoleChoice is a role that a member may get.
type RoleChoice struct {
	ID         int64
	Name       string
	Permission string
	Peak       models.Resources
}
