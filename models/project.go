package models

import "time"

// Project is a team with a quota and a period of use.
type Project struct {
	ID          int64            `json:"id"`
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Quota       Resources        `json:"quota" gorm:"embedded;embeddedPrefix:quota_"`
	StartsAt    time.Time        `json:"starts_at"`                     // inclusive
	EndsAt      *time.Time       `json:"ends_at"`                       // exclusive; nil is open-ended
	Launch      LaunchParameters `json:"launch" gorm:"serializer:json"` // initial launch parameters
	Priority    int64            `json:"priority"`                      // in the queue, 0 to 100, the higher the earlier
	AskToJoin   bool             `json:"ask_to_join"`                   // people may ask to join it by its name
	Version     int64            `json:"version"`
	CreatedAt   time.Time        `json:"created_at"`
}

// UsualPriority is what a project has in the queue unless somebody says
// otherwise.
const UsualPriority = 50

// Active tells whether the project's period of use covers now.
func (p Project) Active(now time.Time) bool {
	return !now.Before(p.StartsAt) && (p.EndsAt == nil || now.Before(*p.EndsAt))
}

// Role is a position in a project: what it permits and the most that a
// member in it may hold at once.
type Role struct {
	ID          int64       `json:"id"`
	ProjectID   int64       `json:"project_id"`
	Name        string      `json:"name"`
	Permission  string      `json:"permission"`  // the word for what it permits
	Permissions Permissions `json:"permissions"` // of a custom role; otherwise the word says it
	Peak        Resources   `json:"peak" gorm:"embedded;embeddedPrefix:peak_"`
	Version     int64       `json:"version"`
	CreatedAt   time.Time   `json:"created_at"`
}

// Permits is all that the role permits.
func (r Role) Permits() Permissions { return PermissionsOf(r.Permission, r.Permissions) }

// Member is a user's place in a project. A removed member keeps its id, and
// with it its directory.
type Member struct {
	ID        int64      `json:"id"`
	ProjectID int64      `json:"project_id"`
	UserID    int64      `json:"user_id"`
	RoleID    int64      `json:"role_id"`
	Until     *time.Time `json:"until"`     // participation deadline, exclusive; nil is open-ended
	JoinedAt  time.Time  `json:"joined_at"` // the day, at midnight UTC; of the last time, for one who came back
	RemovedAt *time.Time `json:"removed_at"`
	Version   int64      `json:"version"`
	CreatedAt time.Time  `json:"created_at"`
}

// Active tells whether the membership gives any right at now.
func (m Member) Active(now time.Time) bool {
	return m.RemovedAt == nil && (m.Until == nil || now.Before(*m.Until))
}

// MemberView is a member with its user's and role's names and what it holds.
type MemberView struct {
	Member
	UserName        string
	UserEmail       string
	Department      string // empty: none
	RoleName        string
	Permission      string
	RolePermissions Permissions // of a custom role
	Peak            Resources   `gorm:"embedded;embeddedPrefix:peak_"`
}

// Permits is all that the member's role permits.
func (m MemberView) Permits() Permissions { return PermissionsOf(m.Permission, m.RolePermissions) }

// LaunchParameters are values for a launch. A nil pointer leaves the value to
// the next layer: project, environment, role, then the member's request.
type LaunchParameters struct {
	GPUs         *int64            `json:"gpus,omitempty" minimum:"0" doc:"number of GPUs"`
	Cores        *int64            `json:"cores,omitempty" minimum:"0" doc:"GPU cores per GPU, 1 to 100"`
	GPUMemoryMiB *int64            `json:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory per GPU, MiB; absent: in proportion to the cores"`
	GPUModel     *string           `json:"gpu_model,omitempty" doc:"GPU model; empty: any"`
	CPUMilli     *int64            `json:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core"`
	MemoryMiB    *int64            `json:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB"`
	ShmMiB       *int64            `json:"shm_mib,omitempty" minimum:"0" doc:"size of /dev/shm, MiB; counts as memory"`
	Path         *string           `json:"path,omitempty" doc:"page that opens first, such as /tree"`
	Env          map[string]string `json:"env,omitempty" doc:"environment variables"`
}
