package policies

import (
	"strings"

	"weir/models"
)

// Right is the permission to do an act on a kind of object, written
// "object:act". Those that roles can have are named like [models.Permissions].
type Right string

// All rights that are checked.
const (
	AccountWrite     Right = "account:write" // of the actor's own account; every user has it
	AuditRead        Right = "audit:read"
	CapacityRead     Right = "capacity:read"
	CapacityWrite    Right = "capacity:write"
	CuratorRead      Right = "curator:read" // of the public directories
	CuratorWrite     Right = "curator:write"
	DeviceWrite      Right = "device:write"
	EnvironmentRead  Right = "environment:read"
	EnvironmentWrite Right = "environment:write"
	MemberWrite      Right = "member:write"
	PoolRead         Right = "pool:read"
	ProjectDescribe  Right = "project:describe"
	ProjectRead      Right = "project:read"
	ProjectWrite     Right = "project:write"
	ProviderRead     Right = "provider:read"
	ProviderWrite    Right = "provider:write"
	RequestCreate    Right = "request:create"
	RequestDecide    Right = "request:decide"
	RequestRead      Right = "request:read"
	RequestWithdraw  Right = "request:withdraw"
	RoleWrite        Right = "role:write"
	StorageRead      Right = "storage:read"
	StorageWrite     Right = "storage:write"
	UserRead         Right = "user:read"
	UserWrite        Right = "user:write"
	WebhookRead      Right = "webhook:read"
	WebhookWrite     Right = "webhook:write"
	WorkspaceLaunch  Right = "workspace:launch"
	WorkspaceOpen    Right = "workspace:open"
	WorkspaceRead    Right = "workspace:read"
	WorkspaceStop    Right = "workspace:stop"
)

// split returns the object and the act, as casbin's rules have them.
func (r Right) split() (object, act string) {
	object, act, _ = strings.Cut(string(r), ":")
	return object, act
}

// Scope is the scope that an access token needs for the right.
func (r Right) Scope() models.TokenScope {
	object, act := r.split()
	if act == "read" {
		return models.ScopeRead
	}
	switch object {
	case "workspace":
		return models.ScopeLaunch
	case "project", "role", "member", "request", "storage":
		return models.ScopeProject
	default:
		return models.ScopeAdmin
	}
}
