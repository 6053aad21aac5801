package models

import (
	"slices"
	"time"
)

// WorkspaceState is the state of a workspace: requested → queued → starting →
// running → stopping → stopped; failed from any.
type WorkspaceState string

const (
	StateRequested WorkspaceState = "requested"
	StateQueued    WorkspaceState = "queued"
	StateStarting  WorkspaceState = "starting"
	StateRunning   WorkspaceState = "running"
	StateStopping  WorkspaceState = "stopping"
	StateStopped   WorkspaceState = "stopped"
	StateFailed    WorkspaceState = "failed"
)

// InUseStates are the states in which a workspace uses its resources.
var InUseStates = []WorkspaceState{StateStarting, StateRunning, StateStopping}

// ActiveStates are the states of workspaces that have not ended.
var ActiveStates = []WorkspaceState{StateRequested, StateQueued, StateStarting, StateRunning, StateStopping}

// Words is the state's name for users.
func (s WorkspaceState) Words() Text {
	switch s {
	case StateRequested:
		return Say("requested")
	case StateQueued:
		return Say("queued")
	case StateStarting:
		return Say("starting")
	case StateRunning:
		return Say("running")
	case StateStopping:
		return Say("stopping")
	case StateStopped:
		return Say("stopped")
	default:
		return Say("failed")
	}
}

// Ended reports whether the state is final.
func (s WorkspaceState) Ended() bool { return s == StateStopped || s == StateFailed }

// UsesResources reports whether the workspace uses its resources.
func (s WorkspaceState) UsesResources() bool { return slices.Contains(InUseStates, s) }

// Phase is what the state is for the pool.
func (s WorkspaceState) Phase() HolderPhase {
	switch {
	case s.Ended():
		return HolderEnded
	case s == StateStopping:
		return HolderEnding
	case s.UsesResources():
		return HolderInUse
	default:
		return HolderQueued
	}
}

// Workspace is one member's launched environment in one project.
type Workspace struct {
	ID            int64
	HolderID      int64
	ProjectID     int64
	MemberID      int64
	UserID        int64
	EnvironmentID int64
	Name          string
	State         WorkspaceState
	Demand        Demand      `gorm:"embedded"`
	Target        []Parameter `gorm:"serializer:json;not null"`
	Reason        Text        // for which it waits, failed or stopped
	LogTail       string
	Progress      int64 // percent of the start
	Generation    int64 // number of starts
	RuntimeState  []byte
	Endpoint      Endpoint     `gorm:"serializer:json"`
	Limits        []Limit      `gorm:"serializer:json;not null"`
	Secret        string       `gorm:"serializer:encrypted"` // the notebook's own token; never shown, and empty when it has ended
	Mounts        string       // digest of what is mounted; empty: unknown
	FileAccess    []PathAccess `gorm:"serializer:json;not null"` // by the rules when that was mounted, parents first; empty: unknown
	Version       int64
	RequestedAt   time.Time
	StartedAt     *time.Time
	EndedAt       *time.Time
	Restarting    bool       // while it starts: what ran before is stopped first
	StartFailed   bool       // while it stops: it will end as failed
	ActiveAt      *time.Time // last use through the proxy
	WorkedAt      *time.Time // when it last worked; nil: not known
	WorkSignal    string     // what showed that; see idleness.Signal
	RemindedAt    *time.Time // when its user was told that it will be stopped as idle; nil: not since it worked
}

// Holder is the workspace as the pool knows it.
func (w Workspace) Holder() Holder {
	return Holder{ID: w.HolderID, Kind: HolderWorkspace, ProjectID: w.ProjectID, MemberID: w.MemberID, UserID: w.UserID}
}

// Claim is the workspace's claim, which is stored with its holder.
func (w Workspace) Claim() Claim {
	return Claim{Holder: w.Holder(), Name: w.Name, Phase: w.State.Phase(), Demand: w.Demand, Reason: w.Reason,
		RequestedAt: w.RequestedAt, StartedAt: w.StartedAt, EndedAt: w.EndedAt}
}

// HolderView is the workspace as a holder.
func (w Workspace) HolderView() HolderView {
	return HolderView{Claim: w.Claim(), ObjectID: w.ID, State: string(w.State)}
}

// Parameter is one target launch parameter and the layer it came from:
// platform, project, environment, role or member.
type Parameter struct {
	Name   string `json:"name"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Endpoint is the address of a running notebook.
type Endpoint struct {
	Network string `json:"network"`
	Address string `json:"address"`
}

// Limit describes how one resource of a workspace is enforced.
type Limit struct {
	Resource string `json:"resource"`
	Enforced bool   `json:"enforced"`
	How      Text   `json:"how"`
}

// WorkspaceView is a workspace with names.
type WorkspaceView struct {
	Workspace
	ProjectName     string
	UserName        string
	EnvironmentName string
}

// WorkspaceEvent is one line of a workspace's history.
type WorkspaceEvent struct {
	ID          int64
	WorkspaceID int64
	ProjectID   int64
	At          time.Time
	State       WorkspaceState
	Message     Text
}
