package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// An open tab of a notebook says that its workspace has stopped, and leads to another launch.
// Jupyter's own logout leads back to the portal.
func TestStoppedNotebookInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	eve := team.Members[0]
	w := eve.running(team.Project, "nb")
	origin := fmt.Sprintf("//ws-%d.localhost", w.ID)
	b := chromium.person(t, s.url).tab()
	b.signIn(eve.Email, password)

	b.goTo(fmt.Sprintf("/workspaces/%d", w.ID))
	tree := b.opened(origin, func() { b.press("Open") })
	tree.until("Jupyter's list of files", `document.readyState === "complete" && document.querySelector("#notebook_list .item_name")`)
	tree.pressAt("Logout", `document.querySelector("#logout")`)
	tree.until("the workspace's page", fmt.Sprintf(`location.origin === %q && location.pathname === "/workspaces/%d"`, s.url, w.ID))

	b.front()
	tree = b.opened(origin, func() { b.press("Open") })
	n := newNotebook(tree)
	if eval[bool](tree, `!!document.querySelector("#new-terminal")`) {
		t.Error("Jupyter offers a terminal, which stays blank here")
	}
	if eval[bool](n.tab, `!!document.querySelector("#weir-notice")`) {
		t.Error("a running notebook says that it has stopped")
	}
	eve.must("POST", workspacePath(w.ID)+"/stop", nil, nil)
	n.front()
	n.until("the notice", `document.querySelector("#weir-notice")?.textContent.includes("Workspace nb has stopped")`)
	n.shoot("notebook-stopped")
	again := eval[string](n.tab, `document.querySelector("#weir-notice a").href`)
	if !strings.HasPrefix(again, s.url+"/launch?") || !strings.Contains(again, fmt.Sprint("project_id=", team.Project)) {
		t.Errorf("it leads to %s", again)
	}
	tree.front()
	tree.pressAt("Refresh", `document.querySelector("#refresh_notebook_list")`)
	tree.until("the notice in the list of files", `document.querySelector("#weir-notice")?.textContent.includes("Workspace nb has stopped")`)
	n.front()
	launch := n.opened("/launch?", func() { n.pressAt("Launch again", `document.querySelector("#weir-notice a")`) })
	launch.sees("Launch with")
}
