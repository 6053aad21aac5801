package e2e

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A backup is restored beside the server that runs on: the copy sees nothing of what the
// original runs, ends nothing, and runs workspaces of its own.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{})
	team := s.team("saved", share.times(2), "ada")
	ada := team.Members[0]
	w := ada.running(team.Project, "nb")
	nb := ada.open(w.ID)
	if got := nb.execute("kept = 'kept'"); got != "" {
		t.Fatalf("the cell printed %q", got)
	}
	ran, process := s.sandboxes(), s.jupyter(w.ID)

	file, dir := filepath.Join(t.TempDir(), "weir.tar.gz"), filepath.Join(t.TempDir(), "restored")
	for _, args := range [][]string{{"backup", "--files", "--output", file}, {"restore", file, "--data-dir", dir}} {
		if code, stdout, stderr := weir(t, "", s.settings(), append([]string{"admin"}, args...)...); code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	restored := serverOn(t, options{gpus: "h100:8"}, dir)
	restored.adminOnce.Do(func() { restored.adminToken = s.admin() }) // it is in the backup
	copied := member{User: ada.User, ID: ada.ID, Email: ada.Email, Name: ada.Name, api: restored.api(ada.token)}
	now := copied.workspace(w.ID)
	if now.State != "failed" || !strings.Contains(now.Reason, "restored from a backup") {
		t.Errorf("in the copy, the workspace is %s: %s", now.State, now.Reason)
	}
	if !strings.Contains(restored.log.String(), "another generation or copy of this installation runs workspaces here") {
		t.Error("the copy does not say what it found")
	}
	behind := notebook{t: t, client: restored.browser(), origin: strings.Replace(nb.origin, ":"+strconv.Itoa(s.port), ":"+strconv.Itoa(restored.port), 1)}
	behind.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for way, token := range map[string]string{"the visit": "", "the access token": ada.token} {
		if behind.client.Jar = nil; token == "" {
			behind.client.Jar = nb.client.Jar
		}
		if status := behind.status("/api/contents", token); status == http.StatusOK {
			t.Errorf("in the copy, %s of the original opens its notebook", way)
		}
	}
	if status := nb.status("/api/contents", ""); status != http.StatusOK {
		t.Errorf("in the original, the notebook responds %d", status)
	}
	own := copied.await(copied.launch(team.Project, restored.standIn(t), "own"), "running", starting)
	restored.awaitAgreement(reconcilePeriod)
	copied.call("POST", workspacePath(own.ID)+"/stop", nil, nil)
	copied.await(own.ID, "stopped", gone)

	if after := s.sandboxes(); !maps.EqualFunc(ran, after, slices.Equal) || s.jupyter(w.ID) != process {
		t.Errorf("the original's processes were %v and are %v", ran, after)
	}
	if got := nb.execute("print(kept)"); got != "kept\n" {
		t.Errorf("the cell printed %q", got)
	}
	s.awaitAgreement(reconcilePeriod)
}
