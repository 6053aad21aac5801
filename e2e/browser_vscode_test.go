package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"

	"weir/workspaces/runtimetest"
)

// A member opens VS Code in a running workspace: its files and its terminal are those of the
// workspace. The environment of VS Code begins with it, and leads to Jupyter, too.
func TestVSCodeInBrowser(t *testing.T) {
	t.Parallel()
	runtimetest.NeedsCodeServer(t)
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	team := s.sharing("eve")
	eve := team.Members[0]
	w := eve.running(team.Project, "nb")
	b := chromium.person(t, s.url).tab()
	b.signIn(eve.Email, password)
	b.goTo(fmt.Sprintf("/workspaces/%d", w.ID))
	code := b.opened(fmt.Sprintf("//ws-%d.localhost", w.ID), func() { b.press("Open VS Code") })
	code.until("VS Code with its files", `document.querySelector(".monaco-workbench .explorer-folders-view .monaco-list-row")`)
	if path := eval[string](code, "location.pathname"); path != "/code/" {
		t.Errorf("it is at %s", path)
	}
	code.shoot("vscode")
	code.pressAt("the trust in the home directory", `[...document.querySelectorAll(".monaco-dialog-box .monaco-button")].find((e) => e.textContent.startsWith("Yes"))`)
	code.terminal("echo $((6 * 7)) >made.txt")
	code.until("the file that the terminal made", `[...document.querySelectorAll(".explorer-folders-view .monaco-list-row")].some((e) => e.textContent.includes("made.txt"))`)
	code.shoot("vscode-terminal")
	var activity struct {
		Terminals []struct{ Typed float64 }
		CPU       float64 `json:"cpu_seconds"`
	}
	report := eval[string](code, `fetch("/weir/activity").then((r) => r.text())`)
	if err := json.Unmarshal([]byte(report), &activity); err != nil || len(activity.Terminals) == 0 || activity.Terminals[0].Typed > patience.Seconds() {
		t.Errorf("typing in the terminal is not work: %s, %v", report, err)
	}
	if activity.CPU > 1 { // its own processes have used more than two
		t.Errorf("what VS Code does by itself is work: %s", report)
	}
	if out := eve.open(w.ID).execute(`print(open("made.txt").read())`); strings.TrimSpace(out) != "42" {
		t.Errorf("in Jupyter the file has %q", out)
	}

	eve.must("POST", workspacePath(w.ID)+"/stop", nil, nil)
	eve.await(w.ID, "stopped", starting)
	code.front()
	code.until("the notice", `document.querySelector("#weir-notice")?.textContent.includes("Workspace nb has stopped")`)
	code.shoot("vscode-stopped")
	b.front()
	b.goTo(fmt.Sprintf("/launch?project_id=%d", team.Project))
	b.shoot("launch-vscode")
	b.pressAt("the environment of VS Code", `[...document.querySelectorAll("label")].find((e) => e.checkVisibility() && e.textContent.includes("VS Code"))`)
	b.press("Launch without a GPU")
	b.until("that it runs", `document.querySelector(".status .tag")?.textContent === "running"`)
	id := strings.TrimPrefix(eval[string](b, "location.pathname"), "/workspaces/")
	b.sees("Open Jupyter")
	b.shoot("workspace-vscode")
	code = b.opened(fmt.Sprintf("//ws-%s.localhost", id), func() { b.press("Open") })
	code.until("VS Code with its files", `document.querySelector(".monaco-workbench .explorer-folders-view")`)
	b.front()
	tree := b.opened(fmt.Sprintf("//ws-%s.localhost", id), func() { b.press("Open Jupyter") })
	tree.until("Jupyter's list of files", `document.querySelector("#notebook_list .item_name")`)
}

// terminal opens a terminal of VS Code and has it run a command.
func (b *tab) terminal(command string) {
	b.t.Helper()
	b.key("F1", 0)
	b.until("the command palette", `document.activeElement?.closest(".quick-input-widget")`)
	b.keys("Terminal: Create New Terminal")
	b.until("the command", `document.querySelector(".quick-input-list .monaco-list-row.focused")?.textContent.includes("Create New Terminal")`)
	b.key("Enter", 0)
	b.until("the terminal", `document.activeElement?.classList.contains("xterm-helper-textarea") && document.querySelector(".terminal-wrapper .xterm-screen")`)
	call(b, input.InsertText, input.InsertTextParams{Text: command}) // its terminal types what KeyEvent sends twice
	b.key("Enter", 0)
}
