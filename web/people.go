package web

import "weir/models"

// PeopleView lists the people who can sign in.
type PeopleView struct {
	CanAdd bool
	Rows   []models.User
	Query  string // q
	Next   string // address of the next page, empty on the last

	Departments map[int64]string // names by id, of those of the rows
}

func (v PeopleView) department(u models.User) string {
	if u.DepartmentID == nil {
		return ""
	}
	return v.Departments[*u.DepartmentID]
}

// PersonFormView adds a person. Fields: email, name, password, department_id,
// admin, auditor.
type PersonFormView struct {
	Form        Form
	Departments []Option // none is the first
}

// PersonView is one person.
type PersonView struct {
	Person   models.User
	CanEdit  bool
	Form     Form // name, department_id, admin, auditor, disabled, version
	Password Form // password
	Self     bool // the reader's own account
	Places   []PersonPlace

	Departments []Option // none is the first

	Identities []models.Identity
}

// editable is the person whose ways of signing in can be taken away here.
func (v PersonView) editable() *models.User {
	if !v.CanEdit {
		return nil
	}
	return &v.Person
}

// PersonPlace is a project that a person is a member of.
type PersonPlace struct {
	ProjectID int64
	Project   string
	Role      string
}

func personPath(n int64) string { return "/people/" + id(n) }

// ConfirmDeleteIdentity asks before a provider's way into an account is taken
// away.
func ConfirmDeleteIdentity(u models.User, i models.Identity) ConfirmView {
	v := ConfirmView{
		Title:        models.Say("Remove the %s sign-in from %s?", i.Issuer, u.Email),
		Consequences: []models.Text{models.Say("This signs the person out of all sessions.")},
		Button:       models.Say("Remove"),
		Action:       personPath(u.ID) + "/identities/" + id(i.ID) + "/delete",
		Back:         personPath(u.ID),
	}
	if u.PasswordHash == "" {
		v.Consequences = append(v.Consequences, models.Say("This account cannot sign in until a password is set."))
	}
	return v
}
