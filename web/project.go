package web

import (
	"time"

	"weir/models"
)

// ProjectsView lists the projects that the reader may see.
type ProjectsView struct {
	Rows      []ProjectRow
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
	Quota      models.Resources
	StartsAt   time.Time
	EndsAt     *time.Time
	Active     bool
}

// ProjectFormView creates a project or, with an ID, edits it.
//
// Fields: name, description, quota.*, starts_at, ends_at, launch.*.
type ProjectFormView struct {
	Form Form
	ID   int64
	Name string // as stored, for the heading
}

// ProjectView is one project.
type ProjectView struct {
	Project       models.Project
	Held          models.Resources
	Promised      models.Resources // Σ over members of their role's peak
	Roles         []RoleRow
	Members       []MemberRow
	Workspaces    []WorkspaceRow // live
	MyRole        string
	CanEdit       bool // name, quota, period, launch parameters
	CanManage     bool // roles and members
	CanAsk        bool // for more, as a member
	CanLaunch     bool
	ShowWhoHolds  bool   // may see what each member holds
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
	Members   int64            // in this role: the peak counts that often
	Quota     models.Resources // of the project
	Remaining models.Resources // quota − Σ of the peaks of members outside this role
	CanDelete bool
}

// MemberFormView adds a member or, with an ID, edits one.
//
// Fields: email (new only), role_id, until.
type MemberFormView struct {
	Form      Form
	ProjectID int64
	Project   string
	ID        int64
	Name      string
	Email     string
	Roles     []RoleChoice
	Remaining models.Resources // quota − Σ of the other members' peaks
}

// RoleChoice is a role that a member may get.
type RoleChoice struct {
	ID         int64
	Name       string
	Permission string
	Peak       models.Resources
}
