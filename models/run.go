package models

import "time"

// RunState is the state of a run: queued, unless it is granted at once → starting → running →
// stopping → ended; ended from any.
type RunState string

const (
	RunQueued   RunState = "queued"
	RunStarting RunState = "starting"
	RunRunning  RunState = "running"
	RunStopping RunState = "stopping"
	RunEnded    RunState = "ended"
)

// LiveRuns are the states of runs that have not ended.
var LiveRuns = []RunState{RunQueued, RunStarting, RunRunning, RunStopping}

// Words is the state's name for users.
func (s RunState) Words() Text {
	switch s {
	case RunQueued:
		return Say("queued")
	case RunStarting:
		return Say("starting")
	case RunRunning:
		return Say("running")
	case RunStopping:
		return Say("stopping")
	default:
		return Say("ended")
	}
}

// Phase is what the state is for the pool.
func (s RunState) Phase() HolderPhase {
	switch s {
	case RunQueued:
		return HolderQueued
	case RunStarting, RunRunning:
		return HolderInUse
	case RunStopping:
		return HolderEnding
	default:
		return HolderEnded
	}
}

// Run is a command that holds a share while it lasts, in the environment and the shared
// directories of a member's workspaces in one project.
type Run struct {
	ID               int64
	HolderID         int64
	ProjectID        int64
	MemberID         int64
	UserID           int64
	EnvironmentID    int64
	WorkspaceID      *int64   // whose environment it has; nil: of none
	Command          []string `gorm:"serializer:json;not null"`
	Directory        string   // in which the command begins; empty: the home directory
	Name             string   // the program
	State            RunState
	Demand           Demand      `gorm:"embedded"`
	Target           []Parameter `gorm:"serializer:json;not null"`
	Reason           Text        // for which it waits, or has ended otherwise than by itself
	TimeLimitSeconds int64       // from its start; 0: none
	LeaseSeconds     int64       // for which it goes on without being renewed; 0: it has no lease
	Attached         bool        // a client waits for its end, and renews the lease
	RenewedAt        *time.Time  // nil: never
	WorkedAt         *time.Time  // when the program of one with a lease last worked
	RemindedAt       *time.Time  // when its user was told that it will be stopped as idle
	StoppedBy        *int64      // the user who has stopped it; nil: nobody
	ExitCode         *int64      // of a run that has ended; nil: not known
	CPUTimeMs        *int64      // of the processes of a run that has ended, in milliseconds; nil: not known
	RuntimeState     []byte
	Limits           []Limit      `gorm:"serializer:json;not null"`
	FileAccess       []PathAccess `gorm:"serializer:json;not null"` // by the rules of the directories at its start; empty: unknown
	Version          int64
	RequestedAt      time.Time
	StartedAt        *time.Time
	EndedAt          *time.Time
}

// Claim is the run's claim, which is stored with its holder.
func (r Run) Claim() Claim {
	return Claim{Holder: Holder{ID: r.HolderID, Kind: HolderRun, ProjectID: r.ProjectID, MemberID: r.MemberID, UserID: r.UserID},
		Name: r.Name, Phase: r.State.Phase(), Demand: r.Demand, Reason: r.Reason, RequestedAt: r.RequestedAt, StartedAt: r.StartedAt,
		EndedAt: r.EndedAt, TimeLimitSeconds: r.TimeLimitSeconds}
}

// LeaseSince is when the lease of a run began or was last renewed.
func (r Run) LeaseSince() time.Time {
	if r.RenewedAt != nil {
		return *r.RenewedAt
	}
	return r.RequestedAt
}

// Lease is for how long a run goes on without being renewed; 0: it has no lease.
func (r Run) Lease() time.Duration { return time.Duration(r.LeaseSeconds) * time.Second }

// HolderView is the run as a holder.
func (r Run) HolderView() HolderView {
	return HolderView{Claim: r.Claim(), ObjectID: r.ID, State: string(r.State)}
}

// EndsAt is when the time limit ends the run; nil: never, or it has not started.
func (r Run) EndsAt() *time.Time {
	if r.StartedAt == nil || r.TimeLimitSeconds == 0 {
		return nil
	}
	return new(r.StartedAt.Add(time.Duration(r.TimeLimitSeconds) * time.Second))
}

// RunEvent is one line of a run's history.
type RunEvent struct {
	ID        int64
	RunID     int64
	ProjectID int64
	At        time.Time
	State     RunState
	Message   Text
}

// RunView is a run with names.
type RunView struct {
	Run
	ProjectName     string
	UserName        string
	EnvironmentName string
}
