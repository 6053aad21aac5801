package local

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

// testUser is nobody on this machine, so that what it owns is ours.
const testUser = 64321

// patience is how long a test waits for what has to happen.
const patience = 2 * time.Minute

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func config(dir string) Config {
	return Config{Dir: dir, SandboxUID: testUser, SandboxGID: testUser}
}

func open(t *testing.T, c Config) *Runtime {
	t.Helper()
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func newHarness(t *testing.T) runtimetest.Harness {
	c := config(t.TempDir())
	time := &clock{now: time.Unix(1_700_000_000, 0)}
	c.Clock = time.Now
	return runtimetest.Harness{
		Runtime:     open(t, c),
		Reopen:      func(t *testing.T) runtime.Runtime { return open(t, c) },
		Notebook:    func(*testing.T) runtime.Spec { return notebookSpec(0) },
		Script:      func(_ *testing.T, script string) runtime.Spec { return scriptSpec(0, script) },
		Share:       share,
		StepTimeout: patience,
		PassGrace: func() {
			time.pass(stopGrace)
		},
	}
}

// share makes a directory that the sandbox's user owns.
func share(t *testing.T) string {
	dir := t.TempDir()
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, testUser, testUser); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func notebookSpec(id int64) runtime.Spec {
	return runtime.Spec{Workspace: id, Generation: 1, Token: "c0ffee" + strings.Repeat("1", 20),
		Command: []string{"jupyter", "notebook"}}
}

func scriptSpec(id int64, script string) runtime.Spec {
	return runtime.Spec{Workspace: id, Generation: 1, Token: "c0ffee" + strings.Repeat("1", 20),
		Command: []string{"sh", "-c", script}}
}

func TestConformance(t *testing.T) {
	if _, err := available(identity{uid: testUser, gid: testUser, drop: os.Geteuid() == 0}); err != nil {
		t.Fatalf("%v (“tools/setup test” installs what is missing)", err)
	}
	runtimetest.Run(t, newHarness)
}

// start launches spec and sees to it that it ends with the test.
func start(t *testing.T, r *Runtime, spec runtime.Spec) runtime.State {
	t.Helper()
	state, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r, state) })
	return state
}

func stop(t *testing.T, r *Runtime, state runtime.State) {
	t.Helper()
	in, err := r.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	in.kill()
	eventually(t, "the workspace is gone", in.exited)
	eventually(t, "its directory is gone", func() bool {
		return r.Stop(context.Background(), state) == nil && !exists(in.dir)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		<-tick.C
	}
}

func poll(t *testing.T, r *Runtime, state runtime.State) runtime.Status {
	t.Helper()
	s, err := r.Poll(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reach polls until a phase is reached.
func reach(t *testing.T, r *Runtime, state runtime.State, phase runtime.Phase) runtime.Status {
	t.Helper()
	var s runtime.Status
	eventually(t, string(phase), func() bool {
		s = poll(t, r, state)
		if s.Phase == runtime.PhaseExited && phase != s.Phase {
			t.Fatalf("ended: %s\n%s", s.Message, s.LogTail)
		}
		return s.Phase == phase
	})
	return s
}

// output runs a script to its end and returns what it printed.
func output(t *testing.T, r *Runtime, spec runtime.Spec) string {
	t.Helper()
	return reach(t, r, start(t, r, spec), runtime.PhaseExited).LogTail
}
