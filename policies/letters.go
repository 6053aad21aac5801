package policies

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// Message is the content of a letter, ready to be sent.
type Message struct {
	To       string
	Text     models.Text
	Path     string // of the link in the portal
	Language string
	Zone     *time.Location // of the times in Text; nil: UTC
}

// WriteLetter writes a letter and makes its link, in the transaction of the sender. An
// error of a kind other than internal means that there is nothing to send.
func (a *Accounts) WriteLetter(q *store.Queries, l models.Letter) (Message, error) {
	if l.Invitation == 0 {
		return a.passwordLetter(q, l)
	}
	return invitationLetter(q, l)
}

func (a *Accounts) passwordLetter(q *store.Queries, l models.Letter) (m Message, err error) {
	u, err := q.UserByEmail(l.Address)
	if err != nil {
		return m, err
	}
	if u.Disabled {
		return m, models.Conflict("This account is disabled. Enable it first.")
	}
	link, err := a.newPasswordLink(q, u)
	if err != nil {
		return m, err
	}
	preference, err := q.NotificationPreference(u.ID)
	return Message{To: u.Email, Text: models.Say("Set a new password with this link. It works once. If you did not request it, ignore this message."),
		Path: link.Path(), Language: preference.Language}, err
}

func invitationLetter(q *store.Queries, l models.Letter) (m Message, err error) {
	i, err := q.Invitation(l.Invitation)
	if err != nil {
		return m, err
	}
	if err := CheckPending(i, q.Now()); err != nil {
		return m, err
	}
	link, err := NewInvitationLink(q, i.Invitation)
	if err != nil {
		return m, err
	}
	preference, err := q.NotificationPreference(i.InviterID) // the invited has none yet
	text := models.Say("%s invites you to Weir.", i.InviterName)
	if i.Project != "" {
		text = models.Say("%s invites you to the project %s.", i.InviterName, i.Project)
	}
	return Message{To: i.Email, Text: text, Path: link.Path(), Language: preference.Language}, err
}

// CheckPending refuses an invitation that can no longer be accepted, and says why.
func CheckPending(i models.InvitationView, now time.Time) error {
	switch i.State(now) {
	case models.InvitationAccepted:
		return models.Conflict("This invitation has already been accepted.")
	case models.InvitationExpired:
		return models.Conflict("This invitation has expired. Contact %s for a new one.", i.InviterName)
	case models.InvitationRevoked:
		return models.Conflict("This invitation was revoked or replaced by a later one. Contact %s for a new one.", i.InviterName)
	}
	return nil
}
