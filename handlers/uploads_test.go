package handlers

import (
	"encoding/base64"
	"net/url"
	"os"
	"strings"
	"testing"

	"weir/models"
)

// tusHeaders are of a request by the protocol.
func tusHeaders(more ...string) []string {
	return append([]string{"Tus-Resumable", "1.0.0", "Content-Type", "application/offset+octet-stream"}, more...)
}

// begin begins an upload and returns its path below apiPrefix.
func (w *world) beginUpload(token, name, length string) (string, answer) {
	w.Helper()
	path := base64.StdEncoding.EncodeToString([]byte(w.modelPath(name)))
	a := w.send(token, "POST", "/projects/"+id(w.project)+"/files/uploads", "", tusHeaders("Upload-Length", length, "Upload-Metadata", "path "+path)...)
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil {
		w.Fatal(err)
	}
	return strings.TrimPrefix(u.Path, apiPrefix), a
}

func TestResumableUploads(t *testing.T) {
	w := newWorld(t)
	if err := os.WriteFile(w.onDisk("/a"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	at, a := w.beginUpload(w.member, "/a", "11")
	if a.status != 201 || !strings.HasPrefix(at, "/projects/"+id(w.project)+"/files/uploads/") {
		t.Fatalf("%d %q %s", a.status, at, a.raw)
	}
	offset := func(want string) {
		t.Helper()
		if a := w.want(200, w.member, "HEAD", at, "", tusHeaders()...); a.header.Get("Upload-Offset") != want || a.header.Get("Upload-Length") != "11" {
			t.Errorf("%v, want %s", a.header, want)
		}
	}
	offset("0")
	w.want(204, w.member, "PATCH", at, "hello ", tusHeaders("Upload-Offset", "0")...)
	offset("6")
	w.want(409, w.member, "PATCH", at, "hello ", tusHeaders("Upload-Offset", "0")...)
	for name, token := range map[string]string{"the manager": w.manager, "the administrator": w.admin, "a stranger": w.stranger} {
		if a := w.send(token, "PATCH", at, "world", tusHeaders("Upload-Offset", "6")...); a.status != 404 {
			t.Errorf("%s: %d %s", name, a.status, a.raw)
		}
	}
	w.want(401, "", "PATCH", at, "world", tusHeaders("Upload-Offset", "6")...)
	if a := w.get(w.member, w.filesOf("/content", "/a")); a.raw != "old" {
		t.Errorf("%q before the end", a.raw)
	}
	w.want(204, w.member, "PATCH", at, "world", tusHeaders("Upload-Offset", "6")...)
	if a := w.get(w.member, w.filesOf("/content", "/a")); a.raw != "hello world" {
		t.Errorf("%q", a.raw)
	}
	w.want(404, w.member, "HEAD", at, "", tusHeaders()...)
	if versions := w.get(w.member, w.filesOf("/versions", "/a")).body["items"].([]any); len(versions) != 1 {
		t.Errorf("%v", versions)
	}
	if a := w.get(w.member, "/projects/"+id(w.project)+"/files/usage"); a.body["used_bytes"] != 11.0 || a.body["reserved_bytes"] != 0.0 {
		t.Errorf("%s", a.raw)
	}
}

func TestUploadsAreRefused(t *testing.T) {
	w := newWorld(t)
	if _, a := w.beginUpload(w.member, "/a", "1048576000001"); a.status != 409 || a.body["kind"] != string(models.KindNoCapacity) {
		t.Errorf("over the quota: %d %s", a.status, a.raw)
	}
	if _, a := w.beginUpload(w.member, "/../../../a", "1"); a.status != 422 {
		t.Errorf("elsewhere: %d %s", a.status, a.raw)
	}
	at, _ := w.beginUpload(w.member, "/a", "5")
	w.want(204, w.member, "PATCH", at, "abc", tusHeaders("Upload-Offset", "0")...)
	w.want(200, w.manager, "PUT", "/projects/"+id(w.project)+"/files/rules", `{"path":"`+w.modelPath("")+`","subject":"project","access":"read"}`)
	w.want(403, w.member, "PATCH", at, "de", tusHeaders("Upload-Offset", "3")...)
	w.want(200, w.manager, "PUT", "/projects/"+id(w.project)+"/files/rules", `{"path":"`+w.modelPath("")+`","subject":"project","access":"write"}`)
	w.want(204, w.member, "DELETE", at, "", tusHeaders()...)
	w.want(404, w.member, "PATCH", at, "de", tusHeaders("Upload-Offset", "3")...)
	if a := w.get(w.member, "/projects/"+id(w.project)+"/files/usage"); a.body["reserved_bytes"] != 0.0 {
		t.Errorf("%s", a.raw)
	}
	if _, err := os.Stat(w.onDisk("/a")); err == nil {
		t.Error("there is a file")
	}
}

// An upload whose bytes all arrived before the server ended is finished by the next
// request, and not reported as done without being there.
func TestCompleteUploadIsFinished(t *testing.T) {
	w := newWorld(t)
	at, _ := w.beginUpload(w.member, "/a", "5")
	actor, err := w.app.Accounts.ActorByToken(t.Context(), w.member)
	if err != nil {
		t.Fatal(err)
	}
	u, err := w.app.Files.Upload(t.Context(), actor, w.project, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Append(t.Context(), 0, strings.NewReader("hello")); err != nil {
		t.Fatal(err)
	}
	if a := w.send(w.member, "HEAD", at, "", tusHeaders()...); a.status != 200 || a.header.Get("Upload-Offset") != "5" {
		t.Errorf("%d, offset %s", a.status, a.header.Get("Upload-Offset"))
	}
	if a := w.want(200, w.member, "GET", w.filesOf("/content", "/a"), ""); a.raw != "hello" {
		t.Errorf("%q", a.raw)
	}
}
