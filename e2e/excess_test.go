package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A notebook that writes past the member's limit is measured, the member is told, and
// after the grace period a workspace mounts the directories read-only; with the files
// deleted in the portal, the next one can write again.
func TestNotebookPastItsStorageLimit(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:2", args: []string{"--storage-grace=1s", "--storage-scan-interval=1m", "--storage-sweep-interval=1s"}})
	limit := share
	limit.StorageMiB = 1
	team := s.teamWithin("Speech", limit.times(10), limit, "wang")
	wang := team.Members[0]
	// tries tells what became of a write in a notebook, in a workspace of its own.
	tries := func(file string, mib int) string {
		t.Helper()
		w := wang.running(team.Project, "nb")
		defer func() {
			wang.must("POST", workspacePath(w.ID)+"/stop", nil, nil)
			wang.await(w.ID, "stopped", patience)
		}()
		return strings.TrimSpace(wang.open(w.ID).execute(fmt.Sprintf(`
try:
    with open("/home/jovyan/%s", "wb") as f: print(f.write(bytes(%d << 20)))
except OSError as e:
    print(e.strerror)`, file, mib)))
	}
	told := func() (n int) {
		for _, notification := range list[struct{ Kind, Text string }](wang.api, "/notifications") {
			if notification.Kind == "storage.exceeded" {
				n++
			}
		}
		return n
	}
	// readOnly waits until the member's directories are to be mounted read-only, or no longer.
	readOnly := func(want bool) {
		t.Helper()
		eventually(t, ready, func() string {
			var use struct {
				Members []struct {
					Used     int64      `json:"used_bytes"`
					ReadOnly *time.Time `json:"read_only_at"`
				}
			}
			wang.must("GET", fmt.Sprintf("/projects/%d/files/usage", team.Project), nil, &use)
			if at := use.Members[0].ReadOnly; (at != nil) != want || at != nil && time.Now().Before(*at) {
				return fmt.Sprintf("%+v; want read-only: %t", use, want)
			}
			return ""
		})
	}
	if got := tries("large", 3); got != "3145728" {
		t.Fatalf("the notebook wrote %q", got)
	}
	readOnly(true)
	if n := told(); n != 1 {
		t.Errorf("told %d times", n)
	}
	if got := tries("more", 1); got != "Read-only file system" {
		t.Errorf("after the grace period the notebook wrote: %q", got)
	}
	files := fmt.Sprintf("/projects/%d/files", team.Project)
	wang.must("DELETE", fmt.Sprintf("%s?path=/notebook/%d/%d/large", files, team.Project, wang.ID), nil, nil)
	for _, item := range list[id](wang.api, files+"/trash") {
		wang.must("DELETE", fmt.Sprintf("%s/trash/%d", files, item.ID), nil, nil)
	}
	readOnly(false)
	if got := tries("small", 0); got != "0" {
		t.Errorf("within the limit again: %q", got)
	}
}
