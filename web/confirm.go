package web

import "weir/models"

// ConfirmView asks before something is lost. It works without scripts: the
// page is what a delete link leads to.
type ConfirmView struct {
	Title        models.Text
	Consequences []models.Text
	Button       models.Text
	Action       string // where the form posts to
	Back         string
	Version      int64 // posted as version when not 0
	Form         Form  // what was refused, when it comes back
}
