package e2e

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
)

// setupLink is the link that starts an installation: that of a server which runs already
// (WEIR_SETUP_LINK), else of one of the test's own.
func setupLink(t *testing.T) string {
	if link := os.Getenv("WEIR_SETUP_LINK"); link != "" {
		return link
	}
	return newServer(t, options{gpus: "h100:8"}).setupLink()
}

// From the setup link to a result of real Jupyter: few clicks, and no page with more
// than a few fields to fill.
func TestFirstMinutesInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	link := setupLink(t)
	origin, _, _ := strings.Cut(link, "/setup")
	ada := chromium.person(t, origin)
	b := ada.tab()
	began := time.Now()

	b.goTo(link)
	for label, text := range map[string]string{"Email": "ada@example.org", "Full name": "Ada", "Password": password, "Confirm password": password} {
		b.typeInto(label, text)
	}
	b.fewFields(4)
	b.press("Create administrator")

	b.at("/projects/start")
	b.sees("Limit per member")
	b.shoot("start")
	b.fewFields(4)
	b.noError()
	b.typeInto("Name", "Speech")
	b.press("Create project")

	b.at("/launch")
	b.sees("Project Speech created.")
	b.sees("All 100 GPU cores are available now")
	b.shoot("launch-first")
	b.fewFields(5)
	b.noError()
	b.press("Launch with 100 GPU cores")

	b.at(`/workspaces/\d+`)
	b.until("the running workspace", `document.querySelector("p.state .tag").textContent.trim() === "running"`)
	n := newNotebook(b.opened("//ws-1.localhost", func() { b.press("Open") }))
	n.enterCell()
	if got := n.runSelected("print(6*7)"); strings.TrimSpace(got) != "42" {
		t.Errorf("the cell answered %q", got)
	}
	if ada.clicks > 6 {
		t.Errorf("%d clicks; at most 6", ada.clicks)
	}
	t.Logf("from the setup link to the cell's result: %d clicks, %v", ada.clicks, time.Since(began).Round(100*time.Millisecond))
	ada.watch.clean()
}

// typeInto types into a field that the keyboard has reached.
func (b *tab) typeInto(label, text string) {
	b.t.Helper()
	field := labelled(label)
	b.until("the field "+label, field)
	eval[bool](b, "("+field+").focus() || ("+field+").select() || true")
	b.keys(text)
}

// fewFields holds the number of fields that the page shows against what is expected of
// it, which is five at most.
func (b *tab) fewFields(want int) {
	b.t.Helper()
	got := eval[int](b, `[...document.querySelectorAll("main input:not([type=hidden]):not([type=radio]):not([type=checkbox]), main select, main textarea")].filter((e) => e.checkVisibility()).length`)
	if got != want || got > 5 {
		b.t.Errorf("%d fields, want %d", got, want)
	}
}

// noError makes sure that the page shows none.
func (b *tab) noError() {
	b.t.Helper()
	if got := eval[string](b, `[...document.querySelectorAll("main .error, main [role=alert], main .tag.bad")].map((e) => e.textContent).join("; ")`); got != "" {
		b.t.Errorf("the page opened with an error: %s", got)
	}
}

// enterCell puts the cursor into the selected cell with the keyboard.
func (n jupyter) enterCell() {
	n.t.Helper()
	if eval[bool](n.tab, `!!document.activeElement.closest(".CodeMirror")`) {
		return
	}
	for _, event := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		call(n.tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: event, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13})
	}
}
