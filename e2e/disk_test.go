package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fill writes a file until its disk is full.
func fill(t testing.TB, path string) {
	t.Helper()
	f, err := os.Create(path)
	for chunk := make([]byte, 64<<10); err == nil; {
		_, err = f.Write(chunk)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	f.Close()
}

// A notebook fills the disk of the portal. What ends work goes on, also after kill -9, and
// new work is refused with the reason, until there is space again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a disk to fill")
	}
	s := newServer(t, options{gpus: "h100:2", disk: "192m"})
	team := s.sharing("ada", "ben")
	ada, ben := team.Members[0], team.Members[1]
	w := ada.running(team.Project, "nb")
	nb := ada.open(w.ID)
	if got := nb.execute("kept = 42"); got != "" {
		t.Fatal(got)
	}
	large := filepath.Join(s.dir, "shared", fmt.Sprintf("notebook/%d/%d/large", team.Project, ada.ID))
	fill(t, large)

	refused := func(what, method, path string, body any) {
		t.Helper()
		eventually(t, patience, func() string {
			status, answer, err := ben.raw(method, path, body)
			if err != nil || status != http.StatusInsufficientStorage || !strings.Contains(string(answer), "disk of the database is full") {
				return fmt.Sprintf("%s: %d %s %v", what, status, answer, err)
			}
			return ""
		})
	}
	launch := func() { t.Helper(); refused("launch", "POST", "/workspaces", launchBody(team.Project, "more")) }
	launch()
	refused("directory", "POST", fmt.Sprintf("/projects/%d/files/directories", team.Project),
		map[string]any{"path": fmt.Sprintf("/notebook/%d/project_model/more", team.Project)})
	for what, visit := range map[string]notebook{"an earlier": nb, "a new": ada.open(w.ID)} {
		if got := visit.execute("print(7)"); got != "7\n" {
			t.Errorf("%s visit to the notebook is answered %q", what, got)
		}
	}
	if got := nb.execute("print(kept)"); got != "42\n" {
		t.Errorf("the notebook answers %q", got)
	}
	res, err := http.Get(s.url + "/readyz")
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", res, err)
	}
	text, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || !strings.Contains(string(text), "disk: The disk of the database is full") {
		t.Errorf("/readyz says %q, %v", text, err)
	}
	for range 200 { // a start of the program that writes, and more writes by the server
		var token id
		ada.must("POST", "/tokens", map[string]any{"name": "more"}, &token)
		ada.must("DELETE", fmt.Sprintf("/tokens/%d", token.ID), nil, nil)
	}
	signIn := url.Values{"email": {ada.Email}, "password": {password}}
	if res, err := s.browser().PostForm(s.url+"/signin", signIn); err != nil || res.Request.URL.Path != "/" {
		t.Errorf("signing in: %+v, %v", res, err)
	}
	s.kill()
	s.start()
	launch()
	ada.open(w.ID)
	ada.must("POST", workspacePath(w.ID)+"/stop", nil, nil)
	ada.await(w.ID, "stopped", patience)
	s.api(s.admin()).must("PUT", fmt.Sprintf("/users/%d", ben.User), map[string]any{"name": "ben", "admin": false, "disabled": true}, nil)

	if err := os.Remove(large); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, func() string {
		status, answer, err := ada.raw("POST", "/workspaces", launchBody(team.Project, "again"))
		if status != http.StatusCreated {
			return fmt.Sprintf("launch: %d %s %v", status, answer, err)
		}
		return ""
	})
}
