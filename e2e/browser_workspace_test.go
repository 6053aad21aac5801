package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// The owner of a workspace reads what it prints while it runs, sees what its directories are for
// and what it used, renames it and restarts it.
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
	if out := eve.open(w.ID).execute("print(6 * 7)"); strings.TrimSpace(out) != "42" {
		t.Errorf("it computes %q", out)
	}
	b.sees("Kernel started") // the page follows what is printed
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
	b.until("what it used", `document.querySelectorAll(".chart .line-mean[d^=M]").length >= 2`)
	b.until("what it used of its GPU", `document.querySelector("[aria-labelledby=chart-gpu] .line-mean[d^=M]")`)
	b.until("that the GPU is simulated", `document.querySelector("#chart-gpu").textContent.includes("simulated")`)
	b.until("how long it runs", `(window.ran ??= document.querySelector(".status time[data-time=since]").innerText) !==
		document.querySelector(".status time[data-time=since]").innerText`)
	b.shoot("workspace-telemetry")
	b.underPointer("chart-memory", "MiB")
	b.press("Restart")
	b.sees("Running programs end, and what is only in their memory is lost.")
	b.press("Restart")
	b.sees("Stopped. Starting again with the same resources.")
	b.until("that it runs again", `document.querySelector(".status .tag").textContent === "running"`)
	if out := eve.open(w.ID).execute("print(6 * 7)"); strings.TrimSpace(out) != "42" {
		t.Errorf("after its restart it computes %q", out)
	}
	p.watch.clean()
}

// underPointer wants a chart to show an amount of each step under the pointer.
func (b *tab) underPointer(chart, amount string) {
	b.t.Helper()
	at := eval[struct{ X, Y float64 }](b, fmt.Sprintf(`(() => { const svg = document.querySelector("[aria-labelledby=%s] svg");
		svg.scrollIntoView({ block: "center" }); const box = svg.getBoundingClientRect(); return { X: box.right - 3, Y: box.top + box.height / 2 }; })()`, chart))
	b.points(at.X, at.Y)
	b.until("the amounts", fmt.Sprintf(`document.querySelector("[aria-labelledby=%s] .chart-values:not([hidden])")?.textContent.includes(%q)`, chart, amount))
	b.points(1, 1)
	b.until("none", `!document.querySelector(".chart-values:not([hidden])")`)
}

// points moves the pointer.
func (b *tab) points(x, y float64) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y)); err != nil {
		b.t.Fatal(err)
	}
}

// From any page, Ctrl+K leads to the search, also where the menu is closed.
func TestSearchInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn(team.Members[0].Email, password)
	for _, width := range []int64{1280, 390} {
		b.resize(width, 800)
		b.goTo("/projects")
		b.key("k", withControl)
		b.until("the field", `document.activeElement.matches(".find input")`)
		b.keys("speech\r")
		b.at("/search")
		b.shoot(fmt.Sprintf("search-%d", width))
		b.press("Speech")
		b.at(fmt.Sprintf("/projects/%d", team.Project))
	}
	p.watch.clean()
}
