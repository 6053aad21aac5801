package web

import (
	"context"
	"slices"

	"weir/models"
)

// ProjectView is one project.
type ProjectView struct {
	Project       models.Project
	InUse         models.Resources
	Allocated     models.Resources // Σ over members of their role's limit
	Roles         []RoleRow
	Members       []MemberRow
	Storage       models.StorageUse
	QuotaEnforced bool           // the file system keeps notebooks within the storage quota
	Workspaces    []WorkspaceRow // live
	Available     []AvailableRow // available to a member now
	MyRole        string
	CanEdit       bool // name, quota, period, launch parameters
	CanDescribe   bool // name and launch parameters
	CanManage     bool // roles
	CanAdmit      bool // members
	CanAudit      bool
	Has           models.Permissions // of the reader, who cannot change roles with others
	CanAsk        bool               // for more, as a member
	CanLaunch     bool
	Extensions    []models.Extension // of ends that are near
	FormerMembers FormerMembersView
	MoreMembers   string // address of the next page of members, or empty
	Portal        string // address of the portal, for links to pass on
}

// RoleRow is a role with how many are in it.
type RoleRow struct {
	Role    models.Role
	Members int64
}

// MemberRow is a member with their use.
type MemberRow struct {
	Member models.MemberView
	InUse  models.Resources
	Files  models.MemberStorage
	Me     bool
}

// storage is what the member's files use, and the limit.
func (m MemberRow) storage(ctx context.Context) string {
	return T(ctx, "%s of %s", models.Quantity("storage_mib", m.Files.UsedMiB()), models.Quantity("storage_mib", m.Member.Limit.StorageMiB))
}

// subtitle is the text below a project's name.
func (v ProjectView) subtitle(ctx context.Context) string {
	s := capitalised(period(ctx, v.Project.StartsAt, v.Project.EndsAt))
	if v.MyRole != "" {
		s += " · " + T(ctx, "your role: %s", v.MyRole)
	}
	return s
}

// hasDepartments reports whether a member on the page is in a department.
func (v ProjectView) hasDepartments() bool {
	return slices.ContainsFunc(v.Members, func(m MemberRow) bool { return m.Member.Department != "" })
}
