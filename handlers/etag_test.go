package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// ask sends a request to a real server, whose HEAD has no body; headers come in pairs.
func ask(t *testing.T, server *httptest.Server, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// Every GET of JSON has an ETag with which it answers 304, to HEAD as well, and only to
// those who may read it.
func TestEveryGetIsConditional(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.app)
	defer server.Close()
	tagged := regexp.MustCompile(`^(W/)?"([0-9]+-)?[0-9a-f]{24}"$`)
	admin := []string{"Authorization", "Bearer " + w.admin, "Accept-Encoding", "gzip"}
	conditional := 0
	for _, r := range w.app.echo.Routes() {
		if r.Method != http.MethodGet || !strings.HasPrefix(r.Path, apiPrefix) || strings.HasSuffix(r.Path, "/openapi.json") {
			continue
		}
		path := strings.NewReplacer(":id", "1", ":role", "1", ":member", "1").Replace(r.Path)
		if strings.HasSuffix(path, "/usage") || strings.HasSuffix(path, "/accounting") {
			path += "?from=2026-01-01&until=2026-01-31" // otherwise until now
		}
		first, _ := ask(t, server, "GET", path, admin...)
		if first.StatusCode != 200 || !strings.HasSuffix(first.Header.Get("Content-Type"), "json") {
			continue
		}
		conditional++
		tag := first.Header.Get("ETag")
		if !tagged.MatchString(tag) || first.Header.Get("Cache-Control") != "private, no-cache" {
			t.Errorf("%s: ETag %s, Cache-Control %s", path, tag, first.Header.Get("Cache-Control"))
		}
		for _, method := range []string{"GET", "HEAD"} {
			again, body := ask(t, server, method, path, append(admin, "If-None-Match", `"other", `+tag)...)
			if again.StatusCode != 304 || body != "" || strings.TrimPrefix(again.Header.Get("ETag"), "W/") != strings.TrimPrefix(tag, "W/") {
				t.Errorf("%s %s: %d %q, ETag %s, want 304 and %s", method, path, again.StatusCode, body, again.Header.Get("ETag"), tag)
			}
		}
		if other, body := ask(t, server, "GET", path, append(admin, "If-None-Match", `"other"`)...); other.StatusCode != 200 || body == "" {
			t.Errorf("%s with another ETag: %d %q", path, other.StatusCode, body)
		}
		if refused, _ := ask(t, server, "GET", path, "If-None-Match", tag); refused.StatusCode != 401 || refused.Header.Get("ETag") != "" {
			t.Errorf("%s without a token: %d, ETag %s", path, refused.StatusCode, refused.Header.Get("ETag"))
		}
	}
	if conditional < 30 {
		t.Errorf("only %d are conditional", conditional)
	}
}

// The ETag of a resource names its version and what it is made of: resources in use
// change it without a new version.
func TestETagsOfResources(t *testing.T) {
	w := newWorld(t)
	at := "/projects/" + id(w.project)
	before := w.get(w.member, at).header.Get("ETag")
	if w.launch(w.member, "").status != 201 {
		t.Fatal("not launched")
	}
	after := w.get(w.member, at).header.Get("ETag")
	if before == after || !strings.HasPrefix(before, `"1-`) || !strings.HasPrefix(after, `"1-`) {
		t.Errorf("idle %s, in use %s", before, after)
	}
	w.want(200, w.admin, "PUT", at, `{"name":"vision","quota":`+plenty+`}`, "If-Match", before)
	if a := w.want(200, w.member, "GET", at, "", "If-None-Match", after); !strings.HasPrefix(a.header.Get("ETag"), `"2-`) {
		t.Errorf("a new version: %s", a.header.Get("ETag"))
	}
	w.problem(w.want(404, w.stranger, "GET", at, "", "If-None-Match", "*"))
}

// A compressed response has a weak ETag, which If-Match and If-None-Match accept.
func TestCompressedResponsesHaveWeakETags(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.app)
	defer server.Close()
	header := []string{"Authorization", "Bearer " + w.admin, "Accept-Encoding", "gzip"}
	document, _ := ask(t, server, "GET", apiPrefix+"/openapi.json", header...)
	small, _ := ask(t, server, "GET", apiPrefix+"/me", header...)
	if document.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(document.Header.Get("ETag"), `W/"`) {
		t.Errorf("the document: %v", document.Header)
	}
	if small.Header.Get("Content-Encoding") != "" || !strings.HasPrefix(small.Header.Get("ETag"), `"`) {
		t.Errorf("a small response: %v", small.Header)
	}
	w.want(200, w.admin, "PUT", "/projects/"+id(w.project), `{"name":"vision","quota":`+plenty+`}`, "If-Match", `W/"1-0123456789abcdef01234567"`)
}

func TestRepresentationTag(t *testing.T) {
	const hash = "2cf24dba5fb0a30e26e83b2a" // of hello
	for tag, want := range map[string]string{``: `"` + hash + `"`, `"3"`: `"3-` + hash + `"`, `"9f86d081-content"`: `"9f86d081-content"`} {
		if got := representationTag(tag, []byte("hello")); got != want {
			t.Errorf("%s: %s, want %s", tag, got, want)
		}
	}
}
