package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// TestStoryInBrowser is what a team does on its first day, through the pages
// alone.
func TestStoryInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:4"})

	admin := chromium.person(t, s.url)
	desk := admin.tab()
	foundTeam(desk, s.setupLink())

	pool := admin.tab()
	pool.goTo("/pool")
	pool.sees("0 of 400 GPU cores")
	pool.stay()

	wang := chromium.person(t, s.url)
	portal := wang.tab()
	portal.signIn("wang@example.org", password)
	at := launchHalf(portal)
	pool.sees("50 of 400 GPU cores")
	pool.until("Wang's share in the bar", `document.querySelector('svg.bar[aria-label*="Speech · Wang"]')`)
	pool.stayed()
	pool.shoot("pool-held")
	portal.shoot("workspace-running")

	notebook := portal.opened("//ws-1.localhost", func() { portal.press("Open") })
	writeFile(notebook)
	holdsNoPortalCookie(notebook, s)

	li := chromium.person(t, s.url)
	readsButCannotWrite(li, ownDirectory(portal))

	stopHalf(portal, at)
	pool.sees("0 of 400 GPU cores")
	pool.until("no share in any bar", `!document.querySelector('svg.bar[aria-label*="Speech"]')`)
	pool.stayed()

	notebook.goTo(eval[string](notebook, "location.href"))
	notebook.sees("has stopped")
	notebook.shoot("gone")
	notebook.press("Go to Weir")
	notebook.at(at)

	nora := chromium.person(t, s.url)
	withoutScripts(nora)

	for _, p := range []*person{admin, wang, li, nora} {
		p.watch.clean()
	}
}

// foundTeam makes the first administrator, a project with a role, and its
// members.
func foundTeam(b *tab, link string) {
	b.t.Helper()
	b.goTo(link)
	b.shoot("setup")
	b.fill("Email", "ada@example.org")
	b.fill("Full name", "Ada")
	b.fill("Password", password)
	b.fill("Confirm password", password)
	b.press("Create administrator")
	b.at("/projects/start")
	b.goTo("/")
	b.shoot("home-empty")
	b.press("Create the first project")
	b.at("/projects/start")
	b.press("More settings")
	b.fill("Name", "Speech")
	for label, amount := range map[string]string{"GPU cores": "300", "GPU memory": "240 GiB", "CPU": "5000", "Memory": "24 GiB", "Storage": "1 TiB"} {
		b.fill(label, amount)
	}
	b.sees("needs confirmation") // no machine has so much
	b.pressAt("Allocate anyway", `document.querySelector("#f-confirm")`)
	b.fill("Reason", "A larger machine is ordered.")
	b.shoot("project-new")
	b.press("Create project")
	b.at("/projects/1")
	b.press("Add role")
	b.fill("Name", "engineer")
	for label, amount := range map[string]string{"GPU cores": "100", "GPU memory": "80 GiB", "CPU": "4", "Memory": "8 GiB", "Storage": "100 GiB"} {
		b.fill(label, amount)
	}
	b.pressAt("the permission member", labelled("member"))
	b.shoot("role-new")
	b.press("Add role")
	b.at("/projects/1")
	for _, name := range []string{"Wang", "Li", "Nora"} {
		addMember(b, name)
	}
	b.shoot("project")
}

func addMember(b *tab, name string) {
	b.t.Helper()
	email := strings.ToLower(name) + "@example.org"
	b.goTo("/projects/1")
	b.press("Invite people")
	b.fill("Email addresses", email)
	b.pressAt("the role engineer", labelled("engineer"))
	b.press("Invite")
	b.sees("They will not be shown again.")
	origin, token, _ := strings.Cut(eval[string](b, `document.querySelector(".secret code").textContent`), "/invitation?token=")
	accept, _ := json.Marshal(map[string]string{"token": token, "name": name, "password": password})
	res, err := http.Post(origin+"/api/v1/invitations/accept", "application/json", bytes.NewReader(accept))
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		b.t.Fatalf("%s accepts the invitation: %s", name, res.Status)
	}
}

// launchFromHome presses the button of the first project on the home page.
func (b *tab) launchFromHome() {
	b.t.Helper()
	b.pressAt("the launch button of a project", `document.querySelector("a.btn[href^='/launch?project_id=']")`)
}

// launchHalf launches a notebook with half a GPU, from what the preview says
// until it runs, and returns the path of its page.
func launchHalf(b *tab) string {
	b.t.Helper()
	b.launchFromHome()
	b.at("/launch")
	b.fill("GPUs", "1")
	b.fill("Cores per GPU", "50")
	b.sees("All 50 GPU cores are available now")
	b.until("where it will be placed", `document.querySelector('section.decision svg.bar[aria-label*="your new share"]')`)
	b.until("that it is simulated", `[...document.querySelectorAll("section.decision .tag")].some((e) => e.textContent.trim() === "simulated")`)
	b.until("what it would hold", `document.querySelector("main").innerText.includes("0 in use + 50 requested, limit 100")`)
	b.shoot("launch")
	b.press("Launch with 50 GPU cores")
	b.at(`/workspaces/\d+`)
	b.stay()
	b.until("the running workspace", `document.querySelector("p.state .tag").textContent.trim() === "running"`)
	b.stayed()
	return eval[string](b, "location.pathname")
}

// writeFile works in the real Jupyter: a new notebook, a cell, and the file
// that it wrote in the list of files.
func writeFile(tree *tab) {
	tree.t.Helper()
	n := newNotebook(tree)
	if got := n.run("import os; open('a.txt','w').write(str(6*7))"); !strings.Contains(got, "2") {
		tree.t.Errorf("the cell answered %q", got)
	}
	tree.goTo(eval[string](tree, "location.href"))
	tree.until("a.txt in Jupyter's list", `[...document.querySelectorAll("#notebook_list .item_name")].some((e) => e.textContent === "a.txt")`)
	tree.shoot("jupyter")
}

// jupyter is an opened notebook.
type jupyter struct{ *tab }

// newNotebook makes one with the mouse, as people do.
func newNotebook(tree *tab) jupyter {
	tree.t.Helper()
	tree.until("Jupyter's list of files", `document.readyState === "complete" && document.querySelector("#notebook_list .item_name")`)
	tree.pressAt("New", `document.querySelector("#new-dropdown-button")`)
	n := tree.opened("/notebooks/", func() {
		tree.pressAt("Python 3", `document.querySelector("#new-menu [id^='kernel-python3'] a")`)
	})
	n.until("the kernel", `window.Jupyter && Jupyter.notebook && Jupyter.notebook.kernel && Jupyter.notebook.kernel.is_connected()
		&& Jupyter.notebook.kernel.info_reply.status === "ok"`)
	return jupyter{n}
}

const shift = 8 // as a modifier of key events

// run types the last cell, which is empty, and returns what it printed.
func (n jupyter) run(code string) string {
	n.t.Helper()
	n.pressAt("the cell", `[...document.querySelectorAll("#notebook .cell .CodeMirror")].at(-1)`)
	return n.runSelected(code)
}

// runSelected is run for the cell in which the cursor is.
func (n jupyter) runSelected(code string) string {
	n.t.Helper()
	n.until("the cursor in the cell", `document.activeElement.closest(".CodeMirror")`)
	n.keys(code)
	if got := eval[string](n.tab, "Jupyter.notebook.get_selected_cell().get_text()"); got != code {
		n.t.Fatalf("the cell holds %q, not %q", got, code)
	}
	eval[bool](n.tab, `(window.ran = Jupyter.notebook.get_selected_cell(), window.ended = false,
		Jupyter.notebook.events.one("finished_execute.CodeCell", () => { window.ended = true }), true)`)
	for _, event := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		call(n.tab, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: event, Modifiers: shift, Key: "Enter", Code: "Enter", WindowsVirtualKeyCode: 13})
	}
	n.until("the cell's end", `ended && typeof ran.input_prompt_number === "number"`) // its reply can come before its output
	return eval[string](n.tab, `ran.element.find(".output").text()`)
}

// holdsNoPortalCookie makes sure that what signs a person in at the portal
// stays there.
func holdsNoPortalCookie(n *tab, s *server) {
	n.t.Helper()
	origin := eval[string](n, "location.origin")
	if !strings.HasSuffix(origin, ".localhost:"+strconv.Itoa(s.port)) {
		n.t.Errorf("the notebook is at %s", origin)
	}
	if seen := eval[string](n, "document.cookie"); strings.Contains(seen, "weir") {
		n.t.Errorf("the notebook's scripts see the cookies %q", seen)
	}
	for _, c := range call(n, network.GetCookies, network.GetCookiesParams{URLs: []string{origin + "/"}}).Cookies {
		if strings.Contains(c.Name, "weir") && c.Name != "weir_visit" {
			n.t.Errorf("the browser would send the cookie %s to the notebook", c.Name)
		}
	}
	sent := n.watch.sentTo(strings.TrimPrefix(origin, "http://"))
	if !sent["weir_visit"] {
		n.t.Errorf("the notebook was opened without a visit; it was sent %v", sent)
	}
	for name := range sent {
		if strings.Contains(name, "weir") && name != "weir_visit" {
			n.t.Errorf("the browser sent the cookie %s to the notebook", name)
		}
	}
}

// ownDirectory reads from a workspace's page where its member's files are.
func ownDirectory(b *tab) string {
	b.t.Helper()
	return eval[string](b, `[...document.querySelectorAll(".mono")].map((e) => e.textContent.trim()).find((d) => /^\/notebook\/\d+\/\d+$/.test(d))`)
}

// readsButCannotWrite is a colleague, without a GPU, in somebody's directory.
func readsButCannotWrite(p *person, dir string) {
	p.t.Helper()
	b := p.tab()
	b.signIn("li@example.org", password)
	b.launchFromHome()
	b.sees("Starts immediately, without a GPU")
	b.press("Launch without a GPU")
	b.at(`/workspaces/\d+`)
	n := newNotebook(b.opened("//ws-2.localhost", func() { b.press("Open") }))
	if got := n.run("print(open('" + dir + "/a.txt').read())"); strings.TrimSpace(got) != "42" {
		p.t.Errorf("a colleague reads %q", got)
	}
	if got := n.run("open('" + dir + "/a.txt', 'a')"); !strings.Contains(got, "Read-only file system") {
		p.t.Errorf("a colleague who writes gets %q", got)
	}
	b.front()
	b.press("Stop")
	b.press("Stop workspace")
	b.sees("Launch again")
}

// stopHalf stops the workspace from its page.
func stopHalf(b *tab, path string) {
	b.t.Helper()
	b.front()
	b.press("Stop")
	b.loads(func() { b.press("Stop workspace") })
	b.at(path)
	b.stay()
	b.until("the stopped workspace", `document.querySelector("p.state .tag").textContent.trim() === "stopped"`)
	b.sees("Launch again")
	b.sees("No GPU in use.")
	b.until("no live workspace in the navigation", `document.querySelector("nav a[href='/workspaces']").innerText.trim() === "Workspaces"`)
	b.stayed()
	b.shoot("workspace-stopped")
}

// withoutScripts launches and stops where the browser runs no script.
func withoutScripts(p *person) {
	p.t.Helper()
	b := p.tab()
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.signIn("nora@example.org", password)
	b.launchFromHome()
	b.at("/launch")
	b.fill("GPUs", "1")
	b.fill("Cores per GPU", "25")
	b.press("Update preview")
	b.sees("All 25 GPU cores are available now")
	b.press("Launch with 25 GPU cores")
	b.at(`/workspaces/\d+`)
	b.reloadUntil("the running workspace", `document.querySelector("p.state .tag").textContent.trim() === "running"`)
	b.loads(func() { b.press("Stop") })
	b.loads(func() { b.press("Stop workspace") })
	b.reloadUntil("the stopped workspace", `document.querySelector("p.state .tag").textContent.trim() === "stopped"`)
}

// reloadUntil loads the page again and again, as one does without scripts.
func (b *tab) reloadUntil(what, js string) {
	b.t.Helper()
	eventually(b.t, patience, func() string {
		b.loads(func() { call(b, page.Reload, page.ReloadParams{}) })
		if eval[bool](b, js) {
			return ""
		}
		return what
	})
}
