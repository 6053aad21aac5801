package web

import "weir/models"

// reasonOf is what an error says to a person.
func reasonOf(err error) models.Text { return Form{}.Refuse(err).Message }

// RenameView asks for another name. Fields of Form: name.
type RenameView struct {
	Name   string // at present
	Action string // where the form posts to
	Back   string
	Form   Form
}

// ConfirmView asks for confirmation before something is lost. It works without scripts:
// a delete link leads to this page.
type ConfirmView struct {
	Title        models.Text
	Consequences []models.Text
	Button       models.Text
	Action       string // where the form posts to
	Back         string
	Version      int64 // posted as version when not 0
	Form         Form  // with the reason for refusing it, if any
	Blocked      error // why it would be refused, shown instead of the button; nil if it would not
}
