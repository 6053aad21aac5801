package policies

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// LinkPurpose is what a one-time link is for.
type LinkPurpose string

// Purposes of one-time links. Each contains a secret of which only the hash is
// stored, and ends at a time.
const (
	SetupLink      LinkPurpose = "setup"      // creates the first administrator
	InvitationLink LinkPurpose = "invitation" // accepts an invitation
	PasswordLink   LinkPurpose = "password"   // sets the password of an account
)

// linkPaths are the pages of the portal that take a link's secret.
var linkPaths = map[LinkPurpose]string{SetupLink: "/setup", InvitationLink: "/invitation", PasswordLink: "/password"}

// Link is a one-time link with its secret, which is shown or sent once.
type Link struct {
	Purpose   LinkPurpose
	Secret    string
	ExpiresAt time.Time
}

// Path is the link's path in the portal.
func (l Link) Path() string { return linkPaths[l.Purpose] + "?token=" + l.Secret }

// URL is the link's address, empty for the zero Link.
func (l Link) URL(portal string) string {
	if l.Secret == "" {
		return ""
	}
	return portal + l.Path()
}

// newLink stores a one-time link.
func newLink(q *store.Queries, purpose LinkPurpose, t models.OneTimeToken) (Link, error) {
	l := Link{purpose, NewSecret(), t.ExpiresAt}
	t.Hash, t.Purpose = HashSecret(l.Secret), string(purpose)
	return l, q.PutOneTimeToken(t)
}

// explainExpired is how long the link of an invitation that has ended still tells why.
const explainExpired = 30 * 24 * time.Hour

// NewInvitationLink adds a link to an invitation. Whether it can be accepted is the
// invitation's own state; its links only find it.
func NewInvitationLink(q *store.Queries, i models.Invitation) (Link, error) {
	l, err := newLink(q, InvitationLink, models.OneTimeToken{InvitationID: &i.ID, ExpiresAt: i.ExpiresAt.Add(explainExpired)})
	l.ExpiresAt = i.ExpiresAt
	return l, err
}

// InvitationOf finds the invitation of a link, in whatever state.
func InvitationOf(q *store.Queries, secret string) (models.InvitationView, error) {
	return q.InvitationByToken(HashSecret(secret))
}
