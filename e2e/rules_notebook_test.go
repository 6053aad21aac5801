package e2e

import (
	"fmt"
	"os"
	"testing"
)

// A rule reaches a notebook that runs, also one that an earlier server has started, and
// holds for a program that works in the directory.
func TestRuleReachesRunningNotebook(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the mounts of a sandbox")
	}
	s := newServer(t, options{gpus: "h100:2"})
	team := s.sharing("wang")
	wang, dir := team.Members[0], fmt.Sprintf("/notebook/%d/project_model", team.Project)
	w := wang.running(team.Project, "nb")
	// A thread of the kernel tries again and again, and tells in the home directory.
	const watch = `
import os, threading, time
os.chdir(%q)
def watch():
    while True:
        try: got = open("notes", "a").write("x")
        except OSError as e: got = e.strerror
        with open("/home/jovyan/told.new", "w") as f: f.write(str(got))
        os.rename("/home/jovyan/told.new", "/home/jovyan/told")
        time.sleep(0.1)
threading.Thread(target=watch, daemon=True).start()`
	if got := wang.open(w.ID).execute(fmt.Sprintf(watch, dir)); got != "" {
		t.Fatal(got)
	}
	told := s.onDisk(fmt.Sprintf("/notebook/%d/%d/told", team.Project, wang.ID))
	rule := func(access, want string) {
		t.Helper()
		s.api(s.admin()).must("PUT", fmt.Sprintf("/projects/%d/files/rules", team.Project), map[string]any{"path": dir, "subject": "project", "access": access}, nil)
		eventually(t, patience, func() string {
			if got, err := os.ReadFile(told); err != nil || string(got) != want {
				return fmt.Sprintf("%s: the notebook was told %q, %v", access, got, err)
			}
			return ""
		})
		eventually(t, patience, func() string {
			var directories struct {
				Outdated bool `json:"outdated"`
			}
			if wang.must("GET", workspacePath(w.ID)+"/directories", nil, &directories); directories.Outdated {
				return "the workspace is outdated"
			}
			return ""
		})
	}
	rule("write", "1")
	rule("read", "Read-only file system")
	s.kill()
	s.start()
	rule("write", "1")
}
