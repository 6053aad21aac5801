package models

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Permissions is a set of permissions inside a project. The names of its
// members, "object:act", are fixed.
type Permissions uint32

// Permissions inside a project.
const (
	ProjectRead     Permissions = 1 << iota // see the project, its roles, members and resources; every role has it
	ProjectDescribe                         // change its name, description and initial launch parameters
	RoleWrite                               // create, change and delete roles
	MemberWrite                             // add, change and remove members; open the project to requests to join
	RequestDecide                           // decide requests of members: roles, limits, joining and deadlines
	WorkspaceRead                           // see the workspaces of others
	WorkspaceLaunch                         // launch and open workspaces of one's own
	WorkspaceStop                           // stop the workspaces of others
	AuditRead                               // read the project's audit
	StorageWrite                            // change the rules of the project's shared directories
	permissionsEnd

	// AllPermissions is the set of all permissions.
	AllPermissions = permissionsEnd - 1
)

// permissionNames are in the order of the bits.
var permissionNames = []string{"project:read", "project:describe", "role:write", "member:write", "request:decide",
	"workspace:read", "workspace:launch", "workspace:stop", "audit:read", "storage:write"}

// Standard sets of permissions, and custom.
const (
	PermissionOwner   = "owner"   // manager, and to describe the project
	PermissionManager = "manager" // everything in the project but its description, quota and period
	PermissionMember  = "member"  // own workspaces
	PermissionViewer  = "viewer"  // to see everything in the project
	PermissionCustom  = "custom"  // listed in the role
)

// StandardPermissions are the names of the standard sets, the smallest first;
// each contains the one before.
var StandardPermissions = []string{PermissionViewer, PermissionMember, PermissionManager, PermissionOwner}

// standard are the sets of StandardPermissions.
var standard = map[string]Permissions{
	PermissionViewer:  ProjectRead | WorkspaceRead,
	PermissionMember:  ProjectRead | WorkspaceRead | WorkspaceLaunch,
	PermissionManager: AllPermissions &^ ProjectDescribe,
	PermissionOwner:   AllPermissions,
}

// PermissionsOf returns a standard set by its name; for a custom role it is own.
// An unknown name permits nothing.
func PermissionsOf(name string, own Permissions) Permissions {
	if name == PermissionCustom {
		return (own & AllPermissions) | ProjectRead
	}
	return standard[name]
}

// ParsePermissions parses a list of names. The error contains an unknown one.
func ParsePermissions(names []string) (p Permissions, err error) {
	for _, name := range names {
		i := slices.Index(permissionNames, name)
		if i < 0 {
			return 0, fmt.Errorf("models: there is no permission %q", name)
		}
		p |= 1 << i
	}
	return p, nil
}

// CheckPermissions refuses an unknown standard set, and a list that does not
// match it: a custom role lists at least one permission, a standard one none or
// exactly its own. It returns the list to store.
func CheckPermissions(standardSet string, names []string, p *Problems) []string {
	if standardSet != PermissionCustom && standard[standardSet] == 0 {
		p.Add("permission", "must be owner, manager, member, viewer or custom")
		return nil
	}
	set, err := ParsePermissions(names)
	switch {
	case err != nil:
		p.Add("permissions", "must be project permissions: %s", AllPermissions.String())
	case standardSet == PermissionCustom && len(names) == 0:
		p.Add("permissions", "must include at least one permission for a custom role")
	case standardSet == PermissionCustom:
		return (set | ProjectRead).Names()
	case len(names) > 0 && set|ProjectRead != standard[standardSet]:
		p.Add("permissions", "can be set only for a custom role; %s has %s", standardSet, standard[standardSet].String())
	}
	return nil
}

// Permission finds a permission by its name; 0 when there is none.
func Permission(name string) Permissions {
	p, _ := ParsePermissions([]string{name})
	return p
}

// PermissionNames returns the names of all permissions, in display order.
func PermissionNames() []string { return slices.Clone(permissionNames) }

// Contains reports whether every permission of other is in the set.
func (p Permissions) Contains(other Permissions) bool { return other&^p == 0 }

// Without is the set difference p − other.
func (p Permissions) Without(other Permissions) Permissions { return p &^ other }

// Names are the names of the set's permissions, sorted.
func (p Permissions) Names() []string {
	names := make([]string, 0, bits.OnesCount32(uint32(p)))
	for i, name := range permissionNames {
		if p&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// String lists the names, separated by commas.
func (p Permissions) String() string { return strings.Join(p.Names(), ", ") }

// MarshalJSON writes the set as a sorted list of names.
func (p Permissions) MarshalJSON() ([]byte, error) { return json.Marshal(p.Names()) }

// UnmarshalJSON reads a list of names.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	var names []string
	if err := json.Unmarshal(data, &names); err != nil {
		return err
	}
	set, err := ParsePermissions(names)
	*p = set
	return err
}

// Value stores the set as JSON.
func (p Permissions) Value() (driver.Value, error) {
	text, err := p.MarshalJSON()
	return string(text), err
}

// Scan reads the set from a database. It ignores unknown names, of newer
// versions.
func (p *Permissions) Scan(value any) error {
	var raw sql.NullString
	var names []string
	err := raw.Scan(value)
	if err == nil && raw.Valid {
		err = json.Unmarshal([]byte(raw.String), &names)
	}
	known, _ := ParsePermissions(slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(permissionNames, name) }))
	*p = known
	return err
}

// PlatformPermissions tells what an account may do outside projects, for pages.
type PlatformPermissions struct {
	CreateProjects, ReadAccounts, EditAccounts, EditEnvironments, EditWebhooks, EditCapacity, EditCurators bool
	ReadProviders, EditProviders, EditDevices                                                              bool
	Launch                                                                                                 bool // in any project
}
