package web

import (
	"context"
	"time"

	"weir/models"
)

// InvitationsView lists the invitations to a project, or all of them.
type InvitationsView struct {
	ProjectID int64 // 0: all
	Project   string
	Rows      []models.InvitationView
	Links     []InvitationLink // just made; shown this once
	Next      string           // address of the next page, or empty
	ByMail    bool             // the links were also sent
	CanInvite bool
}

// InvitationLink is the link of an invitation.
type InvitationLink struct {
	Email     string
	URL       string // empty if it is only sent by email
	ExpiresAt time.Time
}

// InviteFormView invites people. Fields: emails, and of a project role_id, otherwise
// department_id, admin, auditor.
type InviteFormView struct {
	Form        Form
	ProjectID   int64 // 0: the platform
	Project     string
	Roles       []RoleChoice
	Lacks       map[int64]models.Permissions // of the reader, by role
	Remaining   models.Resources
	Departments []Option // none is the first
	ByMail      bool
}

// InvitationView is what the link of an invitation leads to.
type InvitationView struct {
	Invitation   models.InvitationView
	Token        string
	Form         Form // name, password, password_again
	Closed       *models.Error
	HasAccount   bool // of the invited address
	Mine         bool // the reader has signed in with it
	ProviderOnly bool
	Provider     string // the identity provider; empty: none
}

// PasswordView sets a new password by a link.
type PasswordView struct {
	Form  Form // password, password_again
	Token string
	Email string
}

// ForgotView asks for a link for a new password. Fields: email.
type ForgotView struct {
	Form   Form
	Sent   bool
	ByMail bool // the portal can send one
}

// invitationsPath is the list of a project's invitations; of all with 0.
func invitationsPath(project int64) string {
	if project == 0 {
		return "/invitations"
	}
	return projectPath(project) + "/invitations"
}

// invitePath is the form of new invitations.
func invitePath(project int64) string {
	if project == 0 {
		return "/people/new"
	}
	return invitationsPath(project) + "/new"
}

func (v InvitationView) link() string { return "/invitation?token=" + query(v.Token) }

// title is the heading of an invitation.
func (v InvitationView) title(ctx context.Context) string {
	if v.Invitation.Project == "" {
		return T(ctx, "Invitation to Weir")
	}
	return T(ctx, "Invitation to the project %s", v.Invitation.Project)
}

// subtitle says who invites whom, and to what.
func (v InvitationView) subtitle(ctx context.Context) string {
	i := v.Invitation
	if i.Role == "" {
		return T(ctx, "%s invites %s.", i.InviterName, i.Email)
	}
	return T(ctx, "%s invites %s with the role %s.", i.InviterName, i.Email, i.Role)
}

// ConfirmRevokeInvitation asks for confirmation before an invitation is revoked.
func ConfirmRevokeInvitation(i models.InvitationView) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Revoke the invitation of %s?", i.Email),
		Consequences: []models.Text{models.Say("Its link no longer works.")},
		Button:       models.Say("Revoke invitation"),
		Action:       "/invitations/" + number(i.ID) + "/revoke",
		Back:         i.ListPath(),
	}
}
