package models

import (
	"fmt"
	"time"
)

// HolderKind is the kind of a holder.
type HolderKind string

// HolderWorkspace is the kind of the holders that are workspaces.
const HolderWorkspace HolderKind = "workspace"

// Holder is what has shares of the pool, or waits for them. The pool knows no more of it;
// the rest is in the table of its kind.
type Holder struct {
	ID        int64
	Kind      HolderKind
	ProjectID int64
	MemberID  int64
	UserID    int64
}

// Claim is a holder's demand for shares.
type Claim struct {
	Holder
	Demand      Demand `gorm:"embedded"`
	RequestedAt time.Time
}

// QueueEntry is a claim in the queue, with the pool's decision on it.
type QueueEntry struct {
	Claim
	Decision Decision
}

// HolderView is a holder with its name and its id among those of its kind.
type HolderView struct {
	Holder
	ObjectID int64
	Name     string
}

// ShareEnding tells the user of a holder when its shares end, and why.
func (h HolderView) ShareEnding(at time.Time, why Text) Notification {
	return Notification{Kind: NotificationWorkspaceEnding, Link: fmt.Sprintf("/workspaces/%d", h.ObjectID),
		Text: Say("The GPU share of the workspace %s ends at %s: %s.", h.Name, at.UTC().Format("2006-01-02 15:04 UTC"), why),
		Data: WorkspaceNotification{WorkspaceID: h.ObjectID, ProjectID: h.ProjectID, Name: h.Name, UserID: h.UserID, EndsAt: new(at.UTC())}}
}
