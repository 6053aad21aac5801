package workspaces

import "weir/models"

// Discovered is one notebook installation that a runtime found on its
// machine, with the versions that it reported itself.
type Discovered struct {
	Key             string            // stable across restarts: where it is installed
	Name            string            // for people, such as "Python 3.11 · Jupyter Notebook 6.4"
	Language        string            // "python"
	LanguageVersion string            // "3.11.2"
	Versions        map[string]string // framework and tool → version, such as "notebook": "6.4.12"
	Command         []string          // program and fixed arguments
	DefaultPath     string            // where its page begins, such as "/tree" or "/lab"
	Unavailable     models.Text       // why it cannot be used; empty when it can
}
