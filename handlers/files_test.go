package handlers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filesOf is the address of an operation on a file of the member's project.
func (w *world) filesOf(operation, name string) string {
	return "/projects/" + id(w.project) + "/files" + operation + "?path=" + url.QueryEscape(w.modelPath(name))
}

func (w *world) modelPath(name string) string {
	return "/notebook/" + id(w.project) + "/project_model" + name
}

func (w *world) onDisk(name string) string {
	return filepath.Join(w.app.Directories.Root(), w.modelPath(name))
}

func TestFilesByREST(t *testing.T) {
	w := newWorld(t)
	const name = "/a\xff <b>+&%.bin"
	first := w.want(200, w.member, "PUT", w.filesOf("/content", name), "old content", "If-None-Match", "*")
	tag := first.header.Get("ETag")
	if tag == "" || tag != first.body["etag"] || first.body["access"] != "write" || first.body["download"] != true || first.body["name"] != "a\uFFFD <b>+&%.bin" {
		t.Errorf("%s %v", first.raw, first.header)
	}
	// The percent-encoded path of the answer can be used as it is.
	again := "/projects/" + id(w.project) + "/files/content?path=" + first.body["path"].(string)
	got := w.get(w.member, again)
	for header, want := range map[string]string{"ETag": tag, "Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff", "Accept-Ranges": "bytes",
		"Content-Disposition": "attachment; filename*=UTF-8''a%EF%BF%BD%20%3Cb%3E+&%25.bin", "Content-Length": "11", "Cache-Control": "no-store"} {
		if got.header.Get(header) != want {
			t.Errorf("%s: %q, want %q", header, got.header.Get(header), want)
		}
	}
	if got.raw != "old content" {
		t.Errorf("%q", got.raw)
	}
	if a := w.want(206, w.member, "GET", again, "", "Range", "bytes=4-6"); a.raw != "con" || a.header.Get("Content-Range") != "bytes 4-6/11" {
		t.Errorf("%q %v", a.raw, a.header)
	}
	if a := w.want(206, w.member, "GET", again, "", "Range", "bytes=0-0,-1"); !strings.HasPrefix(a.header.Get("Content-Type"), "multipart/byteranges") || !strings.Contains(a.raw, "bytes 10-10/11") {
		t.Errorf("%q", a.raw)
	}
	if a := w.want(416, w.member, "GET", again, "", "Range", "bytes=11-"); w.problem(a)["Range"] == "" || a.header.Get("Content-Range") != "bytes */11" {
		t.Errorf("%v %s", a.header, a.raw)
	}
	w.want(304, w.member, "GET", again, "", "If-None-Match", tag)
	w.problem(w.want(412, w.member, "GET", again, "", "If-Match", `"other"`))
	if a := w.want(200, w.member, "GET", again, "", "Range", "bytes=4-6", "If-Range", `"other"`); a.raw != "old content" {
		t.Errorf("%q", a.raw)
	}
	w.want(412, w.member, "PUT", again, "new", "If-None-Match", "*")
	w.want(412, w.member, "PUT", again, "new", "If-Match", `"other"`)
	w.want(200, w.member, "PUT", again, "new", "If-Match", tag)
	w.want(412, w.member, "DELETE", w.filesOf("", name), "", "If-Match", tag)
	if a := w.get(w.member, again); a.raw != "new" {
		t.Errorf("%q", a.raw)
	}
	w.rulesByREST(t, again)
}

// rulesByREST denies the download and reads the reasons.
func (w *world) rulesByREST(t *testing.T, content string) {
	at := "/projects/" + id(w.project) + "/files"
	rule := `{"path":"` + w.modelPath("") + `","subject":"role","subject_id":` + id(w.role) + `,"access":"read","download":"deny"}`
	list := w.want(200, w.manager, "POST", at+"/rules/preview", rule).body["items"].([]any)
	if len(list) != 2 || fmt.Sprint(list[1].(map[string]any)["after"]) != "map[access:read download:false]" || fmt.Sprint(list[1].(map[string]any)["before"]) != "map[access:write download:true]" {
		t.Errorf("%v", list)
	}
	w.want(403, w.member, "PUT", at+"/rules", rule)
	made := w.want(200, w.manager, "PUT", at+"/rules", rule)
	w.want(403, w.member, "GET", content, "")
	w.want(403, w.member, "PUT", content, "x")
	why := w.get(w.manager, at+"/access?member="+id(w.place)+"&path="+w.modelPath("/x")).body
	applied := why["rules"].([]any)
	if fmt.Sprint(why["verdict"]) != "map[access:read download:false]" || len(applied) != 3 || applied[0].(map[string]any)["id"] != made.body["id"] {
		t.Errorf("%v", why)
	}
	w.want(204, w.manager, "DELETE", at+"/rules/"+fmt.Sprint(made.body["id"]), "")
	w.want(200, w.member, "GET", content, "")
}

func TestFileManagementByREST(t *testing.T) {
	w := newWorld(t)
	at := "/projects/" + id(w.project) + "/files"
	w.want(201, w.member, "POST", at+"/directories", `{"path":"`+w.modelPath("/dir%20%E4%B8%AD")+`"}`)
	w.want(200, w.member, "PUT", w.filesOf("/content", "/dir 中/b"), "content")
	w.want(201, w.member, "POST", at+"/copies", `{"from":"`+w.modelPath("/dir%20%E4%B8%AD")+`","to":"`+w.modelPath("/copy")+`"}`)
	w.want(200, w.member, "POST", at+"/moves", `{"from":"`+w.modelPath("/copy/b")+`","to":"`+w.modelPath("/copy/c")+`"}`)
	if a := w.get(w.member, w.filesOf("", "/copy")); len(a.body["items"].([]any)) != 1 || a.body["directory"].(map[string]any)["access"] != "write" {
		t.Errorf("%s", a.raw)
	}
	if a := w.get(w.member, w.filesOf("/search", "")+"&q=DIR"); len(a.body["items"].([]any)) != 1 || a.body["complete"] != true {
		t.Errorf("%s", a.raw)
	}
	if a := w.get(w.member, w.filesOf("/checksum", "/copy/c")); a.body["sha256"] != "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73" {
		t.Errorf("%s", a.raw)
	}
	item := w.want(200, w.member, "DELETE", w.filesOf("", "/copy"), "").body
	if a := w.get(w.member, at+"/trash"); len(a.body["items"].([]any)) != 1 {
		t.Errorf("%s", a.raw)
	}
	w.want(200, w.member, "POST", at+"/trash/"+fmt.Sprint(item["id"])+"/restore", "")
	item = w.want(200, w.member, "DELETE", w.filesOf("", "/copy"), "").body
	w.want(204, w.member, "DELETE", at+"/trash/"+fmt.Sprint(item["id"]), "")
	w.want(200, w.member, "PUT", "/projects/"+id(w.project)+"/files/content?path=/home/jovyan/own", "1234")
	if a := w.get(w.member, at+"/usage"); a.body["used_bytes"] != 11.0 || a.body["quota_mib"] != 1e6 || usedBy(a, w.place) != 4.0 {
		t.Errorf("%s", a.raw)
	}
	root := w.visitor("zoe@example.org", true)
	page := strings.ReplaceAll(root.page(200, "GET", path("projects", w.project)), "\u00a0", " ")
	root.shows(page, "1 MiB of 97.65 GiB", "1 MiB in use")
	archive := w.get(w.member, w.filesOf("/archive", "/dir 中"))
	w.want(200, w.member, "PUT", w.filesOf("/archive", "/out"), archive.raw)
	if a := w.get(w.member, w.filesOf("/content", "/out/b")); a.raw != "content" {
		t.Errorf("%q", a.raw)
	}
	w.want(200, w.member, "PUT", w.filesOf("/content", "/out/b"), "second")
	versions := w.get(w.member, w.filesOf("/versions", "/out/b")).body["items"].([]any)
	version := at + "/versions/" + fmt.Sprint(versions[0].(map[string]any)["id"])
	if a := w.get(w.member, version+"/content"); a.raw != "content" {
		t.Errorf("%q", a.raw)
	}
	w.want(200, w.member, "POST", version+"/restore", "")
	if a := w.get(w.member, w.filesOf("/content", "/out/b")); a.raw != "content" {
		t.Errorf("%q", a.raw)
	}
	w.want(204, w.member, "DELETE", version, "")
	w.want(404, w.member, "GET", version+"/content", "")
	if a := w.get(w.member, w.filesOf("/versions", "/out/b")); len(a.body["items"].([]any)) != 1 {
		t.Errorf("%s", a.raw)
	}
}

// A path in any encoding leads nowhere else.
func TestNoEncodingLeadsOut(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.app.Directories.Root(), "canary"), []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, up := range []string{"../../../canary", "%2e%2e/%2e%2e/%2e%2e/canary", "..%2f..%2f..%2fcanary", "%252e%252e/canary", "..%5c..%5ccanary", "..%c0%af..%c0%afcanary", "..;/..;/canary",
		"%2e%2e%2f%2e%2e%2f%2e%2e%2fcanary", "%00/../../../canary", ".../...//canary", "/canary", "//canary", "./../../../canary", "%u002e%u002e/canary", "%ef%bc%8e%ef%bc%8e/canary"} {
		for _, base := range []string{w.modelPath("/"), "", "/"} {
			for _, operation := range []string{"/content", "/stat", "", "/archive", "/checksum", "/versions"} {
				path := "/projects/" + id(w.project) + "/files" + operation + "?path=" + base + up
				if a := w.send(w.member, "GET", path, ""); a.status == 200 && operation != "/versions" || a.status >= 500 {
					t.Errorf("GET %s: %d %s", path, a.status, a.raw)
				}
			}
			path := "/projects/" + id(w.project) + "/files/content?path=" + base + up
			w.send(w.member, "PUT", path, "overwritten")
			w.send(w.member, "DELETE", "/projects/"+id(w.project)+"/files?path="+base+up, "")
		}
	}
	if content, err := os.ReadFile(filepath.Join(w.app.Directories.Root(), "canary")); err != nil || string(content) != "canary" {
		t.Errorf("%q, %v", content, err)
	}
}

// request asks a server as the member.
func (w *world) request(ctx context.Context, s *httptest.Server, method, path string, body io.Reader) *http.Response {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.URL+apiPrefix+path, body)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.member)
	res, err := s.Client().Do(r)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// large makes a sparse file.
func (w *world) large(name string, size int64) {
	w.Helper()
	if err := os.WriteFile(w.onDisk(name), nil, 0o644); err != nil {
		w.Fatal(err)
	}
	if err := os.Truncate(w.onDisk(name), size); err != nil {
		w.Fatal(err)
	}
}

// A download is cut when its right is revoked, before the revoking call returns.
func TestDownloadsEndWithTheirRight(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	const size = 1 << 30
	w.large("/large", size)
	res := w.request(t.Context(), s, "GET", w.filesOf("/content", "/large"), nil)
	if res.StatusCode != 200 || res.ContentLength != size {
		t.Fatalf("%d, %d bytes", res.StatusCode, res.ContentLength)
	}
	if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	w.want(200, w.manager, "PUT", "/projects/"+id(w.project)+"/files/rules", `{"path":"`+w.modelPath("/large")+`","subject":"project","access":"read","download":"deny"}`)
	if n, err := io.Copy(io.Discard, res.Body); err == nil || n > size/2 {
		t.Errorf("%d bytes and %v after the revocation", n, err)
	}
}

// Bodies larger than those of other operations pass, with and without a length.
func TestLargeUploads(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<18)
	for name, body := range map[string]io.Reader{"/known": bytes.NewReader(content), "/unknown": io.MultiReader(bytes.NewReader(content))} {
		res := w.request(t.Context(), s, "PUT", w.filesOf("/content", name), body)
		var e struct{ Size int }
		if err := json.NewDecoder(res.Body).Decode(&e); err != nil || res.StatusCode != 200 || e.Size != len(content) {
			t.Errorf("%s: %d, %d bytes, %v", name, res.StatusCode, e.Size, err)
		}
		res = w.request(t.Context(), s, "HEAD", w.filesOf("/content", name), nil)
		if res.StatusCode != 200 || res.ContentLength != int64(len(content)) {
			t.Errorf("HEAD: %d, %d bytes", res.StatusCode, res.ContentLength)
		}
		got := w.request(t.Context(), s, "GET", w.filesOf("/content", name), nil)
		if read, err := io.ReadAll(got.Body); err != nil || !bytes.Equal(read, content) {
			t.Errorf("%s: %d bytes, %v", name, len(read), err)
		}
	}
}

// HEAD tells of a file or an archive without reading it.
func TestHeadOfFiles(t *testing.T) {
	w := newWorld(t)
	w.want(200, w.member, "PUT", w.filesOf("/content", "/d"), "content")
	size := int64(1 << 40)
	if err := os.Truncate(w.onDisk("/d"), size); err != nil {
		t.Fatal(err)
	}
	a := w.want(200, w.member, "HEAD", w.filesOf("/content", "/d"), "")
	if a.raw != "" || a.header.Get("Content-Length") != fmt.Sprint(size) || a.header.Get("ETag") == "" || a.header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("%d bytes, %v", len(a.raw), a.header)
	}
	if a := w.want(206, w.member, "HEAD", w.filesOf("/content", "/d"), "", "Range", "bytes=1-3"); a.raw != "" || a.header.Get("Content-Length") != "3" {
		t.Errorf("%q %v", a.raw, a.header)
	}
	if a := w.want(200, w.member, "HEAD", w.filesOf("/archive", ""), ""); a.raw != "" || a.header.Get("Content-Disposition") == "" {
		t.Errorf("%d bytes, %v", len(a.raw), a.header)
	}
	if n := w.rows("SELECT count(*) FROM audit_entries WHERE action = 'download'"); n != 0 {
		t.Errorf("%d downloads are audited", n)
	}
	w.want(206, w.member, "GET", w.filesOf("/content", "/d"), "", "Range", "bytes=-9")
	if n := w.rows("SELECT count(*) FROM audit_entries WHERE action = 'download'"); n != 1 {
		t.Errorf("%d downloads are audited", n)
	}
}

// A directory is created and a file copied once for each key.
func TestKeysOfFileOperations(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		w.want(200, w.member, "PUT", w.filesOf("/content", "/a"), "content")
		at := "/projects/" + id(w.project) + "/files"
		for _, c := range [][2]string{{"/directories", `{"path":"` + w.modelPath("/new") + `"}`}, {"/copies", `{"from":"` + w.modelPath("/a") + `","to":"` + w.modelPath("/b") + `"}`}} {
			first := w.keyed(w.member, "key"+c[0], "POST", at+c[0], c[1])
			again := w.keyed(w.member, "key"+c[0], "POST", at+c[0], c[1])
			if first.status != 201 || again.status != 201 || !again.replayed() || again.raw != first.raw {
				t.Errorf("%s: %d %s, then %d %s", c[0], first.status, first.raw, again.status, again.raw)
			}
		}
	})
}

// usedBy is what a member uses in a response about storage use.
func usedBy(a answer, member int64) any {
	for _, m := range a.body["members"].([]any) {
		if m := m.(map[string]any); m["member_id"] == float64(member) {
			return m["used_bytes"]
		}
	}
	return nil
}
