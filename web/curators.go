package web

import (
	"weir/models"
)

// CuratorsView lists who may write in the public directories. Fields of the form:
// directory, email, project_name.
type CuratorsView struct {
	Rows        []models.CuratorView
	Directories []string
	Form        Form
	Next        string
}

// curatorLabels are the inputs that are called otherwise elsewhere.
var curatorLabels = map[string]string{"directory": "public_directory", "email": "curator_email", "project_name": "curator_project"}

func curatorPath(n int64) string { return "/curators/" + number(n) }

// ConfirmRemoveCurator asks for confirmation before a curator is removed.
func ConfirmRemoveCurator(c models.CuratorView) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Remove %s as curator of %s?", c.Name(), c.Directory),
		Consequences: []models.Text{models.Say("Files stay. Running workspaces keep write access until they are restarted.")},
		Button:       models.Say("Remove curator"),
		Action:       curatorPath(c.ID) + "/delete",
		Back:         "/curators",
	}
}
