package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/workspaces/graph/journal"
)

// kept makes a run keep its events.
func (r *run) kept() *[]journal.Event {
	var events []journal.Event
	r.Record = func(e journal.Event) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		events = append(events, e)
		return nil
	}
	return &events
}

// What has ended in an earlier attempt does not run again, and what waits for it starts.
func TestResumedOperators(t *testing.T) {
	r := newRun(t, script("a", nil, "touch a1", "touch a2"), script("b", nil, "touch b1"), script("c", []string{"a", "b"}, "ls a2; touch c1"))
	events := r.kept()
	r.Ended = map[string]int{"a": 1, "b": 1}
	result := r.ended(r.start())
	if result.Code != 0 || len(result.Operators) != 2 {
		t.Fatalf("%+v: %s", result, r.shown())
	}
	for name, want := range map[string]bool{"a1": false, "a2": true, "b1": false, "c1": true} {
		if _, err := os.Stat(name); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	var kinds []string
	for _, e := range *events {
		kinds = append(kinds, string(e.Kind)+" "+e.Branch)
	}
	if got := strings.Join(kinds, ","); got != "attempt ,start a,end a,start c,end c,over " {
		t.Errorf("recorded: %s", got)
	}
	r.Ended = map[string]int{"a": 2, "b": 1, "c": 1}
	if result = r.ended(r.start()); result.Code != 0 || len(result.Operators) != 0 {
		t.Errorf("all had ended: %+v", result)
	}
}

// An operator does not start before its start is kept; those that run are ended if nothing can
// be kept any more.
func TestUnwritableJournal(t *testing.T) {
	r := newRun(t, script("a", nil, "touch runs; exec sleep 600"), script("b", nil, wait("runs"), "touch never"))
	full := 0
	r.Record = func(e journal.Event) error {
		if e.Kind == journal.End {
			full++
			return syscall.ENOSPC
		}
		return nil
	}
	done := make(chan error, 1)
	go func() {
		_, err := Run(r.Context(), r.Config)
		done <- err
	}()
	select {
	case err := <-done:
		if err != syscall.ENOSPC || full != 1 {
			t.Errorf("%v, after %d refusals", err, full)
		}
	case <-time.After(time.Minute):
		t.Fatal(r.shown())
	}
	if _, err := os.Stat("never"); err == nil {
		t.Error("an operator has started that is not recorded")
	}
}

// Processes that a killed attempt has left are ended, and no others.
func TestLeftovers(t *testing.T) {
	left := func(attempt string) *exec.Cmd {
		c := exec.Command("/bin/sleep", "600")
		c.Env = []string{attemptVariable + "=" + attempt}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill() // it may have ended
			_ = c.Wait()
		})
		return c
	}
	old, other := left("old"+t.Name()), left("other"+t.Name())
	eventually := time.Now().Add(time.Minute)
	for ended := 0; ended == 0 && time.Now().Before(eventually); { // until the environment of the new process is its own
		ended = EndLeftovers([]string{"old" + t.Name(), "older"})
	}
	if err := old.Wait(); err == nil || old.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it was not killed: %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil || EndLeftovers(nil) != 0 {
		t.Errorf("another one was killed: %v", err)
	}
}

// What starts others while it is looked for leaves none.
func TestLeftoversThatFork(t *testing.T) {
	attempt := "forks" + t.Name()
	t.Chdir(t.TempDir())
	c := exec.Command("/bin/sh", "-c", `touch forks; i=0; while [ $i -lt 3000 ]; do sleep 60 & i=$((i+1)); done; wait`)
	c.Env = []string{attemptVariable + "=" + attempt}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		EndLeftovers([]string{attempt})
		_ = c.Wait()
	})
	deadline := time.Now().Add(time.Minute)
	for _, err := os.Stat("forks"); err != nil; _, err = os.Stat("forks") {
		if time.Now().After(deadline) {
			t.Fatal("it has not begun")
		}
	}
	if EndLeftovers([]string{attempt}) == 0 {
		t.Error("none was found")
	}
	for marked(t, attempt) { // until those that were killed have ended
		if time.Now().After(deadline) {
			t.Fatal("some are left")
		}
	}
}

// marked reports whether a process of an attempt runs.
func marked(t *testing.T, attempt string) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(name string) bool {
		environ, err := os.ReadFile(name)
		return err == nil && strings.Contains(string(environ), attemptVariable+"="+attempt)
	})
}
