//go:build cluster

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The storage is moved, and then a right is withdrawn. Before the files are copied, the project is not served; then its
// workspaces start at the new place, and one that ran all the time keeps the old one.
func TestStorageMove(t *testing.T) {
	k, _ := newCluster(t)
	places := []string{filepath.Join(t.TempDir(), "old"), filepath.Join(t.TempDir(), "new")}
	s := newServer(t, inClusterAt(t, k, places[0]))
	env := s.jupyterIn(k)
	s.nodeLends(k)
	team := s.team("speech", share.times(2), "ada")
	ada := team.Members[0]
	files := fmt.Sprintf("notebook/%d", team.Project)
	place := filepath.Join(files, fmt.Sprint(ada.ID), "place")
	first := ada.await(ada.launch(team.Project, env, "first"), "running", starting)
	write(t, filepath.Join(places[0], place), "old")
	s.kill()
	s.start() // it measures at once
	s.awaitMeasured(ada.api, team.Project)

	s.stop()
	s.opts = inClusterAt(t, k, places[1])
	s.start()
	second := ada.launch(team.Project, env, "second")
	eventually(t, starting, func() string {
		var w struct {
			Events []struct {
				Message string `json:"message"`
			} `json:"events"`
		}
		ada.must("GET", workspacePath(second), nil, &w)
		if said := fmt.Sprint(w.Events); !strings.Contains(said, "not in the shared storage") {
			return said
		}
		return ""
	})
	if _, err := os.Lstat(filepath.Join(places[1], files)); !os.IsNotExist(err) {
		t.Fatalf("there is an empty directory instead of the files: %v", err)
	}
	if out, err := exec.Command("cp", "-a", places[0]+"/.", places[1]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	write(t, filepath.Join(places[1], place), "new")
	for id, want := range map[int64]string{second: "new\n", first.ID: "old\n"} {
		ada.await(id, "running", starting)
		nb := ada.open(id)
		if got := executeCell(t, nb.client, nb.origin, "print(open('place').read())"); got != want {
			t.Errorf("workspace %d is at the place %q, not %q", id, got, want)
		}
	}
	// A pod keeps its mounts as they are: without the right to write it has to go.
	s.api(s.admin()).must("PUT", fmt.Sprintf("/projects/%d/files/rules", team.Project),
		map[string]any{"path": "/" + files + "/project_model", "subject": "project", "access": "read"}, nil)
	for _, id := range []int64{first.ID, second} {
		if w := ada.await(id, "stopped", starting); !strings.Contains(w.Reason, "project_model") {
			t.Errorf("workspace %d was stopped: %q", id, w.Reason)
		}
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// awaitMeasured waits until the files of a project were found once.
func (s *server) awaitMeasured(a api, project int64) {
	s.t.Helper()
	eventually(s.t, starting, func() string {
		var use struct {
			MeasuredAt string `json:"measured_at"`
		}
		if a.must("GET", fmt.Sprintf("/projects/%d/files/usage", project), nil, &use); use.MeasuredAt == "" {
			return "the files were not measured"
		}
		return ""
	})
}
