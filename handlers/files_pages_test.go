package handlers

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"weir/models"
)

// filesPage is the address of a page about a file in the project's model directory.
func (w *world) filesPage(operation, name string) string {
	return filesPath(w.project, "") + operation + "?path=" + models.FilePath(w.modelPath(name)).String()
}

// redirected posts a form and returns the page that follows.
func (w *world) redirected(token, path string, form url.Values) string {
	w.Helper()
	a := w.form(token, path, form)
	if a.status != http.StatusSeeOther {
		w.Fatalf("POST %s: %d %.2000s", path, a.status, a.raw)
	}
	return w.page(token, a.header.Get("Location"))
}

// form posts a form to a page.
func (w *world) form(token, path string, form url.Values) answer {
	w.Helper()
	return w.ask(token, "POST", path, strings.NewReader(form.Encode()), "application/x-www-form-urlencoded")
}

// page gets a page.
func (w *world) page(token, path string) string {
	w.Helper()
	a := w.ask(token, "GET", path, strings.NewReader(""), "")
	if a.status != http.StatusOK {
		w.Fatalf("GET %s: %d %.2000s", path, a.status, a.raw)
	}
	return a.raw
}

func (w *world) ask(token, method, path string, body *strings.Reader, kind string) answer {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), method, path, body)
	r.Header.Set("Authorization", "Bearer "+token)
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, r)
	return answer{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
}

// hasTexts checks that a page has all texts.
func hasTexts(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not contain %q: %.6000s", text, page)
		}
	}
}

// hasNone checks that a page has none of the texts.
func hasNone(t *testing.T, page string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(page, text) {
			t.Errorf("the page contains %q", text)
		}
	}
}

// All changes of files work as forms.
func TestFilePages(t *testing.T) {
	w := newWorld(t)
	odd := "a\xff<b> %2F.txt"
	encoded := models.FilePath(w.modelPath("/" + odd)).String()
	w.want(200, w.member, "PUT", w.filesOf("/content", "/"+odd), "content")
	page := w.page(w.member, filesPath(w.project, ""))
	hasTexts(t, page, ">ann@example.org<", ">project_model<", "Only the portal creates directories here", "7 B used, limit ", "My storage")
	page = w.page(w.member, w.filesPage("", ""))
	hasTexts(t, page, "a\uFFFD&lt;b&gt; %2F.txt", "?path="+encoded, "read and write", ">Upload<", `data-writable`)

	selected := url.Values{"item": {encoded}}
	if a := w.want(200, w.member, "GET", "/projects/"+id(w.project)+"/files/archive?"+selected.Encode(), ""); !strings.Contains(a.raw, odd) || !strings.Contains(a.header.Get("Content-Disposition"), "project_model.zip") {
		t.Errorf("the archive of what is selected: %v, %q", a.header, a.raw)
	}

	page = w.redirected(w.member, w.filesPage("/directories", ""), url.Values{"directory": {"数据"}})
	hasTexts(t, page, ">数据<")
	hasTexts(t, w.form(w.member, w.filesPage("/directories", ""), url.Values{"directory": {"数据"}}).raw, "There is already a file or directory with this name.")
	hasTexts(t, w.form(w.member, w.filesPage("/directories", ""), url.Values{"directory": {"a/b"}}).raw, "is not a valid name for a file")

	page = w.redirected(w.member, w.filesPage("/rename", "/"+odd), url.Values{"file_name": {"plain.txt"}})
	hasTexts(t, page, "<h1 class=\"break\">plain.txt</h1>", "Preview of plain.txt")
	plain := w.modelPath("/plain.txt")
	hasTexts(t, w.page(w.member, filesPath(w.project, "")+"/move?item="+plain+"&in="+w.modelPath("")), plain, w.modelPath(""))
	page = w.redirected(w.member, filesPath(w.project, "")+"/move", url.Values{"item": {plain}, "to_directory": {w.modelPath("/数据")}, "action": {"copy"}})
	hasTexts(t, page, "plain.txt")
	move := func(to string, items ...string) string {
		return w.form(w.member, filesPath(w.project, "")+"/move", url.Values{"item": items, "to_directory": {w.modelPath(to)}, "action": {"move"}}).raw
	}
	hasTexts(t, move("/nowhere", plain), "is not a directory that you can read", plain, w.modelPath("/nowhere"))
	w.redirected(w.member, w.filesPage("/directories", ""), url.Values{"directory": {"a"}})
	some := move("/数据", w.modelPath("/a"), plain) // the first is moved
	hasTexts(t, some, "plain.txt: There is already a file or directory with this name.", plain)
	hasNone(t, some, w.modelPath("/a")+"<")
	page = w.redirected(w.member, filesPath(w.project, "")+"/delete", url.Values{"item": {plain}, "in": {w.modelPath("")}})
	hasNone(t, page, "plain.txt")
	page = w.page(w.member, filesPath(w.project, "")+"/trash")
	hasTexts(t, page, plain, "7 B", "ann@example.org", "Remove for good", "Restore")
	item := strings.Split(strings.Split(page, "/trash/")[1], "/restore")[0]
	page = w.redirected(w.member, filesPath(w.project, "")+"/trash/"+item+"/restore", nil)
	hasTexts(t, page, "The trash is empty.")
	hasTexts(t, w.page(w.member, filesPath(w.project, "")+"?q=PLAIN&path="+w.modelPath("")), ">plain.txt<", w.modelPath("/数据/plain.txt"))
	w.purges(t, plain)
}

// purges removes a file for good, after it was asked whether it shall.
func (w *world) purges(t *testing.T, path string) {
	w.redirected(w.member, filesPath(w.project, "")+"/delete", url.Values{"item": {path}})
	page := w.page(w.member, filesPath(w.project, "")+"/trash")
	item := strings.Split(strings.Split(page, "/trash/")[1], "/restore")[0]
	hasTexts(t, w.page(w.member, filesPath(w.project, "")+"/trash/"+item+"/delete"), "Its content is lost.")
	page = w.redirected(w.member, filesPath(w.project, "")+"/trash/"+item+"/delete", nil)
	hasNone(t, page, path)
}

// purgesVersion removes the only version of a file for good, after it was asked whether it shall.
func (w *world) purgesVersion(t *testing.T, name string) {
	page := w.page(w.member, w.filesPage("/entry", name))
	version := filesPath(w.project, "") + "/versions/" + strings.Split(strings.Split(page, "/versions/")[1], "/")[0] + "/delete"
	hasTexts(t, page, `href="`+version+`"`)
	hasTexts(t, w.page(w.member, version), "Remove a version of "+w.modelPath(name)+" for good", "This frees ")
	page = w.redirected(w.member, version, nil)
	hasTexts(t, page, "<h1 class=\"break\">"+name[1:])
	hasNone(t, page, "Earlier versions")
}

// The trash leads to the earlier versions of a deleted file, which has a page for them.
func TestVersionsOfADeletedFile(t *testing.T) {
	w := newWorld(t)
	for _, content := range []string{"first", "second"} {
		w.want(200, w.member, "PUT", w.filesOf("/content", "/notes"), content)
	}
	trash, entry := filesPath(w.project, "")+"/trash", w.filesPage("/entry", "/notes")
	remove := func() string {
		w.redirected(w.member, filesPath(w.project, "")+"/delete", url.Values{"item": {w.modelPath("/notes")}})
		return w.page(w.member, trash)
	}
	hasTexts(t, remove(), `href="`+entry+`"`, "Earlier versions of "+w.modelPath("/notes"))
	page := w.page(w.member, entry)
	hasTexts(t, page, "There is no file at this path any more.", "Earlier versions", "Restore")
	hasNone(t, page, "Preview")
	version := filesPath(w.project, "") + "/versions/" + strings.Split(strings.Split(page, "/versions/")[1], "/")[0]
	hasTexts(t, w.redirected(w.member, version+"/restore", nil), `<h1 class="break">notes</h1>`, "Preview")
	if content, err := os.ReadFile(w.onDisk("/notes")); string(content) != "first" {
		t.Errorf("restored %q, %v", content, err)
	}
	remove()
	page = w.redirected(w.member, version+"/delete", nil)
	hasTexts(t, page, "Kept until")
	hasNone(t, page, entry)
	if a := w.ask(w.member, "GET", entry, strings.NewReader(""), ""); a.status != http.StatusNotFound {
		t.Errorf("the page of what is gone: %d", a.status)
	}
}

// What the rules forbid is not offered, and refused.
func TestFilePagesFollowTheRules(t *testing.T) {
	w := newWorld(t)
	w.want(200, w.member, "PUT", w.filesOf("/content", "/f.txt"), "content")
	at := "/projects/" + id(w.project) + "/files"
	w.want(200, w.manager, "PUT", at+"/rules", `{"path":"`+w.modelPath("")+`","subject":"role","subject_id":`+id(w.role)+`,"access":"read","download":"deny"}`)
	page := w.page(w.member, w.filesPage("", ""))
	hasTexts(t, page, "read only, no download", "You can only read here.", ">Why?<")
	hasNone(t, page, ">Upload<", "Download f.txt", "Select f.txt", "New directory")
	page = w.page(w.member, w.filesPage("/entry", "/f.txt"))
	hasTexts(t, page, "do not allow you to download this file")
	hasNone(t, page, "<iframe", ">Rename<", ">Delete<")
	for _, path := range []string{w.filesPage("/preview", "/f.txt")} {
		if a := w.ask(w.member, "GET", path, strings.NewReader(""), ""); a.status != http.StatusForbidden {
			t.Errorf("GET %s: %d", path, a.status)
		}
	}
	if a := w.form(w.member, w.filesPage("/rename", "/f.txt"), url.Values{"file_name": {"g"}}); a.status != http.StatusForbidden {
		t.Errorf("renaming: %d", a.status)
	}
	page = w.page(w.member, w.filesPage("/access", "/f.txt"))
	hasTexts(t, page, "Your access", "read only, no download", w.modelPath(""), "What applies only outside notebooks")
	hasNone(t, page, "Add or change a rule", "Access of each member")
	if a := w.ask(w.stranger, "GET", filesPath(w.project, ""), strings.NewReader(""), ""); a.status != http.StatusNotFound {
		t.Errorf("a stranger gets %d", a.status)
	}
}

// Managers see what a rule would change before it is saved, and why a member has an access.
func TestFileRulePages(t *testing.T) {
	w := newWorld(t)
	at, form := w.filesPage("/access", ""), url.Values{"subject_id": {"role:" + id(w.role)}, "access": {"read"}, "download": {"deny"}, "preview": {"1"}}
	hasTexts(t, w.page(w.manager, at), "Add or change a rule", "role engineer", "member ann@example.org", "No rules. The layout of the shared directories decides.")
	hasTexts(t, w.page(w.admin, at), "Add or change a rule")
	page := w.form(w.manager, at, form).raw
	hasTexts(t, page, `id="effects"`, `<span class="mark warn">read only, no download</span>`, "unchanged", "Save rule")
	hasTexts(t, w.page(w.manager, at), "No rules. The layout of the shared directories decides.")
	form.Del("preview")
	page = w.redirected(w.manager, at, form)
	hasTexts(t, page, "role engineer", "not allowed")
	hasTexts(t, w.page(w.manager, filesPath(w.project, "")+"/rules"), w.modelPath(""), "role engineer")
	hasTexts(t, w.page(w.manager, w.filesPage("/access", "/f")+"&member="+id(w.place)), "Access of ann@example.org", "read only, no download", "role engineer", "layout")
	rule := strings.Split(strings.Split(page, "remove=")[1], `"`)[0]
	hasTexts(t, w.page(w.manager, at+"&remove="+rule), "Remove the rule", `<span class="mark warn">read and write</span>`)
	page = w.redirected(w.manager, filesPath(w.project, "")+"/rules/"+rule+"/delete?path="+w.modelPath(""), nil)
	hasTexts(t, page, "No rules. The layout of the shared directories decides.")
	if a := w.form(w.member, at, form); a.status != http.StatusForbidden {
		t.Errorf("a member saves a rule: %d", a.status)
	}
	hasTexts(t, w.form(w.manager, w.filesPage("/access", ""), url.Values{"subject_id": {"role:999"}, "access": {"read"}, "preview": {"1"}}).raw, "was not found in this project")
}

// multipartOf is a form with files.
func multipartOf(t *testing.T, conflict string, list ...[2]string) (*strings.Reader, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	if err := form.WriteField("conflict", conflict); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		part, err := form.CreateFormFile("files", f[0])
		if err == nil {
			_, err = part.Write([]byte(f[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.NewReader(body.String()), form.FormDataContentType()
}

// Files larger than the limit of other forms are stored as they arrive, and conflicts are
// decided as the form says.
func TestUploadForm(t *testing.T) {
	w := newWorld(t)
	large := strings.Repeat("0123456789abcdef", 1<<17)
	for _, c := range []struct{ conflict, content, want, beside string }{
		{"keep", large, large, ""}, {"skip", "second", large, ""}, {"keep", "third", large, "third"}, {"replace", "fourth", "fourth", "third"},
	} {
		body, kind := multipartOf(t, c.conflict, [2]string{"数据.tar.gz", c.content}, [2]string{"", ""})
		if a := w.ask(w.member, "POST", w.filesPage("/upload", ""), body, kind); a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %s", c.conflict, a.status, a.raw)
		}
		for name, want := range map[string]string{"/数据.tar.gz": c.want, "/数据.tar (2).gz": c.beside} {
			if got, err := os.ReadFile(w.onDisk(name)); string(got) != want || (err != nil) != (want == "") {
				t.Errorf("%s: %s has %d bytes, %v", c.conflict, name, len(got), err)
			}
		}
	}
	hasTexts(t, w.page(w.member, w.filesPage("/entry", "/数据.tar.gz")), "Earlier versions", "2.0 MiB", "ann@example.org", "Versions are kept for")
	w.purgesVersion(t, "/数据.tar.gz")
	body, kind := multipartOf(t, "keep", [2]string{"../../../escape", "x"})
	w.ask(w.member, "POST", w.filesPage("/upload", ""), body, kind)
	if _, err := os.Stat(filepath.Join(w.app.Directories.Root(), "escape")); !os.IsNotExist(err) {
		t.Errorf("a name led outside: %v", err)
	}
}

// hostile are files whose content would do harm if a browser ran it.
var hostile = map[string]string{
	"page.html":      `<!DOCTYPE html><script>document.title = "ran"; fetch("/canary-html")</script><img src="/canary-html-img">`,
	"image.svg":      `<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10" onload="document.title = 'ran'"><script>fetch("/canary-svg")</script><image href="/canary-svg-img" width="5" height="5"/></svg>`,
	"notebook.ipynb": `{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": ["# Title\n<script>document.title='ran'</script><img src='/canary-md'>\n![](/canary-md-img)\n[link](javascript:alert(1))"]}, {"cell_type": "code", "execution_count": 3, "source": "print('<script>')", "outputs": [{"output_type": "display_data", "data": {"text/html": ["<script>document.title='ran'</script><img src='/canary-output'>"], "text/plain": "plain <b>"}}, {"output_type": "error", "traceback": ["\u001b[31mfailed\u001b[0m"]}, {"output_type": "display_data", "data": {"image/png": "\"><script>document.title='ran'</script>"}}]}]}`,
}

// Previews come with headers by which a browser runs nothing of them.
func TestFilePreviews(t *testing.T) {
	w := newWorld(t)
	for name, content := range hostile {
		w.want(200, w.member, "PUT", w.filesOf("/content", "/"+name), content)
		hasTexts(t, w.page(w.member, w.filesPage("/entry", "/"+name)), "/preview?path="+w.modelPath("/"+name))
		a := w.ask(w.member, "GET", w.filesPage("/preview", "/"+name), strings.NewReader(""), "")
		if policy := a.header.Get("Content-Security-Policy"); a.status != 200 || !strings.HasPrefix(policy, "sandbox; default-src 'none'") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", name, a.status, a.header)
		}
		if name != "image.svg" {
			hasNone(t, a.raw, "<script", "canary-md'", "javascript:", "canary-output'")
		}
	}
	a := w.page(w.member, w.filesPage("/preview", "/notebook.ipynb"))
	hasTexts(t, a, "<h1>Title</h1>", "print(&#39;&lt;script&gt;&#39;)", "plain &lt;b&gt;", `<pre class="error" tabindex="0">failed</pre>`)
	w.want(200, w.member, "PUT", w.filesOf("/content", "/no.ipynb"), "not a notebook")
	hasTexts(t, w.page(w.member, w.filesPage("/preview", "/no.ipynb")), "not a notebook")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/binary"), "a\x00b")
	hasTexts(t, w.page(w.member, w.filesPage("/preview", "/binary")), "This file is not text.")
	w.want(200, w.member, "PUT", w.filesOf("/content", "/long.txt"), strings.Repeat("line\n", 1<<16))
	hasTexts(t, w.page(w.member, w.filesPage("/preview", "/long.txt")), "Only the beginning of the file is shown.")
	hasNone(t, w.page(w.member, w.filesPage("/entry", "/binary")), "<img class=\"file-preview\"")
}

// A list longer than a page leads to the next, in both orders, and misses nothing.
func TestFilePagesInOrder(t *testing.T) {
	w := newWorld(t)
	const files = 450
	for i := range files {
		if err := os.WriteFile(w.onDisk("/f"+strconv.Itoa(1000+i)), bytes.Repeat([]byte("x"), files-i), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, order := range []string{"", "&order=desc", "&sort=size", "&sort=size&order=desc", "&sort=modified"} {
		seen, last := 0, ""
		for next := w.filesPage("", "") + order; next != ""; {
			page := w.page(w.member, next)
			seen += strings.Count(page, "<tr data-path=")
			names := strings.Split(page, ">f1")
			if first := names[1][:3]; order == "" && first <= last || order == "&order=desc" && last != "" && first >= last {
				t.Errorf("%s: f1%s follows f1%s", order, first, last)
			}
			last, next = names[len(names)-1][:3], ""
			if _, rest, more := strings.Cut(page, `rel="next" href="`); more {
				next, _, _ = strings.Cut(rest, `"`)
				next = strings.ReplaceAll(next, "&amp;", "&")
			}
		}
		if seen != files {
			t.Errorf("%q: %d of %d files", order, seen, files)
		}
	}
}
