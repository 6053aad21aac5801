package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// The owner of a workspace reads what it prints while it runs, sees what its directories are for,
// and renames it.
func TestWorkspacePageInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	eve := team.Members[0]
	w := eve.running(team.Project, "nb")
	at := fmt.Sprintf("/workspaces/%d", w.ID)
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn(eve.Email, password)
	b.goTo(at)
	b.sees("Models of the project. In Jupyter: team/project_model.")
	b.sees("The home directory, with which Jupyter begins.")
	b.shoot("workspace-directories")
	b.press("View log")
	b.at(at + "/log")
	b.sees("Jupyter")
	b.shoot("workspace-log")
	b.press("Back to the workspace")
	b.press("Rename")
	b.at(at + "/rename")
	b.fill("Name", " ")
	b.loads(func() { b.press("Save") })
	b.sees("Must not be empty")
	b.fill("Name", "ablation study")
	b.press("Save")
	b.at(at)
	b.sees("Workspace renamed to ablation study.")
	b.until("the new name", `document.querySelector("h1").textContent === "ablation study"`)
	b.sees("Renamed to ablation study.")
	if out := eve.open(w.ID).execute("print(6 * 7)"); strings.TrimSpace(out) != "42" {
		t.Errorf("it computes %q", out)
	}
	p.watch.clean()
}
