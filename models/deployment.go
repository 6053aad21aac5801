package models

import (
	"cmp"
	"encoding/hex"
	"time"
)

// DeploymentState is the state of a deployment: deploying → serving → stopping → stopped;
// failed instead of stopped, if that is why it was stopped. One that serves can become idle:
// it has no shares then, and is deploying again when a request arrives.
type DeploymentState string

const (
	DeploymentDeploying DeploymentState = "deploying"
	DeploymentServing   DeploymentState = "serving"
	DeploymentIdle      DeploymentState = "idle"
	DeploymentStopping  DeploymentState = "stopping"
	DeploymentStopped   DeploymentState = "stopped"
	DeploymentFailed    DeploymentState = "failed"
)

// LiveDeployments are the states of deployments that have not ended.
var LiveDeployments = []DeploymentState{DeploymentDeploying, DeploymentServing, DeploymentIdle, DeploymentStopping}

// EndedDeployments are the other ones.
var EndedDeployments = []DeploymentState{DeploymentStopped, DeploymentFailed}

// Words is the state's name for users.
func (s DeploymentState) Words() Text {
	switch s {
	case DeploymentDeploying:
		return Say("deploying")
	case DeploymentServing:
		return Say("serving")
	case DeploymentIdle:
		return Say("idle")
	case DeploymentStopping:
		return Say("stopping")
	case DeploymentFailed:
		return Say("failed")
	default:
		return Say("stopped")
	}
}

// Phase is what the state is for the pool.
func (s DeploymentState) Phase() HolderPhase {
	switch s {
	case DeploymentDeploying, DeploymentServing, DeploymentIdle: // which demands nothing
		return HolderInUse
	case DeploymentStopping:
		return HolderEnding
	default:
		return HolderEnded
	}
}

// Answers reports whether the deployment answers requests: it serves, or does so for the next one.
func (s DeploymentState) Answers() bool { return s == DeploymentServing || s == DeploymentIdle }

// Ended reports whether the deployment has ended.
func (s DeploymentState) Ended() bool { return s.Phase() == HolderEnded }

// UpdateStrategy is how an update takes the place of a deployment.
type UpdateStrategy string

const (
	// UpdateRolling deploys the update beside the deployment, which it replaces when it serves.
	UpdateRolling UpdateStrategy = "rolling"
	// UpdateRecreate stops the deployment first, so that its shares suffice.
	UpdateRecreate UpdateStrategy = "recreate"
)

// Deployment is a model that is served: its parts, each in a process on one of its shares.
type Deployment struct {
	ID            int64
	HolderID      int64
	ProjectID     int64
	MemberID      int64
	UserID        int64
	EnvironmentID int64
	Name          string
	Path          FilePath // of the model's directory
	ServiceType   string
	Task          ModelTask
	Plan          ModelPlan     `gorm:"serializer:json;not null"`
	Batch         int64         // sequences at once
	Context       int64         // tokens of a sequence
	Hidden        int64         // width of the hidden states
	Vocabulary    int64         // number of tokens, of classes, or of the values of an embedding
	TextPrompts   bool          // a token is a byte of text
	ReservationID *int64        // in which it is, and with which it ends; nil: in none
	FirstID       *int64        // the first deployment of the model, whose place this one takes; nil: it is the first
	FallbackID    *int64        // the deployment that has ended for this update, and is deployed again if it fails before it serves
	RestoredID    *int64        // the deployment that is deployed again, whose parts this one has
	Request       DeployRequest `gorm:"serializer:json;not null"`
	ManualUpdates bool          // files that change are deployed on request only
	Files         string        // state of the model's files that it serves; empty: unknown
	TriedFiles    string        // the state of which an update has failed
	DrainsUntil   *time.Time    // that it finishes its requests, when it was replaced
	Secret        string        `gorm:"serializer:encrypted"` // key of the parts, in hexadecimal; empty when it has ended
	State         DeploymentState
	Failed        bool        // it will be failed, not stopped
	Demand        Demand      `gorm:"embedded"`
	Target        []Parameter `gorm:"serializer:json;not null"`
	Reason        Text        // for which it has ended
	Version       int64
	RequestedAt   time.Time
	StartedAt     *time.Time
	EndedAt       *time.Time

	UpdateStrategy UpdateStrategy
	Updating       bool // it stops for its update, or, failed, for its fallback, which is deployed when its parts have ended
}

// DeployRequest is what was requested, which holds for updates, too; 0: as is best.
type DeployRequest struct {
	Parts         int64
	Cores         int64
	EnvironmentID int64
	IdleMinutes   int64 // without requests until it is idle; 0: never
	ServedInput
}

// First is the deployment whose address all updates of the model have.
func (d Deployment) First() int64 { return *cmp.Or(d.FirstID, &d.ID) }

// FallsBack reports whether the deployment that has ended for d is deployed again if d fails now.
func (d Deployment) FallsBack() bool { return d.FallbackID != nil && d.StartedAt == nil }

// IsReplacedBy reports whether another deployment is being deployed in the place of d.
func (d Deployment) IsReplacedBy(other Deployment) bool {
	return other.State == DeploymentDeploying && other.First() == d.First() && other.ID != d.ID
}

// Waits reports whether requests wait until the deployment serves: it is idle, or deploying and
// can be idle.
func (d Deployment) Waits() bool {
	return d.State == DeploymentIdle || d.State == DeploymentDeploying && d.Request.IdleMinutes > 0
}

// Claim is the deployment's claim, which is stored with its holder.
func (d Deployment) Claim() Claim {
	return Claim{Holder: Holder{ID: d.HolderID, Kind: HolderDeployment, ProjectID: d.ProjectID, MemberID: d.MemberID, UserID: d.UserID},
		Name: d.Name, Phase: d.State.Phase(), Demand: d.Demand, Reason: d.Reason, RequestedAt: d.RequestedAt, StartedAt: d.StartedAt,
		EndedAt: d.EndedAt}
}

// HolderView is the deployment as a holder.
func (d Deployment) HolderView() HolderView {
	return HolderView{Claim: d.Claim(), ObjectID: d.ID, State: string(d.State)}
}

// Key is the key of the parts.
func (d Deployment) Key() []byte {
	key, _ := hex.DecodeString(d.Secret) // Weir wrote it
	return key
}

// PartState is the state of a part: waiting → loading → ready; waiting again when its process
// has died; ended.
type PartState string

const (
	PartWaiting PartState = "waiting"
	PartLoading PartState = "loading"
	PartReady   PartState = "ready"
	PartEnded   PartState = "ended"
)

// Words is the state's name for users.
func (s PartState) Words() Text {
	switch s {
	case PartWaiting:
		return Say("waiting")
	case PartLoading:
		return Say("loading")
	case PartReady:
		return Say("ready")
	default:
		return Say("ended")
	}
}

// DeploymentPart is a part of a deployment's model.
type DeploymentPart struct {
	ID           int64
	DeploymentID int64
	ProjectID    int64
	Number       int64  // from 0, in the order in which data passes them
	File         string // by its content; empty until it is written
	Size         int64  // bytes of the file
	State        PartState
	Progress     int64  // of loading, percent
	Library      string // that computes
	DeviceType   string // on which it computes: cuda or cpu
	MaxMemory    int64  // the most bytes that its process has used, on its GPU or on CPUs; 0: not known
	Restarts     int64
	Failures     int64 // since it was ready
	RuntimeState []byte
	Version      int64
}

// DeploymentEvent is one line of a deployment's history.
type DeploymentEvent struct {
	ID           int64
	DeploymentID int64
	ProjectID    int64
	At           time.Time
	State        DeploymentState
	Message      Text
}

// DeploymentView is a deployment with names.
type DeploymentView struct {
	Deployment
	ProjectName     string
	UserName        string
	EnvironmentName string
}
