package models

import (
	"fmt"
	"time"
)

// Invitation invites an email address to the platform or, with a project, to a role
// in it. At most one invitation of an address is open for each project, and one for
// the platform.
type Invitation struct {
	ID           int64
	Email        string
	ProjectID    *int64 // nil: the platform
	RoleID       *int64 // nil: none, or the role was deleted
	Admin        bool   // the account becomes a platform administrator
	Auditor      bool
	DepartmentID *int64
	InviterID    int64
	LinkShown    bool // to an inviter who may not create accounts
	CreatedAt    time.Time
	ExpiresAt    time.Time
	AcceptedAt   *time.Time
	RevokedAt    *time.Time // also when a later invitation replaced it
	Problem      Text       // why the last attempt to accept it was refused
}

// ListPath is the portal's page that lists the invitation.
func (i Invitation) ListPath() string {
	if i.ProjectID == nil {
		return "/invitations"
	}
	return fmt.Sprintf("/projects/%d/invitations", *i.ProjectID)
}

// InvitationState is the state of an invitation, derived from its times.
type InvitationState string

// States of an invitation; only a pending one can be accepted.
const (
	InvitationPending  InvitationState = "pending"
	InvitationAccepted InvitationState = "accepted"
	InvitationExpired  InvitationState = "expired"
	InvitationRevoked  InvitationState = "revoked"
)

// State is the invitation's state at a time.
func (i Invitation) State(now time.Time) InvitationState {
	switch {
	case i.AcceptedAt != nil:
		return InvitationAccepted
	case i.RevokedAt != nil && i.RevokedAt.Before(i.ExpiresAt):
		return InvitationRevoked
	case i.RevokedAt != nil || !now.Before(i.ExpiresAt):
		return InvitationExpired
	}
	return InvitationPending
}

// InvitationView is an invitation with the names of what it refers to.
type InvitationView struct {
	Invitation
	InviterName  string
	InviterEmail string
	Project      string // empty: the platform
	Role         string
}

// Letter is an email to an address, which need not be an account's, with a one-time
// link. The link is made when the email is sent, so that the database contains only
// its hash.
type Letter struct {
	Address    string `json:"address"`
	Invitation int64  `json:"invitation,omitempty"` // 0: a link for a new password
}

// Kinds of letters.
const (
	LetterInvitation = "invitation.link"
	LetterPassword   = "password.link"
)
