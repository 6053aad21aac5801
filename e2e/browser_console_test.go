package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// An administrator finds in the audit log what somebody did in a project by their names, chooses
// the events of a webhook from the list, and reads amounts off a chart.
func TestConsoleInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	eve := team.Members[0]
	w := eve.running(team.Project, "nb")
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn("operator@example.org", password)

	b.goTo("/audit")
	b.fill("Actor", eve.Name)
	b.fill("Project", "Speech")
	b.loads(func() { b.press("Filter") })
	b.sees("workspace nb")
	rows := eval[[]string](b, `[...document.querySelectorAll("main tbody tr")].map((r) => r.children[1].querySelector("a")?.textContent)`)
	if len(rows) == 0 || strings.Join(rows, " ") != strings.TrimSpace(strings.Repeat(eve.Email+" ", len(rows))) {
		t.Errorf("the actors of the entries: %q", rows)
	}
	b.shoot("audit-by-name")
	b.press(fmt.Sprintf("workspace nb (%d)", w.ID))
	b.at(fmt.Sprintf("/workspaces/%d", w.ID))
	b.goTo("/audit")
	b.fill("Project", "nowhere")
	b.loads(func() { b.press("Filter") })
	b.sees("No project has this name")

	b.goTo("/webhooks/new")
	b.fill("Name", "chat")
	b.fill("Address", "https://chat.example.org/hook")
	for _, event := range []string{"request.*", "workspace.failed"} {
		b.pressAt("the box of "+event, `document.querySelector('input[name=events][value="`+event+`"]')`)
	}
	b.shoot("webhook-events")
	b.loads(func() { b.press("Add webhook") })
	chosen := eval[[]string](b, `[...document.querySelectorAll("input[name=events]:checked")].map((e) => e.value)`)
	if strings.Join(chosen, " ") != "workspace.failed request.*" {
		t.Errorf("ticked: %q", chosen)
	}

	b.goTo("/pool")
	b.pressAt("the help", `document.querySelector("button.help")`)
	b.sees("What waits for GPUs, oldest first")
	b.goTo("/usage")
	b.underPointer("chart-gpu_cores", "Average in use ")
	b.shoot("usage-of-all")
	stopsOthers(b, eve, w)
	p.watch.clean()
}

// stopsOthers stops a member's workspace among those of everybody, with a reason that the
// member is told.
func stopsOthers(b *tab, m member, w workspace) {
	b.t.Helper()
	b.goTo("/workspaces")
	b.press("Everybody's")
	b.sees(w.Name)
	b.fill("Workspace, person, project or machine", "nowhere")
	b.loads(func() { b.press("Search") })
	b.sees("Show all")
	b.loads(func() { b.press("Show all") })
	b.press("Select all")
	if !eval[bool](b, fmt.Sprintf(`document.querySelector('input[name=id][value="%d"]').checked`, w.ID)) {
		b.t.Error("the workspace is not selected")
	}
	b.shoot("workspaces-of-everybody")
	b.loads(func() { b.press("Stop selected workspaces") })
	b.fill("Reason", "the machine is moved")
	b.loads(func() { b.press("Stop workspace") })
	b.sees("Workspace nb is stopping.")
	m.await(w.ID, "stopped", gone)
	var told struct {
		Items []struct{ Text string } `json:"items"`
	}
	m.must("GET", "/notifications", nil, &told)
	if len(told.Items) == 0 || !strings.Contains(told.Items[0].Text, "the machine is moved") {
		b.t.Errorf("the member is told %+v", told)
	}
}
