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

	b.goTo("/usage")
	b.underPointer("chart-gpu_cores", "Average in use ")
	b.shoot("usage-of-all")
	p.watch.clean()
}
