package models

import "strings"

// CodeServer is the tool of an environment that serves VS Code.
const CodeServer = "code-server"

// App is a program with pages in a workspace.
type App struct {
	Name string `json:"name" enum:"Jupyter,VS Code"`
	Path string `json:"path" doc:"path of its first page; see open-workspace"`
}

// Programs that can have pages in a workspace: Jupyter always has.
var (
	Jupyter = App{"Jupyter", "/"}
	VSCode  = App{"VS Code", "/code/"}
)

// AppOf returns the program that a path belongs to.
func AppOf(path string) App {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasPrefix(path+"/", VSCode.Path) {
		return VSCode
	}
	return Jupyter
}

// Apps returns the programs that have pages in an environment, as far as is known.
func (e Environment) Apps() []App {
	if e.VersionOf(CodeServer) == "" {
		return []App{Jupyter}
	}
	return []App{Jupyter, VSCode}
}
