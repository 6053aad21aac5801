package web

import "weir/models"

// PeopleView lists the people who can sign in.
type PeopleView struct {
	Rows  []models.User
	Query string // q
	Next  string // address of the next page, empty on the last
}

// PersonFormView adds a person. Fields: email, name, password, admin.
type PersonFormView struct {
	Form Form
}

// PersonView is one person.
type PersonView struct {
	Person   models.User
	Form     Form // name, admin, disabled, version
	Password Form // password
	Self     bool // the reader's own account
	Places   []PersonPlace

	Identities []models.Identity
}

// PersonPlace is a project that a person is a member of.
type PersonPlace struct {
	ProjectID int64
	Project   string
	Role      string
}

func personPath(n int64) string { return "/people/" + id(n) }
