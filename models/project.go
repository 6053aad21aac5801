package models

import "time"

// Project is a team with a quota and a period of use.
type Project struct {
	ID           int64            `json:"id"`
	Name         string           `json:"name"`
	Description  string           `json:"description"`
	Quota        Resources        `json:"quota" gorm:"embedded;embeddedPrefix:quota_"`
	StartsAt     time.Time        `json:"starts_at"`                     // inclusive
	EndsAt       *time.Time       `json:"ends_at"`                       // exclusive; nil is open-ended
	Launch       LaunchParameters `json:"launch" gorm:"serializer:json"` // initial launch parameters
	Priority     int64            `json:"priority"`                      // in the queue, 0 to 100; higher is earlier
	Outgoing     Outgoing         `json:"outgoing" gorm:"embedded;embeddedPrefix:outgoing_"`
	JoinRequests bool             `json:"join_requests"` // accepts requests to join by its name
	Version      int64            `json:"version"`
	CreatedAt    time.Time        `json:"created_at"`
}

// DefaultPriority is the default priority of a project in the queue.
const DefaultPriority = 50

// UsedSince is the later of a time and the creation of the project, before which it used
// nothing: averages that begin there are not lowered by days when it did not exist.
func (p Project) UsedSince(from, until time.Time) time.Time {
	if p.CreatedAt.After(from) && p.CreatedAt.Before(until) {
		return p.CreatedAt
	}
	return from
}

// Active reports whether now is in the project's period of use.
func (p Project) Active(now time.Time) bool {
	return !now.Before(p.StartsAt) && (p.EndsAt == nil || now.Before(*p.EndsAt))
}

// CheckActive refuses what needs a project in its period of use.
func (p Project) CheckActive(now time.Time) error {
	if !p.Active(now) {
		return Forbidden("The project is not within its period of use.")
	}
	return nil
}

// States of a project's period of use.
const (
	ProjectsActive  = "active"
	ProjectsPlanned = "planned"
	ProjectsEnded   = "ended"
)

// State is the state of the period of use: planned, active or ended.
func (p Project) State(now time.Time) string {
	switch {
	case p.Active(now):
		return ProjectsActive
	case now.Before(p.StartsAt):
		return ProjectsPlanned
	default:
		return ProjectsEnded
	}
}

// Role is a position in a project: its permissions, and the limit of each member
// in it.
type Role struct {
	ID          int64       `json:"id"`
	ProjectID   int64       `json:"project_id"`
	Name        string      `json:"name"`
	Permission  string      `json:"permission"`  // a standard set of permissions, or custom
	Permissions Permissions `json:"permissions"` // of a custom role
	Limit       Resources   `json:"limit" gorm:"embedded;embeddedPrefix:limit_"`
	Version     int64       `json:"version"`
	CreatedAt   time.Time   `json:"created_at"`
}

// Permits is the set of the role's permissions.
func (r Role) Permits() Permissions { return PermissionsOf(r.Permission, r.Permissions) }

// Member is a user's membership in a project. A removed member keeps its id, and
// with it its directory.
type Member struct {
	ID        int64      `json:"id"`
	ProjectID int64      `json:"project_id"`
	UserID    int64      `json:"user_id"`
	RoleID    int64      `json:"role_id"`
	Until     *time.Time `json:"until"`     // end of the membership, exclusive; nil is open-ended
	JoinedAt  time.Time  `json:"joined_at"` // midnight UTC; the last time, after joining again
	RemovedAt *time.Time `json:"removed_at"`
	Version   int64      `json:"version"`
	CreatedAt time.Time  `json:"created_at"`
}

// Active reports whether the membership gives rights now.
func (m Member) Active(now time.Time) bool {
	return m.RemovedAt == nil && (m.Until == nil || now.Before(*m.Until))
}

// MemberView is a member with the names of its user and role, and its rights.
type MemberView struct {
	Member
	UserName        string
	UserEmail       string
	UserUnconfirmed bool   // no one has shown that the person has the address
	Department      string // empty: none
	RoleName        string
	Permission      string
	RolePermissions Permissions // of a custom role
	Limit           Resources   `gorm:"embedded;embeddedPrefix:limit_"`
}

// Permits is the set of the permissions of the member's role.
func (m MemberView) Permits() Permissions { return PermissionsOf(m.Permission, m.RolePermissions) }

// LaunchParameters are values for a launch. A nil value is left to the next
// layer: project, environment, role, then the member's request.
type LaunchParameters struct {
	GPUs              *int64            `json:"gpus,omitempty" minimum:"0" doc:"number of GPUs"`
	Cores             *int64            `json:"cores,omitempty" minimum:"0" doc:"GPU cores per GPU, 1 to 100"`
	GPUMemoryMiB      *int64            `json:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory per GPU, MiB; absent: in proportion to the cores"`
	GPUModel          *string           `json:"gpu_model,omitempty" doc:"GPU model; empty: any"`
	CPUMilli          *int64            `json:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core"`
	MemoryMiB         *int64            `json:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB"`
	ShmMiB            *int64            `json:"shm_mib,omitempty" minimum:"0" doc:"size of /dev/shm, MiB; counts as memory"`
	IdleMinutes       *int64            `json:"idle_minutes,omitempty" minimum:"0" doc:"minutes without work after which a workspace is stopped; 0: never"`
	GPUIdleMinutes    *int64            `json:"gpu_idle_minutes,omitempty" minimum:"0" doc:"the same for a workspace with GPUs, which are released then; 0: never"`
	KernelIdleMinutes *int64            `json:"kernel_idle_minutes,omitempty" minimum:"0" doc:"minutes without work after which a GPU kernel releases its GPU, while the workspace goes on; 0: never"`
	Path              *string           `json:"path,omitempty" doc:"default URL path, such as /tree"`
	Env               map[string]string `json:"env,omitempty" doc:"environment variables"`
}
