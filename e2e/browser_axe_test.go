package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// visit is one page in one state, to be looked at.
type visit struct {
	path string
	then func(b *tab) // brings the page into the state, or nil
}

// TestAccessibility holds every page, in the states that people meet it in,
// to axe-core's rules, light and dark, and to the width of a telephone.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	axe := readAxe(t)

	stranger := chromium.person(t, s.url).tab()
	axe.detects(stranger)
	axe.visits(stranger, []visit{
		{strings.TrimPrefix(s.setupLink(), s.url), nil},
		{strings.TrimPrefix(s.setupLink(), s.url), submitEmpty},
		{"/setup?token=used", nil},
		{"/signin", nil},
		{"/signin", submitEmpty},
		{"/api/docs", fewOperations},
		{"/docs", nil},
		{"/docs?q=workspace", nil},
	})
	s.admin()
	operator := chromium.person(t, s.url).tab()
	operator.signIn("operator@example.org", password)
	axe.visits(operator, pathsOf("/", "/projects", "/workspaces", "/pool", "/people", "/tokens", "/launch", "/docs/concepts/guarantees", "/docs/reference/settings", "/docs/tutorial/engineer"))

	wang := populate(s)
	axe.visits(operator, operatorVisits())
	member := chromium.person(t, s.url).tab()
	member.signIn(wang.Email, password)
	axe.visits(member, memberVisits())
	keyboard(member)
	menu(axe, member)
	for _, b := range []*tab{stranger, operator, member} {
		b.watch.clean()
	}
}

// mainPages are looked at in a narrow window, too.
var mainPages = []string{"/", "/signin", "/docs/concepts/guarantees", "/docs/reference/settings", "/projects/1", "/pool", "/pool/providers/1", "/pool/devices/1", "/runs?state=all", "/runs/1", "/runs/new", "/workspaces", "/workspaces/1", "/workspaces/4", "/launch", "/launch?gpus=1&cores=100", "/audit", "/requests", "/requests/1", "/capacity", "/people", "/usage", "/projects/1/usage", "/projects?sort=remaining&order=desc&q=e", "/departments", "/projects/1/members/import", "/projects/1/files", "/projects/1/files?path=/notebook/1/project_model", "/projects/1/files/access?path=/notebook/1/project_model"}

func pathsOf(paths ...string) (all []visit) {
	for _, p := range paths {
		all = append(all, visit{path: p})
	}
	return all
}

func operatorVisits() []visit {
	forms := []string{"/projects/start", "/projects/new", "/projects/1/roles/new", "/projects/1/members/new", "/environments/new", "/people/new", "/departments/new", "/prices/new", "/pool/providers/new", "/tokens", "/account", "/webhooks/new"}
	all := pathsOf("/projects", "/projects/1", "/projects/1/edit", "/projects/1/roles/1/edit", "/projects/1/roles/1/delete",
		"/projects/1/members/1/edit", "/projects/1/members/1/delete", "/pool", "/pool/devices/1", "/pool/providers/1", "/pool/planning", "/pool/planning?add=h100:8", "/runs?state=all", "/runs/1", "/barriers", "/barriers?example=1", "/graphs", "/graphs?example=1", "/environments", "/environments/1/edit",
		"/environments/1/delete", "/requests", "/requests/1", "/capacity", "/people", "/people/2", "/people/import", "/projects/1/members/import", "/departments", "/projects/1/usage", "/usage", "/accounting", "/projects/1/accounting?group=model", "/prices", "/projects/1/former-members", "/projects?sort=remaining&order=desc&q=e", "/access", "/access?email=wang@example.org&project_name=Speech&right=role:write", "/tokens/1/delete", "/audit", "/notifications", "/curators", "/webhooks", "/webhooks/1", "/webhooks/1/delete", "/webhooks/1/rotate", "/nowhere",
		"/projects/1/files/rules", "/projects/1/files/access?path=/notebook/1/project_model", "/projects/1/files/access?path=/notebook/1/project_model&remove=1")
	for _, path := range forms {
		all = append(all, visit{path, nil}, visit{path, submitEmpty})
	}
	return append(all, visit{"/projects/1", openDialog}, visit{"/pool", openDetails}, visit{"/projects/new", openDetails})
}

func memberVisits() []visit {
	return append(pathsOf("/requests", "/requests/1", "/requests/new", "/requests/new?kind=project", "/requests/new?kind=join", "/requests/new?kind=limit&project_id=1",
		"/requests/new?kind=role&project_id=1", "/requests/new?kind=quota", "/", "/projects", "/projects/1", "/projects/1/usage", "/access?project_name=Speech&right=role:write", "/pool", "/pool/providers/1", "/pool/devices/1", "/workspaces", "/workspaces?state=all", "/workspaces/1", "/workspaces/3",
		"/workspaces/4", "/workspaces/5", "/launch", "/launch?gpus=1&cores=100", "/launch?version_constraints=torch", "/runs", "/runs?state=all", "/runs/1", "/runs/1/delete", "/runs/new", "/runs/new?project_id=1&gpus=1&cores=200", "/projects/1/files", "/projects/1/files?path=/notebook/1/project_model", "/projects/1/files?path=/notebook/1/project_model&q=train", "/projects/1/files/entry?path=/notebook/1/project_model/train.py",
		"/projects/1/files/move?item=/notebook/1/project_model/train.py", "/projects/1/files/trash", "/projects/1/files/access?path=/notebook/1/project_model"),
		visit{"/launch?gpus=1&cores=200&env=%3D", openDetails}, visit{"/runs/new", openDetails}, visit{"/workspaces/2", nil},
		visit{"/reservations/calendar?project_id=1&view=week", nil}, visit{"/reservations/calendar?project_id=1&view=month", nil},
		visit{"/reservations/calendar?project_id=1&reserved=project", nil}, visit{"/reservations/new?project_id=1", nil},
		visit{"/projects/1/split-presets", nil}, visit{"/graphs?example=1", submitForm}, visit{"/barriers?example=1", submitForm})
}

// submitForm sends the page's form as it is, and waits for the result on the next page.
func submitForm(b *tab) {
	b.t.Helper()
	b.loads(func() { b.pressAt("the button", `document.querySelector("main form button.primary")`) })
	b.until("the result", `document.querySelectorAll("main h2").length > 1`)
}

// populate fills a server: two projects, running workspaces that leave half a
// GPU, one that waits for more, one that has failed, one that was stopped, and a run. It
// returns the member whose workspaces all but the second are.
func populate(s *server) member {
	s.t.Helper()
	limit := resources{GPUCores: 200, GPUMemoryMiB: 160 << 10, CPUMilli: 8000, MemoryMiB: 16 << 10, StorageMiB: 100 << 10}
	speech := s.teamWithin("Speech", limit.times(2), limit, "wang", "li")
	vision := s.team("Vision", limit, "zhao")
	wang, zhao := speech.Members[0], vision.Members[0]
	half := wang.running(speech.Project, "half")
	whole := launchBody(vision.Project, "whole")
	whole["request"].(map[string]any)["cores"] = 100
	zhao.must("POST", "/workspaces", whole, nil)
	second := launchBody(speech.Project, "second")
	second["request"].(map[string]any)["cores"] = 100
	second["when_insufficient"] = "wait"
	wang.must("POST", "/workspaces", second, nil)

	var broken, failed, stopped id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "Broken", "language": "Python", "language_version": "3.12",
		"versions": map[string]string{"torch": "2.9.0"}, "command": []string{"/bin/false"}, "default_path": "/lab"}, &broken)
	wang.must("POST", "/workspaces", map[string]any{"project_id": speech.Project, "environment_id": broken.ID, "name": "third",
		"request": map[string]any{"gpus": 0}}, &failed)
	wang.must("POST", "/workspaces", map[string]any{"project_id": speech.Project, "environment_id": 1, "name": "fourth", "request": map[string]any{"gpus": 0}}, &stopped)
	wang.await(stopped.ID, "running", patience)
	wang.must("POST", workspacePath(stopped.ID)+"/stop", nil, nil)
	wang.await(stopped.ID, "stopped", patience)
	wang.await(failed.ID, "failed", patience)
	wang.must("POST", "/runs", map[string]any{"project_id": speech.Project, "command": []string{"echo", "42"},
		"request": map[string]any{"gpus": 0, "cpu_milli": 100, "memory_mib": 64}}, nil)
	s.writes(fmt.Sprintf("/notebook/%d/project_model/train.py", speech.Project), "print(42)\n")
	s.api(s.admin()).must("PUT", fmt.Sprintf("/projects/%d/files/rules", speech.Project), map[string]any{"path": fmt.Sprintf("/notebook/%d/project_model", speech.Project),
		"subject": "role", "subject_id": speech.Role, "access": "write", "download": "allow"}, nil)
	s.api(s.admin()).must("POST", "/webhooks", map[string]any{"name": "Chat", "url": "https://receiver.invalid/hook", "enabled": true}, nil)
	s.api(s.admin()).must("POST", "/webhooks/1/test", nil, nil)
	zhao.await(2, "running", patience)
	wang.must("POST", "/requests", map[string]any{"reason": "more runs at once", "quota": map[string]any{"project_id": speech.Project, "quota": limit.times(3)}}, nil)
	if half.ID != 1 || failed.ID != 4 || stopped.ID != 5 {
		s.t.Fatalf("workspaces have the ids %d, %d, %d", half.ID, failed.ID, stopped.ID)
	}
	return wang
}

// submitEmpty sends the page's form with nothing in it, past what the browser
// itself would check.
func submitEmpty(b *tab) {
	b.t.Helper()
	eval[bool](b, `(() => { const f = document.querySelector("main form:not(.search)"); f.noValidate = true;
		for (const i of f.querySelectorAll("input:not([type=hidden], [type=radio], [type=checkbox]), textarea")) i.value = "";
		f.requestSubmit(); return true; })()`)
	b.until("what was wrong", `document.readyState === "complete" && document.querySelector(".summary") === document.activeElement`)
}

func openDialog(b *tab) {
	b.t.Helper()
	b.press("Remove wang")
	b.until("the dialog", `document.querySelector("dialog[open]")`)
}

// fewOperations leaves of a very long page what stands for the rest.
func fewOperations(b *tab) {
	b.t.Helper()
	eval[bool](b, `[...document.querySelectorAll(".operation")].slice(6).forEach((e) => e.remove()) || true`)
}

func openDetails(b *tab) {
	b.t.Helper()
	eval[bool](b, `document.querySelectorAll("main details").forEach((d) => { d.open = true; }) || true`)
}

// axe is axe-core's source.
type axe string

func readAxe(t *testing.T) axe {
	t.Helper()
	source, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	return axe(source)
}

// detects makes sure that axe-core would find something.
func (a axe) detects(b *tab) {
	b.t.Helper()
	b.goTo("/signin")
	a.load(b)
	eval[bool](b, `document.querySelector("label[for=f-email]").remove() || true`)
	if found := violations(b); !slices.ContainsFunc(found, func(v violation) bool { return v.ID == "label" }) {
		b.t.Errorf("of a field without a label axe-core says %v", found)
	}
}

func (a axe) load(b *tab) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, chromedp.Evaluate[chromedp.Void](string(a))); err != nil {
		b.t.Fatal(err)
	}
}

func (a axe) visits(b *tab, visits []visit) {
	b.t.Helper()
	for i, v := range visits {
		b.goTo(v.path)
		if v.then != nil {
			v.then(b)
		}
		name := fmt.Sprint(eval[string](b, "location.pathname + location.search"), " (visit ", i, ")")
		a.load(b)
		for _, scheme := range schemes {
			b.scheme(scheme)
			check(b, name+", "+scheme, rulesIn(scheme)...)
		}
		b.resize(narrow, 800)
		if slices.Contains(mainPages, v.path) {
			check(b, name+", narrow")
		}
		fits(b, name)
		b.scheme("")
		b.resize(wide, 900)
	}
}

// violation is a rule of axe-core and where a page breaks it.
type violation struct {
	ID, Help string
	Nodes    []string
}

// rulesIn are the rules that a page is held to in a color scheme; none: all. The schemes differ in
// their colors only, so that the rules about them are enough for the second.
func rulesIn(scheme string) []string {
	if scheme == schemes[0] {
		return nil
	}
	return []string{"color-contrast", "link-in-text-block"}
}

func violations(b *tab, rules ...string) []violation {
	b.t.Helper()
	options := map[string]any{"resultTypes": []string{"violations"}}
	if len(rules) > 0 {
		options["runOnly"] = rules
	}
	with, err := json.Marshal(options)
	if err != nil {
		b.t.Fatal(err)
	}
	return eval[[]violation](b, `axe.run(document, `+string(with)+`).then((r) => r.violations.map((v) =>
		({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 4).map((n) => n.target.join(" ") + ": " + n.failureSummary)})))`)
}

func check(b *tab, name string, rules ...string) {
	b.t.Helper()
	for _, v := range violations(b, rules...) {
		b.t.Errorf("%s: %s (%s)\n  %s", name, v.Help, v.ID, strings.Join(v.Nodes, "\n  "))
	}
}

// fits holds a page to the width of its window.
func fits(b *tab, name string) {
	b.t.Helper()
	if beyond := eval[[]string](b, `document.scrollingElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("main *")].filter((e) =>
		e.getBoundingClientRect().right > innerWidth && !e.closest(".table, pre")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).concat("the page")`); len(beyond) > 0 {
		b.t.Errorf("%s is wider than its window:\n  %s", name, strings.Join(beyond, "\n  "))
	}
}

// menu is the navigation in a narrow window.
func menu(a axe, b *tab) {
	b.t.Helper()
	b.goTo("/")
	b.resize(narrow, 800)
	b.press("Menu")
	b.until("the menu", `document.querySelector("#menu:popover-open")`)
	a.load(b)
	for _, scheme := range schemes {
		b.scheme(scheme)
		check(b, "the menu, "+scheme, rulesIn(scheme)...)
	}
	fits(b, "the menu")
	b.press("Projects")
	b.at("/projects")
	b.scheme("")
	b.resize(wide, 900)
}

// keyboard goes through the launch page by the Tab key: the skip link comes
// first, every control gets its turn, and each shows that it has the focus.
func keyboard(b *tab) {
	b.t.Helper()
	b.goTo("/launch?gpus=1&cores=100")
	openDetails(b)
	want := eval[int](b, `(() => { window.todo = new Set([...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")].filter((e) =>
		e.checkVisibility({visibilityProperty: true}) && !e.disabled && e.type !== "hidden" && !(e.type === "radio" && !e.checked))); return todo.size; })()`)
	for i := range want + 2 {
		b.keys("\t")
		at := eval[struct {
			Skip, Seen bool
			What       string
		}](b, `(() => { const e = document.activeElement, s = getComputedStyle(e); todo.delete(e);
			return {Skip: e.matches(".skip"), Seen: e === document.body || s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2, What: e.outerHTML.slice(0, 100)}; })()`)
		if i == 0 && !at.Skip {
			b.t.Errorf("the first Tab leads to %s, not to the skip link", at.What)
		}
		if !at.Seen {
			b.t.Errorf("one does not see that this has the focus: %s", at.What)
		}
	}
	if left := eval[[]string](b, `[...todo].map((e) => e.outerHTML.slice(0, 100))`); len(left) > 0 {
		b.t.Errorf("the Tab key does not reach\n  %s", strings.Join(left, "\n  "))
	}
	b.goTo("/launch")
	b.keys("\t\r")
	b.until("the focus on the content", `document.activeElement.id === "main"`)
}
