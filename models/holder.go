package models

import (
	"fmt"
	"time"
)

// HolderKind is the kind of a holder.
type HolderKind string

// Kinds of holders.
const (
	HolderWorkspace  HolderKind = "workspace"
	HolderRun        HolderKind = "run"
	HolderDeployment HolderKind = "deployment"
)

// HolderKinds are all kinds of holders.
var HolderKinds = []HolderKind{HolderWorkspace, HolderRun, HolderDeployment}

// Path is the path of a holder's page.
func (k HolderKind) Path(id int64) string { return fmt.Sprintf("/%ss/%d", k, id) }

// Holder is what has shares of the pool, or waits for them. The pool knows no more of it;
// the rest is in the table of its kind.
type Holder struct {
	ID        int64
	Kind      HolderKind
	ProjectID int64
	MemberID  int64
	UserID    int64
}

// HolderPhase is how far a holder is, whatever its kind: queued → in use → ending → ended.
type HolderPhase string

// Phases of holders. Those in use and ending use their resources; one that is ending has
// been told to end.
const (
	HolderQueued HolderPhase = "queued"
	HolderInUse  HolderPhase = "in_use"
	HolderEnding HolderPhase = "ending"
	HolderEnded  HolderPhase = "ended"
)

// InUsePhases are the phases in which a holder uses its resources.
var InUsePhases = []HolderPhase{HolderInUse, HolderEnding}

// Claim is a holder with what it demands of the pool and of its project, and for how long.
type Claim struct {
	Holder
	Name        string
	Phase       HolderPhase
	Demand      Demand `gorm:"embedded"`
	Reason      Text   // for which it waits, or has ended
	RequestedAt time.Time
	StartedAt   *time.Time
	EndedAt     *time.Time

	TimeLimitSeconds int64 // from its start; 0: none
}

// TimeLimit is how long it lasts at most, from its start; 0: it has no end.
func (c Claim) TimeLimit() time.Duration { return time.Duration(c.TimeLimitSeconds) * time.Second }

// TableName overrides gorm's plural.
func (Claim) TableName() string { return "holders" }

// QueueEntry is a claim in the queue, with the pool's decision on it.
type QueueEntry struct {
	Claim
	Decision Decision
}

// HolderView is a holder with its id among those of its kind, and its state as its kind
// names it.
type HolderView struct {
	Claim
	ObjectID int64
	State    string
}

// ShareEnding tells the user of a workspace when its shares end, and why. There is none
// for other holders.
func (h HolderView) ShareEnding(at time.Time, why Text) (n Notification, ok bool) {
	if h.Kind != HolderWorkspace {
		return n, false
	}
	return Notification{Kind: NotificationWorkspaceEnding, Link: h.Kind.Path(h.ObjectID),
		Text: Say("The GPU share of the workspace %s ends at %s: %s.", h.Name, Instant{At: at}, why),
		Data: WorkspaceNotification{WorkspaceID: h.ObjectID, ProjectID: h.ProjectID, Name: h.Name, UserID: h.UserID, EndsAt: new(at.UTC())}}, true
}
