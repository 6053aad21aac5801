package models

import (
	"reflect"
	"time"
)

// QuotaRequest is a request that needs a decision by somebody else.
type QuotaRequest struct {
	ID             int64        `json:"id"`
	Kind           string       `json:"kind"`
	ProjectID      *int64       `json:"project_id"` // of a new project once it is approved
	RoleID         *int64       `json:"role_id"`
	MemberID       *int64       `json:"member_id"`
	RequesterID    int64        `json:"requester_id"`
	Asked          Asked        `json:"asked" gorm:"column:asked;serializer:json"`
	Reason         string       `json:"reason"`
	State          RequestState `json:"state"`
	Decided        *Asked       `json:"decided" gorm:"serializer:json"` // as approved
	DeciderID      *int64       `json:"decider_id"`
	DecisionReason string       `json:"decision_reason"`
	Version        int64        `json:"version"`
	CreatedAt      time.Time    `json:"created_at"`
	DecidedAt      *time.Time   `json:"decided_at"` // or withdrawn
}

// RequestState is the state of a request: pending until it is approved, adjusted,
// refused or withdrawn.
type RequestState string

const (
	RequestPending   RequestState = "pending"
	RequestApproved  RequestState = "approved"
	RequestAdjusted  RequestState = "adjusted" // approved with other numbers
	RequestRefused   RequestState = "refused"
	RequestWithdrawn RequestState = "withdrawn"
)

// Kinds of requests.
const (
	AskForProject  = "project"  // a new project
	AskForQuota    = "quota"    // another quota of a project
	AskForRole     = "role"     // a new role in a project
	AskForPeak     = "peak"     // a larger limit of a role
	AskForPeriod   = "period"   // a later end of a project's period of use
	AskForDeadline = "deadline" // a later end of one's own participation
	AskForJoin     = "join"     // a place in a project
)

// RequestKinds are all kinds, in the order of forms.
var RequestKinds = []string{AskForProject, AskForJoin, AskForPeak, AskForRole, AskForDeadline, AskForQuota, AskForPeriod}

// PlatformKinds are decided by platform administrators; the others by a
// project's managers too.
var PlatformKinds = []string{AskForProject, AskForQuota, AskForPeriod}

// Asked is the content of a request. Exactly one field is set, that of its kind.
type Asked struct {
	Project  *AskProject  `json:"project,omitempty" doc:"a new project, with you as its owner"`
	Quota    *AskQuota    `json:"quota,omitempty" doc:"another quota of a project"`
	Role     *AskRole     `json:"role,omitempty" doc:"a new role in a project"`
	Peak     *AskPeak     `json:"peak,omitempty" doc:"a larger peak of a role"`
	Period   *AskPeriod   `json:"period,omitempty" doc:"a later end of a project's period of use"`
	Deadline *AskDeadline `json:"deadline,omitempty" doc:"a later end of your participation"`
	Join     *AskJoin     `json:"join,omitempty" doc:"a place in a project"`
}

// AskProject requests a new project.
type AskProject struct {
	Name        string     `json:"name" maxLength:"100"`
	Description string     `json:"description,omitempty" maxLength:"2000"`
	Quota       Resources  `json:"quota"`
	Peak        Resources  `json:"peak,omitempty" required:"false" doc:"the most that you, its owner, may hold at once; absent: nothing"`
	StartsAt    *time.Time `json:"starts_at,omitempty" doc:"begin of the period of use; absent: when it is approved"`
	EndsAt      *time.Time `json:"ends_at,omitempty" doc:"end of the period of use; absent: open-ended"`
}

// AskQuota requests another quota.
type AskQuota struct {
	ProjectID int64     `json:"project_id" minimum:"1"`
	Quota     Resources `json:"quota" doc:"the whole quota, not what is to be added"`
}

// AskRole requests a new role.
type AskRole struct {
	ProjectID   int64     `json:"project_id" minimum:"1"`
	Name        string    `json:"name" maxLength:"100"`
	Permission  string    `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Permissions []string  `json:"permissions,omitempty" doc:"of a custom role: what it permits"`
	Peak        Resources `json:"peak"`
	Mine        bool      `json:"mine,omitempty" doc:"you want to have the role yourself"`
}

// AskPeak requests another limit of a role.
type AskPeak struct {
	ProjectID int64     `json:"project_id" minimum:"1"`
	RoleID    int64     `json:"role_id" minimum:"1"`
	Peak      Resources `json:"peak" doc:"the whole peak, not what is to be added"`
}

// AskPeriod requests a later end of a project's period of use.
type AskPeriod struct {
	ProjectID int64      `json:"project_id" minimum:"1"`
	EndsAt    *time.Time `json:"ends_at,omitempty" doc:"absent: open-ended"`
}

// AskDeadline requests a later participation deadline of the requester.
type AskDeadline struct {
	ProjectID int64      `json:"project_id" minimum:"1"`
	Until     *time.Time `json:"until,omitempty" doc:"absent: open-ended"`
}

// AskJoin requests membership in a project that accepts such requests. The role
// is chosen with the decision.
type AskJoin struct {
	ProjectID int64      `json:"project_id,omitempty" minimum:"1" doc:"the project, or its exact name"`
	Name      string     `json:"name,omitempty" maxLength:"100" doc:"the project's exact name"`
	RoleID    int64      `json:"role_id,omitempty" minimum:"1" doc:"which role; only who decides says it"`
	Until     *time.Time `json:"until,omitempty" doc:"participation deadline; absent: open-ended"`
}

// Kind is the kind of the request; empty unless exactly one field is set.
func (a Asked) Kind() string {
	kind, v := "", reflect.ValueOf(a)
	for i, name := range []string{AskForProject, AskForQuota, AskForRole, AskForPeak, AskForPeriod, AskForDeadline, AskForJoin} {
		switch {
		case v.Field(i).IsNil():
		case kind != "":
			return ""
		default:
			kind = name
		}
	}
	return kind
}

// Amounts is the requested quota or limit; zero for kinds without one.
func (a Asked) Amounts() Resources {
	switch {
	case a.Project != nil:
		return a.Project.Quota
	case a.Quota != nil:
		return a.Quota.Quota
	case a.Role != nil:
		return a.Role.Peak
	case a.Peak != nil:
		return a.Peak.Peak
	}
	return Resources{}
}

// Clone copies the request with its content.
func (a Asked) Clone() Asked {
	return Asked{Project: clone(a.Project), Quota: clone(a.Quota), Role: clone(a.Role), Peak: clone(a.Peak),
		Period: clone(a.Period), Deadline: clone(a.Deadline), Join: clone(a.Join)}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// RequestView is a request with names.
type RequestView struct {
	QuotaRequest
	ProjectName    string // empty without a project
	RoleName       string
	RequesterName  string
	RequesterEmail string
	DeciderName    string
}

// What words the content, as in "You asked for …".
func (v RequestView) What() Text {
	switch v.Kind {
	case AskForProject:
		return Say("a new project: %s", v.Asked.Project.Name)
	case AskForQuota:
		return Say("another quota of %s", v.ProjectName)
	case AskForRole:
		return Say("a new role in %s: %s", v.ProjectName, v.Asked.Role.Name)
	case AskForPeak:
		return Say("a larger peak in %s", v.ProjectName)
	case AskForPeriod:
		return Say("a later end of %s", v.ProjectName)
	case AskForDeadline:
		return Say("a longer participation in %s", v.ProjectName)
	default:
		return Say("a place in %s", v.ProjectName)
	}
}

// Overcommit sets how much of each resource may be allocated to projects.
type Overcommit struct {
	ID            int64     `json:"-"`
	Ratio         Resources `json:"ratio" gorm:"embedded;embeddedPrefix:ratio_"` // percent of the capacity
	StatedCPU     int64     `json:"stated_cpu_milli" gorm:"column:stated_cpu_milli"`
	StatedMemory  int64     `json:"stated_memory_mib" gorm:"column:stated_memory_mib"`
	StatedStorage int64     `json:"stated_storage_mib" gorm:"column:stated_storage_mib"`
	Version       int64     `json:"version"`
}

// TableName overrides gorm's plural.
func (Overcommit) TableName() string { return "overcommit" }

// Stated is the capacity set by an administrator for resources that are not
// measured; 0 is unknown.
func (o Overcommit) Stated() Resources {
	return Resources{CPUMilli: o.StatedCPU, MemoryMiB: o.StatedMemory, StorageMiB: o.StatedStorage}
}

// Usage is the usage in a time span, from the rows of shares and workspaces.
type Usage struct {
	Average      Resources `json:"average" doc:"held on average; storage is not measured"`
	GPUCoreHours int64     `json:"gpu_core_hours" doc:"100 are one hour of a whole GPU"`
	CPUHours     int64     `json:"cpu_hours" doc:"of whole CPU cores"`
}

// add sets the usage of one table from its sums in units times seconds.
func (u *Usage) add(in HeldIn, first, second int64, span time.Duration) {
	seconds := max(int64(span/time.Second), 1)
	if in == HeldShares {
		u.GPUCoreHours = first / 3600
		u.Average.GPUCores, u.Average.GPUMemoryMiB = first/seconds, second/seconds
		return
	}
	u.CPUHours = first / (3600 * 1000)
	u.Average.CPUMilli, u.Average.MemoryMiB = first/seconds, second/seconds
}
