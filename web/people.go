package web

import (
	"context"

	"weir/models"
)

// personLabels are the inputs of a person that are called otherwise elsewhere.
var personLabels = map[string]string{"name": "person_name", "time_zone": "person_time_zone"}

// PeopleView lists the accounts.
type PeopleView struct {
	Rows  []models.User
	Query string // q
	Next  string // address of the next page, empty on the last

	Departments map[int64]string // names by id, of those of the rows
}

func (v PeopleView) department(u models.User) string {
	if u.DepartmentID == nil {
		return ""
	}
	return v.Departments[*u.DepartmentID]
}

// PersonView is one person.
type PersonView struct {
	Person       models.User
	Form         Form           // name, department_id, admin, auditor, disabled, version
	Password     Form           // of a link for a new password
	PasswordLink InvitationLink // just made; shown this once
	Self         bool           // the reader's own account
	Memberships  []PersonMembership

	Departments []Option // none is the first

	Identities []models.Identity
	Passkeys   []models.Passkey
}

// editable is the account whose identities can be deleted here; nil if none can.
func (v PersonView) editable(ctx context.Context) *models.User {
	if !From(ctx).Can.EditAccounts {
		return nil
	}
	return &v.Person
}

// PersonMembership is a project that a person is a member of.
type PersonMembership struct {
	ProjectID int64
	Project   string
	Role      string
}

func personPath(n int64) string { return "/people/" + number(n) }

// accountText is the email address of an account, or what says that it is a service
// account.
func accountText(ctx context.Context, email string) string {
	if models.IsServiceAccount(email) {
		return T(ctx, "service account")
	}
	return email
}

// ConfirmDeleteIdentity asks for confirmation before an identity is deleted.
func ConfirmDeleteIdentity(u models.User, i models.Identity) ConfirmView {
	v := ConfirmView{
		Title:        models.Say("Remove the %s sign-in from %s?", i.Issuer, u.Email),
		Consequences: []models.Text{models.Say("This signs the person out of all sessions.")},
		Button:       models.Say("Remove"),
		Action:       personPath(u.ID) + "/identities/" + number(i.ID) + "/delete",
		Back:         personPath(u.ID),
	}
	if u.PasswordHash == "" {
		v.Consequences = append(v.Consequences, models.Say("This account cannot sign in until a password is set."))
	}
	return v
}
