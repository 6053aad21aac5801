package models

import (
	"reflect"
	"time"
)

// QuotaRequest is a request that someone else decides.
type QuotaRequest struct {
	ID             int64        `json:"id"`
	Kind           string       `json:"kind"`
	ProjectID      *int64       `json:"project_id"` // of a new project once it is approved
	RoleID         *int64       `json:"role_id"`
	MemberID       *int64       `json:"member_id"`
	RequesterID    int64        `json:"requester_id"`
	Requested      Requested    `json:"requested" gorm:"serializer:json"`
	Reason         string       `json:"reason"`
	Baseline       *Resources   `json:"baseline,omitempty" gorm:"serializer:json"` // quota or limit when it was submitted
	State          RequestState `json:"state"`
	Decided        *Requested   `json:"decided,omitempty" gorm:"serializer:json"` // as approved
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
	RequestProject  = "project"  // a new project
	RequestQuota    = "quota"    // another quota of a project
	RequestRole     = "role"     // a new role in a project
	RequestLimit    = "limit"    // a larger limit of a role
	RequestPeriod   = "period"   // a later end of a project's period of use
	RequestDeadline = "deadline" // a later end of one's own membership
	RequestJoin     = "join"     // a place in a project
)

// RequestKinds are all kinds, in the order of forms.
var RequestKinds = []string{RequestProject, RequestJoin, RequestLimit, RequestRole, RequestDeadline, RequestQuota, RequestPeriod}

// PlatformKinds are decided by platform administrators; the others by a
// project's managers too.
var PlatformKinds = []string{RequestProject, RequestQuota, RequestPeriod}

// Requested is the content of a request. Exactly one field is set, that of its kind.
type Requested struct {
	Project  *ProjectSpec  `json:"project,omitempty" doc:"new project owned by the requester"`
	Quota    *QuotaSpec    `json:"quota,omitempty" doc:"change of a project's quota"`
	Role     *RoleSpec     `json:"role,omitempty" doc:"new role in a project"`
	Limit    *LimitSpec    `json:"limit,omitempty" doc:"increase of a role's limit"`
	Period   *PeriodSpec   `json:"period,omitempty" doc:"extension of a project's period of use"`
	Deadline *DeadlineSpec `json:"deadline,omitempty" doc:"extension of the membership"`
	Join     *JoinSpec     `json:"join,omitempty" doc:"membership in a project"`
}

// ProjectSpec requests a new project.
type ProjectSpec struct {
	Name        string         `json:"name" maxLength:"100"`
	Description string         `json:"description,omitempty" maxLength:"2000"`
	Quota       ResourcesInput `json:"quota,omitempty" doc:"absent amounts are filled in from the pool"`
	Limit       ResourcesInput `json:"limit,omitempty" doc:"limit of the owner; absent amounts are filled in from the quota"`
	StartsAt    *time.Time     `json:"starts_at,omitempty" doc:"start of the period of use; absent for the time of approval"`
	EndsAt      *time.Time     `json:"ends_at,omitempty" doc:"end of the period of use; absent if open-ended"`
}

// QuotaSpec requests another quota.
type QuotaSpec struct {
	ProjectID int64          `json:"project_id" minimum:"1"`
	Quota     ResourcesInput `json:"quota" doc:"total quota, not the increase; absent amounts are filled in from the pool"`
}

// RoleSpec requests a new role.
type RoleSpec struct {
	ProjectID         int64          `json:"project_id" minimum:"1"`
	Name              string         `json:"name" maxLength:"100"`
	Permission        string         `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Permissions       []string       `json:"permissions,omitempty" doc:"permissions of a custom role"`
	Limit             ResourcesInput `json:"limit,omitempty" doc:"absent amounts are filled in from the project's quota"`
	AssignToRequester bool           `json:"assign_to_requester,omitempty" doc:"assign the role to the requester"`
}

// LimitSpec requests another limit of a role.
type LimitSpec struct {
	ProjectID int64          `json:"project_id" minimum:"1"`
	RoleID    int64          `json:"role_id" minimum:"1"`
	Limit     ResourcesInput `json:"limit" doc:"total limit, not the increase; absent amounts are filled in from the project's quota"`
}

// PeriodSpec requests a later end of a project's period of use.
type PeriodSpec struct {
	ProjectID int64      `json:"project_id" minimum:"1"`
	EndsAt    *time.Time `json:"ends_at,omitempty" doc:"end date; absent if open-ended"`
}

// DeadlineSpec requests a later end of the membership of the requester.
type DeadlineSpec struct {
	ProjectID int64      `json:"project_id" minimum:"1"`
	Until     *time.Time `json:"until,omitempty" doc:"end date; absent if open-ended"`
}

// JoinSpec requests membership in a project that accepts such requests. The role
// is chosen with the decision.
type JoinSpec struct {
	ProjectID int64      `json:"project_id,omitempty" minimum:"1" doc:"project ID; alternative to name"`
	Name      string     `json:"name,omitempty" maxLength:"100" doc:"exact project name; alternative to project_id"`
	RoleID    int64      `json:"role_id,omitempty" minimum:"1" doc:"role ID; set by the reviewer"`
	Until     *time.Time `json:"until,omitempty" doc:"end of the membership; absent if open-ended"`
}

// Kind is the kind of the request; empty unless exactly one field is set.
func (a Requested) Kind() string {
	kind, v := "", reflect.ValueOf(a)
	for i, name := range []string{RequestProject, RequestQuota, RequestRole, RequestLimit, RequestPeriod, RequestDeadline, RequestJoin} {
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
func (a Requested) Amounts() Resources {
	switch {
	case a.Project != nil:
		return a.Project.Quota.Resources()
	case a.Quota != nil:
		return a.Quota.Quota.Resources()
	case a.Role != nil:
		return a.Role.Limit.Resources()
	case a.Limit != nil:
		return a.Limit.Limit.Resources()
	}
	return Resources{}
}

// End is the requested end of a period or membership; nil if it is open.
func (a Requested) End() *time.Time {
	switch {
	case a.Period != nil:
		return a.Period.EndsAt
	case a.Deadline != nil:
		return a.Deadline.Until
	}
	return nil
}

// Clone copies the request with its content.
func (a Requested) Clone() Requested {
	return Requested{Project: clone(a.Project), Quota: clone(a.Quota), Role: clone(a.Role), Limit: clone(a.Limit),
		Period: clone(a.Period), Deadline: clone(a.Deadline), Join: clone(a.Join)}
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}

// RequestView is a request with names.
type RequestView struct {
	QuotaRequest
	ProjectName          string // empty without a project
	RoleName             string
	RequesterName        string
	RequesterEmail       string
	RequesterUnconfirmed bool // no one has shown that the person has the address
	DeciderName          string

	// What it would change; see Before and EndsBefore.
	Present         Resources `gorm:"embedded;embeddedPrefix:present_"`
	PresentEndsAt   *time.Time
	PresentUntil    *time.Time
	PresentWithheld bool `gorm:"-"` // from this reader
}

// Before is the quota or limit that a pending request would change, or from which one that is
// not pending any more began; nil if it is not about one.
func (v RequestView) Before() *Resources {
	switch {
	case v.Kind != RequestQuota && (v.Kind != RequestLimit || v.RoleID == nil), v.PresentWithheld:
		return nil
	case v.State == RequestPending:
		return &v.Present
	}
	return v.Baseline
}

// EndsBefore is the end of the period or membership that a pending request would
// extend, which is nil where it is open; changes is false if it is not about one.
func (v RequestView) EndsBefore() (end *time.Time, changes bool) {
	switch {
	case v.changesNow() && v.Kind == RequestPeriod:
		return v.PresentEndsAt, true
	case v.changesNow() && v.Kind == RequestDeadline:
		return v.PresentUntil, true
	}
	return nil, false
}

func (v RequestView) changesNow() bool { return v.State == RequestPending && !v.PresentWithheld }

// What is the subject of the request in a sentence.
func (v RequestView) What() Text {
	switch v.Kind {
	case RequestProject:
		return Say("new project: %s", v.Requested.Project.Name)
	case RequestQuota:
		return Say("quota change for %s", v.ProjectName)
	case RequestRole:
		return Say("new role in %s: %s", v.ProjectName, v.Requested.Role.Name)
	case RequestLimit:
		return Say("higher limit in %s", v.ProjectName)
	case RequestPeriod:
		return Say("extension of %s", v.ProjectName)
	case RequestDeadline:
		return Say("extended membership in %s", v.ProjectName)
	default:
		return Say("membership in %s", v.ProjectName)
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
	Average      Resources `json:"average" doc:"average resources in use; excludes storage"`
	GPUCoreHours float64   `json:"gpu_core_hours" doc:"GPU core hours, to two decimals; 100 equal one hour of a whole GPU"`
	CPUHours     float64   `json:"cpu_hours" doc:"CPU core hours, to two decimals"`
}

// Plus adds usage of the same span.
func (u Usage) Plus(o Usage) Usage {
	return Usage{u.Average.Add(o.Average), u.GPUCoreHours + o.GPUCoreHours, u.CPUHours + o.CPUHours}
}
