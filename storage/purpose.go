package storage

import (
	"path"
	"slices"
	"strings"

	"weir/models"
	"weir/storage/rules"
)

// Purpose says what a directory in the workspaces of a member is for, and where Jupyter, which
// begins at the home directory, shows it; empty for a directory of no layout.
func Purpose(target string, project, member int64) models.Text {
	below, inProject := strings.CutPrefix(target, rules.ProjectDir(project)+"/")
	switch {
	case target == rules.ProjectDir(project):
		return models.Say("All directories of the project. In Jupyter: %s", TeamLink)
	case target == rules.MemberDir(project, member):
		return models.Say("The home directory, by the path that all members use. In Jupyter also: %s", path.Join(TeamLink, below))
	case rules.MemberOf(project, target) != 0:
		return models.Say("The home directory of another member. In Jupyter: %s", path.Join(TeamLink, below))
	case inProject:
		return models.Say("%s of the project. In Jupyter: %s", contentOf(below), path.Join(TeamLink, below))
	case slices.Contains(rules.PublicDirs(), target):
		return models.Say("%s for all projects. In a terminal only", contentOf(target))
	case target == rules.HomeDir:
		return models.Say("The home directory, with which Jupyter begins")
	}
	return models.Text{}
}

// contentOf names what the directories of the layout contain.
func contentOf(dir string) models.Text {
	switch _, kind, _ := strings.Cut(path.Base(dir), "_"); kind {
	case "algorithm":
		return models.Say("Algorithms")
	case "model":
		return models.Say("Models")
	case "dataset":
		return models.Say("Datasets")
	}
	return models.Say("Files")
}
