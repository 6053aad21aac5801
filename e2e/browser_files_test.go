package e2e

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/runtime"
)

// sharedDir is the model directory of a project in the portal, and its page.
func sharedDir(project int64) (path, page string) {
	path = fmt.Sprintf("/notebook/%d/project_model", project)
	return path, fmt.Sprintf("/projects/%d/files?path=%s", project, path)
}

// sharing is a project with 10 GiB of storage, of which each member can use 2.
func (s *server) sharing(members ...string) team {
	s.t.Helper()
	limit := share
	limit.StorageMiB = 2 << 10
	quota := limit.times(5)
	return s.teamWithin("Speech", quota, limit, members...)
}

// onDisk is where the server keeps a path of the shared directories.
func (s *server) onDisk(path string) string {
	shared := filepath.Join(s.dir, "shared")
	if i := slices.Index(s.opts.args, "--shared-dir"); i >= 0 {
		shared = s.opts.args[i+1]
	}
	return filepath.Join(shared, path)
}

// writes puts a file where a notebook would.
func (s *server) writes(path, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.onDisk(path)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.onDisk(path), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) reads(path string) string {
	s.t.Helper()
	content, err := os.ReadFile(s.onDisk(path))
	if err != nil {
		s.t.Error(err)
	}
	return string(content)
}

// rowOf is the row of a file in the list, in JavaScript.
func rowOf(name string) string {
	return `[...document.querySelectorAll(".files tbody tr")].find((r) => r.querySelector(".name > a, .name > span")?.textContent === ` + strconv.Quote(name) + `)`
}

// shows waits until the list has exactly these names.
func (b *tab) shows(names ...string) {
	b.t.Helper()
	b.until("the files "+strings.Join(names, ", "), `[...document.querySelectorAll(".files tbody .name > a, .files tbody .name > span")].map((e) => e.textContent).join("|") === `+strconv.Quote(strings.Join(names, "|")))
}

// says waits for the result of an action.
func (b *tab) says(text string) {
	b.t.Helper()
	b.until(text, `document.querySelector("#file-status").textContent.includes(`+strconv.Quote(text)+`)`)
}

// physicalKeys are the codes of keys in UI Events, which VS Code reads.
var physicalKeys = map[string]string{"F1": "F1", "Enter": "Enter"}

// key presses a key with modifiers; code is that of the key.
func (b *tab) key(key string, modifiers int64) {
	b.t.Helper()
	code := map[string]int64{"a": 65, "c": 67, "k": 75, "v": 86, "x": 88, "F1": 112, "F2": 113, "Delete": 46, "ArrowDown": 40, "ArrowUp": 38, "Enter": 13, " ": 32, "Escape": 27}[key]
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		call(b, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Code: physicalKeys[key], Modifiers: modifiers, WindowsVirtualKeyCode: code})
	}
}

const (
	withControl = 2
	withShift   = 8
)

// drops drops files or folders of this machine onto the page.
func (b *tab) drops(paths ...string) {
	b.t.Helper()
	data := input.DragData{Items: []*input.DragDataItem{}, Files: paths, DragOperationsMask: 1}
	for _, kind := range []input.DispatchDragEventType{input.DispatchDragEventTypeDragEnter, input.DispatchDragEventTypeDragOver, input.DispatchDragEventTypeDrop} {
		call(b, input.DispatchDragEvent, input.DispatchDragEventParams{Type: kind, X: 600, Y: 300, Data: &data})
	}
}

// chooses gives files to an input of the page.
func (b *tab) chooses(selector string, paths ...string) {
	b.t.Helper()
	// Ids of nodes end with the document, which the browser may learn of late.
	found := call(b, runtime.Evaluate, runtime.EvaluateParams{Expression: fmt.Sprintf("document.querySelector(%q)", selector)})
	call(b, dom.SetFileInputFiles, dom.SetFileInputFilesParams{Files: paths, ObjectID: found.Result.ObjectID})
}

// tree writes files into a new directory, named by their paths in it.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFileManager is an engineer who manages files by mouse and keyboard, in two tabs, in
// English and then in Chinese.
func TestFileManager(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang", "li")
	dir, page := sharedDir(team.Project)
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn(team.Members[0].Email, password)
	b.goTo(fmt.Sprintf("/projects/%d", team.Project))
	b.press("Files")
	b.sees("My directory")
	b.press("project_model")
	b.sees("This directory is empty.")
	b.shoot("files-empty")
	axe := readAxe(t)
	axe.load(b)
	check(b, "an empty directory")

	b.pressAt("the name of a directory", `document.querySelector("#f-directory")`)
	b.keys("checkpoints")
	b.loads(func() { b.press("Create") })
	b.shows("checkpoints")
	b.stay()
	local := tree(t, map[string]string{"run/a.txt": "a", "run/deep/b 数据.txt": "b", "run/deep/c#%41.txt": "c", "run/empty/.keep": "", "notes.md": "# Notes"})
	if err := os.Remove(filepath.Join(local, "run/empty/.keep")); err != nil {
		t.Fatal(err)
	}
	b.drops(filepath.Join(local, "run"), filepath.Join(local, "notes.md"))
	b.shows("checkpoints", "run", "notes.md")
	b.until("the end of the upload", `document.querySelector("#transfer-words").textContent === "Files uploaded: 4"`)
	for name, want := range map[string]string{"/run/a.txt": "a", "/run/deep/b 数据.txt": "b", "/run/deep/c#%41.txt": "c", "/notes.md": "# Notes"} {
		if got := s.reads(dir + name); got != want {
			t.Errorf("%s contains %q", name, got)
		}
	}
	if info, err := os.Stat(s.onDisk(dir + "/run/empty")); err != nil || !info.IsDir() {
		t.Errorf("the empty folder: %v", err)
	}
	b.stayed()
	b.conflicts(s, dir, local)
	b.byKeyboard(s, dir, team.Members[1].api, fmt.Sprintf("/projects/%d/files", team.Project))
	b.byMouse(s, dir)
	b.seesOtherTab(page)
	b.scheme("")
	b.shoot("files")
	axe.load(b)
	check(b, "the file manager")
	b.inChineseToo(readCatalog(t), page)
	p.watch.clean()
}

// conflicts uploads a file again: beside the old one, over it, and not at all.
func (b *tab) conflicts(s *server, dir, local string) {
	b.t.Helper()
	for _, c := range []struct{ button, content, beside string }{{"Skip", "# Notes", ""}, {"Keep both", "# Notes", "second"}, {"Replace", "second", "second"}} {
		if err := os.WriteFile(filepath.Join(local, "notes.md"), []byte("second"), 0o644); err != nil {
			b.t.Fatal(err)
		}
		b.chooses("#f-files", filepath.Join(local, "notes.md"))
		b.until("the question", `document.querySelector("#conflict").open`)
		b.sees("notes.md already exists")
		b.press(c.button)
		b.until("the end of the upload", `!document.querySelector("#conflict").open && /^Files uploaded: [01]$/.test(document.querySelector("#transfer-words").textContent)`)
		if got := s.reads(dir + "/notes.md"); got != c.content {
			b.t.Errorf("%s: the file contains %q", c.button, got)
		}
		if got, _ := os.ReadFile(s.onDisk(dir + "/notes (2).md")); string(got) != c.beside {
			b.t.Errorf("%s: beside it is %q", c.button, got)
		}
	}
	b.shows("checkpoints", "run", "notes (2).md", "notes.md")
}

// byKeyboard renames, copies, moves and deletes without the mouse, beside a colleague.
func (b *tab) byKeyboard(s *server, dir string, colleague api, files string) {
	b.t.Helper()
	focused := func(name string) string { return "document.activeElement === " + rowOf(name) }
	eval[bool](b, "("+rowOf("checkpoints")+").focus() || true")
	b.keys("notes.")
	b.until("the name that was typed", focused("notes.md"))
	b.readsWhileRenaming()
	b.key("F2", 0)
	b.until("the name as a field", `document.activeElement.matches("input.rename") && document.activeElement.selectionEnd === 5`)
	b.keys("日志")
	b.key("Enter", 0)
	b.shows("checkpoints", "run", "notes (2).md", "日志.md")
	b.until("the focus on the new name", focused("日志.md"))
	b.key("ArrowUp", withShift)
	b.until("two files", `document.querySelector("#file-selected").textContent === "2 selected"`)
	b.key("x", withControl)
	b.says("2 ready to paste")
	b.key("ArrowUp", 0)
	b.until("the directory", focused("run"))
	b.loads(func() { b.key("Enter", 0) })
	b.shows("deep", "empty", "a.txt")
	b.key("v", withControl)
	b.says("2 moved")
	b.shows("deep", "empty", "a.txt", "notes (2).md", "日志.md")
	eval[bool](b, "("+rowOf("a.txt")+").focus() || true")
	b.key(" ", 0)
	b.key("c", withControl)
	b.key("v", withControl)
	b.shows("deep", "empty", "a (2).txt", "a.txt", "notes (2).md", "日志.md")
	b.key("a", withControl)
	b.until("all", `document.querySelector("#file-selected").textContent === "6 selected"`)
	b.key("Escape", 0)
	eval[bool](b, "("+rowOf("a (2).txt")+").focus() || true")
	theirs := "?path=" + url.QueryEscape(dir+"/run/a (1).txt")
	colleague.call("PUT", files+"/content"+theirs, "theirs", nil)
	b.shows("deep", "empty", "a (1).txt", "a (2).txt", "a.txt", "notes (2).md", "日志.md")
	b.until("the focus where it was", focused("a (2).txt"))
	b.key("ArrowUp", 0)
	colleague.call("DELETE", files+theirs, nil, nil)
	b.shows("deep", "empty", "a (2).txt", "a.txt", "notes (2).md", "日志.md")
	b.until("the focus on the next file", focused("a (2).txt"))
	b.key("Delete", 0)
	b.says("1 moved to the trash")
	b.shows("deep", "empty", "a.txt", "notes (2).md", "日志.md")
	if got := s.reads(dir + "/run/日志.md"); got != "second" {
		b.t.Errorf("what was moved contains %q", got)
	}
}

// readsWhileRenaming begins to read the list, slowly from now until another page.
func (b *tab) readsWhileRenaming() {
	b.t.Helper()
	eval[bool](b, `(() => { const fetchNow = window.fetch;
		window.fetch = async (address, options) => { const response = await fetchNow(address, options);
			if (!options.method) await new Promise((done) => setTimeout(done, 500));
			return response; };
		delete document.body.dataset.topics; // then the window reads when it gets the focus
		window.dispatchEvent(new Event("focus")); return true; })()`)
}

// byMouse drags a file onto a directory and opens the page of another.
func (b *tab) byMouse(s *server, dir string) {
	b.t.Helper()
	eval[bool](b, `(() => { const from = `+rowOf("a.txt")+`, to = `+rowOf("deep")+`, data = new DataTransfer();
		const send = (e, type) => e.dispatchEvent(new DragEvent(type, {bubbles: true, cancelable: true, dataTransfer: data}));
		send(from, "dragstart"); send(to, "dragover"); send(to, "drop"); send(from, "dragend"); return true; })()`)
	b.shows("deep", "empty", "notes (2).md", "日志.md")
	if got := s.reads(dir + "/run/deep/a.txt"); got != "a" {
		b.t.Errorf("what was dragged contains %q", got)
	}
	for _, name := range []string{"deep", "日志.md"} {
		b.pressAt("the box of "+name, rowOf(name)+`.querySelector("input[type=checkbox]")`)
	}
	b.pressAt("the download of what is selected", `document.querySelector("[data-do=download]")`)
	eventually(b.t, patience, func() string {
		if list, err := filepath.Glob(filepath.Join(b.downloads, "*.zip")); err != nil || len(list) != 1 {
			return fmt.Sprintf("the archive was not downloaded: %v %v", list, err)
		}
		return ""
	})
	b.press("Details of 日志.md")
	b.sees("Deleted files can be restored from the trash.")
	b.shoot("file")
	b.press("Rename")
	b.until("the same page", `document.readyState === "complete" && document.querySelector(".summary, .flash")`)
	b.press("Speech")
	b.sees("My directory")
	b.press("Trash")
	b.sees("a (2).txt")
	b.shoot("trash")
	b.press("Restore " + dir + "/run/a (2).txt")
	b.sees("a (2).txt restored.")
}

// inChineseToo looks at the pages in the other language.
func (b *tab) inChineseToo(english []phrase, page string) {
	b.t.Helper()
	b.acceptLanguage("zh-CN")
	base, _, _ := strings.Cut(page, "?")
	for _, path := range []string{page, base, page + "&q=notes", base + "/trash", base + "/access" + strings.TrimPrefix(page, base), base + "/entry" + strings.TrimPrefix(page, base) + "/run"} {
		b.goTo(path)
		b.allChinese(english, path)
	}
	b.shoot("files-zh")
}

// TestResumedUpload is a large file whose upload is paused, and continued after the page
// was loaded anew.
func TestResumedUpload(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang")
	dir, page := sharedDir(team.Project)
	content := bytes.Repeat([]byte("0123456789abcdef"), 24<<20/16)
	local := tree(t, map[string]string{"model.bin": string(content)})
	b := chromium.person(t, s.url).tab()
	b.signIn(team.Members[0].Email, password)
	b.goTo(page)
	// The upload stops after its first part.
	eval[bool](b, `(() => { const send = XMLHttpRequest.prototype.send, open = XMLHttpRequest.prototype.open; let parts = 0;
		XMLHttpRequest.prototype.open = function (method, ...rest) { this.method = method; return open.call(this, method, ...rest); };
		XMLHttpRequest.prototype.send = function (body) { if (this.method === "PATCH" && ++parts === 2) document.querySelector("#transfer-pause").click(); return send.call(this, body); };
		return true; })()`)
	b.chooses("#f-files", filepath.Join(local, "model.bin"))
	b.until("the pause", `!document.querySelector("#transfer-resume").hidden`)
	if _, err := os.Stat(s.onDisk(dir + "/model.bin")); !os.IsNotExist(err) {
		t.Errorf("the file appears before it is complete: %v", err)
	}
	b.goTo(page)
	b.sees("Choose the file again to continue.")
	b.shoot("files-unfinished")
	sent := `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/uploads")).length`
	b.chooses("#f-files", filepath.Join(local, "model.bin"))
	b.until("the end of the upload", `document.querySelector("#transfer-words").textContent === "Files uploaded: 1"`)
	if begun := eval[int](b, sent); begun != 0 {
		t.Errorf("%d uploads were begun anew", begun)
	}
	if got := s.reads(dir + "/model.bin"); got != string(content) {
		t.Errorf("%d bytes of %d", len(got), len(content))
	}
	b.watch.clean()
}

// TestHostilePreviews opens files that would run scripts and request things if a browser
// let them, in their page and by themselves.
func TestHostilePreviews(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang")
	dir, _ := sharedDir(team.Project)
	const script = `document.title = 'ran'; parent.document.title = 'ran'; fetch('/canary')`
	for name, content := range map[string]string{
		"page.html":      `<!DOCTYPE html><body onload="` + script + `"><script>` + script + `</script><img src="/canary"><link rel="stylesheet" href="/canary"><iframe src="/canary"></iframe><meta http-equiv="refresh" content="0;url=/canary">`,
		"image.svg":      `<svg xmlns="http://www.w3.org/2000/svg" width="90" height="90" onload="` + script + `"><script>` + script + `</script><image href="/canary" width="5" height="5"/><foreignObject width="50" height="50"><iframe xmlns="http://www.w3.org/1999/xhtml" src="/canary"></iframe></foreignObject></svg>`,
		"notebook.ipynb": `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "# Title\n<script>` + script + `</script><img src='/canary' onerror=\"` + strings.ReplaceAll(script, `"`, `'`) + `\">\n\n![](/canary)"}, {"cell_type": "code", "source": "1", "outputs": [{"output_type": "display_data", "data": {"text/html": "<script>` + script + `</script><img src='/canary'>", "image/svg+xml": "<svg onload=\"` + script + `\"/>", "text/plain": "<img src='/canary'>"}}]}]}`,
		"text.txt":       `<script>` + script + `</script><img src="/canary">`,
	} {
		s.writes(dir+"/"+name, content)
	}
	b := chromium.person(t, s.url).tab()
	b.signIn(team.Members[0].Email, password)
	base := fmt.Sprintf("/projects/%d/files", team.Project)
	for _, name := range []string{"page.html", "image.svg", "notebook.ipynb", "text.txt"} {
		for _, operation := range []string{"/entry", "/preview"} {
			b.goTo(base + operation + "?path=" + dir + "/" + name)
			b.until("the whole page", `document.readyState === "complete"`)
			if operation == "/entry" { // in the preview nothing runs, not even timers
				eval[bool](b, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))`)
			}
			if title := eval[string](b, "document.title"); title == "ran" {
				t.Errorf("%s of %s ran a script", operation, name)
			}
			if where := eval[string](b, "location.pathname"); where != base+operation {
				t.Errorf("%s of %s leads to %s", operation, name, where)
			}
			if cookie, err := tryEval[string](b, "document.cookie"); operation == "/preview" && err == nil {
				t.Errorf("the preview of %s can read cookies: %q", name, cookie)
			}
		}
		b.goTo(base + "/entry?path=" + dir + "/" + name)
		b.until("the whole page", `document.readyState === "complete"`)
		b.shoot("preview-" + strings.ReplaceAll(name, ".", "-"))
	}
	if strings.Contains(s.log.String(), "/canary") {
		t.Error("a file requested something")
	}
	for _, fault := range b.watch.without("canary", "Blocked script execution", "content security policy", "violates the following Content Security Policy") {
		t.Error(fault)
	}
}

// without removes what the browser refused, and returns the other faults.
func (w *watch) without(expected ...string) (others []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		known := false
		for _, e := range expected {
			known = known || strings.Contains(f, e)
		}
		if !known {
			others = append(others, f)
		}
	}
	w.faults = nil
	return others
}

// TestFileRulesInBrowser is an administrator who sees what a rule would change before it
// is saved, and a member who sees its effect and why.
func TestFileRulesInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang", "li")
	dir, page := sharedDir(team.Project)
	s.writes(dir+"/model.pt", "weights")
	access := strings.Replace(page, "/files?", "/files/access?", 1)
	operator := chromium.person(t, s.url).tab()
	operator.signIn("operator@example.org", password)
	operator.goTo(access + "/model.pt")
	set := func(name, text string) {
		t.Helper()
		eval[bool](operator, `(() => { const e = document.querySelector("select[name=`+name+`]"); e.value = [...e.options].find((o) => o.textContent === "`+text+`").value; return true; })()`)
	}
	set("subject_id", "member wang")
	set("access", "read only")
	set("download", "not allowed")
	operator.loads(func() { operator.press("Preview") })
	operator.until("the effect on wang alone", `[...document.querySelectorAll("#effects tbody tr")].map((r) => r.cells[0].textContent + ": " + r.cells[3].textContent.trim()).join() === "wang: read only, no download,li: unchanged"`)
	operator.shoot("file-rule-preview")
	operator.loads(func() { operator.press("Save rule") })
	operator.sees("Rule saved.")
	operator.loads(func() { operator.press("Why wang has this access") })
	operator.sees("Access of wang")
	operator.sees("What applies only outside notebooks")
	operator.shoot("file-rule-why")

	wang := chromium.person(t, s.url).tab()
	wang.signIn(team.Members[0].Email, password)
	wang.goTo(page)
	wang.until("what wang may do", `/read only, no download/.test(`+rowOf("model.pt")+`.textContent)`)
	if eval[bool](wang, rowOf("model.pt")+`.querySelector("input, a[download]") !== null`) {
		t.Error("what the rule forbids is offered")
	}
	wang.press("Details of model.pt")
	wang.sees("do not allow you to download this file")
	wang.press("Why?")
	wang.sees("Your access")
	wang.sees("model.pt")

	operator.goTo(access + "/model.pt")
	operator.loads(func() { operator.press("Remove the rule on " + dir + "/model.pt for member wang") })
	operator.until("the effect of the removal", `/read and write/.test(document.querySelector("#effects tbody").textContent)`)
	operator.loads(func() { operator.press("Remove") })
	operator.sees("Rule removed.")
	wang.goTo(page)
	wang.until("what wang may do", `/read and write/.test(`+rowOf("model.pt")+`.textContent)`)
	operator.watch.clean()
	wang.watch.clean()
}
