package runtimetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// RunsHarness is an implementation of runtime.Runs under test.
type RunsHarness struct {
	Runs runtime.Runs

	// Reopen returns another value over the same machine or cluster, as a restarted
	// server would have.
	Reopen func(t *testing.T) runtime.Runs

	// Spec is the environment of the commands, with a shell and Python.
	Spec func(t *testing.T) runtime.Spec

	// Share makes a directory that can be a mount's source.
	Share func(t *testing.T) string

	// StepTimeout is how long the slowest single step may take.
	StepTimeout time.Duration

	// PassGrace advances the clock past the grace period of Stop. Nil if the suite has to
	// wait.
	PassGrace func()
}

// RunRuns tests an implementation of runtime.Runs.
func RunRuns(t *testing.T, h RunsHarness) {
	for i, test := range []struct {
		name string
		run  func(*testing.T, *runsBench)
	}{
		{"exit codes are those of a shell", testExitCodes},
		{"output is kept in its order", testOutput},
		{"a stop is SIGTERM", testStoppedRun},
		{"a stopped run cleans up", testCleanUp},
		{"what ignores the stop is killed", testIgnoredStop},
		{"an interrupted run", testInterrupted},
		{"a run has its environment", testRunEnvironment},
		{"a run begins in its directory", testRunDirectory},
		{"another value adopts", testAdoptedRun},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &runsBench{h, int64(100 * (i + 1))})
		})
	}
}

// runsBench is a RunsHarness with helpers. It gives runs the ids after next.
type runsBench struct {
	RunsHarness
	next int64
}

// start starts a command, and sees to it that nothing of it outlives the test.
func (b *runsBench) start(t *testing.T, spec runtime.Spec, command ...string) (int64, runtime.State) {
	t.Helper()
	b.next++
	state, err := b.Runs.Start(t.Context(), b.next, spec, command)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		b.eventually(t, "removed", func() bool {
			s, err := b.Runs.Poll(ctx, state)
			if err != nil || !s.Ended {
				return b.Runs.Stop(ctx, state) != nil
			}
			return b.Runs.Remove(ctx, state) == nil
		})
	})
	return b.next, state
}

func (b *runsBench) script(t *testing.T, script string) runtime.State {
	t.Helper()
	_, state := b.start(t, b.Spec(t), "sh", "-c", script)
	return state
}

func (b *runsBench) eventually(t *testing.T, want string, ok func() bool) {
	t.Helper()
	(&bench{Harness: Harness{StepTimeout: b.StepTimeout}}).eventually(t, want, ok)
}

func (b *runsBench) poll(t *testing.T, r runtime.Runs, state runtime.State) runtime.RunStatus {
	t.Helper()
	s, err := r.Poll(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// log is all that a run has printed.
func (b *runsBench) log(t *testing.T, state runtime.State) string {
	t.Helper()
	text, _, err := b.Runs.Log(state, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (b *runsBench) prints(t *testing.T, state runtime.State, words string) {
	t.Helper()
	b.eventually(t, "printing "+words, func() bool {
		if b.poll(t, b.Runs, state).Ended && !strings.Contains(b.log(t, state), words) {
			t.Fatalf("it ended, and has printed %q", b.log(t, state))
		}
		return strings.Contains(b.log(t, state), words)
	})
}

// ends waits until a run has ended with an exit code.
func (b *runsBench) ends(t *testing.T, state runtime.State, code int) {
	t.Helper()
	b.eventually(t, "ended", func() bool { return b.poll(t, b.Runs, state).Ended })
	for range 2 { // also when it is asked again
		if s := b.poll(t, b.Runs, state); s.ExitCode != code || s.OutOfMemory || len(s.Limits) == 0 || code >= 0 && s.EndedAt.IsZero() {
			t.Errorf("exit code %d, want %d: %+v: %s", s.ExitCode, code, s, b.log(t, state))
		}
	}
}

func (b *runsBench) stop(t *testing.T, state runtime.State) {
	t.Helper()
	if err := b.Runs.Stop(t.Context(), state); err != nil {
		t.Fatal(err)
	}
}

func testExitCodes(t *testing.T, b *runsBench) {
	states := map[int]runtime.State{}
	for code, command := range map[int][]string{
		0:   {"true"},
		139: {"sh", "-c", "kill -SEGV $$"},
		127: {"no-such-command"},
		9:   {"sh", "-c", `[ "$1" = '-x $(HOME) y' ] && exit 9`, "sh", "-x $(HOME) y"},
	} {
		_, states[code] = b.start(t, b.Spec(t), command...)
	}
	for code, state := range states {
		b.ends(t, state, code)
	}
}

func testOutput(t *testing.T, b *runsBench) {
	state := b.script(t, `for i in $(seq 200); do echo "out $i"; echo "err $i" >&2; done; head -c 100000 /dev/zero | tr '\0' x; printf end`)
	b.ends(t, state, 0)
	got := b.log(t, state)
	lines := strings.SplitN(got, "\n", 401)
	if len(lines) != 401 || lines[0] != "out 1" || lines[1] != "err 1" || lines[399] != "err 200" ||
		lines[400] != strings.Repeat("x", 100000)+"end" {
		t.Fatalf("%d lines, %d bytes: %.300q", len(lines), len(got), got)
	}
	size := int64(len(got))
	if text, from, err := b.Runs.Log(state, size-4, 100); err != nil || from != size-4 || string(text) != "xend" {
		t.Errorf("from %d: %q, %v", from, text, err)
	}
	if text, from, err := b.Runs.Log(state, 4, 3); err != nil || from != 4 || string(text) != "1\ne" {
		t.Errorf("from %d: %q, %v", from, text, err)
	}
	if text, from, err := b.Runs.Log(state, size+9, 100); err != nil || from != size || len(text) != 0 {
		t.Errorf("behind its end: from %d: %q, %v", from, text, err)
	}
	if s := b.poll(t, b.Runs, state); s.Printed != size {
		t.Errorf("it has printed %d bytes of %d", s.Printed, size)
	}
}

// However often a run is stopped, it ends by SIGTERM; it is not started again; and its log
// remains until it is removed.
func testStoppedRun(t *testing.T, b *runsBench) {
	id, state := b.start(t, b.Spec(t), "sh", "-c", "echo begun; exec sleep 600")
	b.prints(t, state, "begun")
	b.eventually(t, "ended", func() bool {
		b.stop(t, state)
		return b.poll(t, b.Runs, state).Ended
	})
	b.ends(t, state, 143)
	again, err := b.Runs.Start(t.Context(), id, b.Spec(t), []string{"true"})
	if err != nil || string(again) != string(state) {
		t.Errorf("started again: %s, %v", again, err)
	}
	b.ends(t, again, 143)
	if got := b.log(t, state); got != "begun\n" {
		t.Errorf("it printed %q", got)
	}
	b.eventually(t, "removed", func() bool { return b.Runs.Remove(t.Context(), state) == nil })
	if _, _, err := b.Runs.Log(state, 0, 100); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its log is there, %v", err)
	}
}

func testCleanUp(t *testing.T, b *runsBench) {
	id, state := b.start(t, b.Spec(t), "sh", "-c", "trap 'echo saved; exit 5' TERM; echo begun; while :; do sleep 0.1; done")
	b.prints(t, state, "begun")
	if err := b.Runs.Remove(t.Context(), state); models.KindOf(err) != models.KindConflict {
		t.Errorf("removed while it runs: %v", err)
	}
	listed := func(ended bool) {
		t.Helper()
		all, err := b.Runs.List(t.Context())
		n := 0
		for _, in := range all {
			if in.Workspace == id && in.Ended == ended && string(in.State) == string(state) {
				n++
			}
		}
		if err != nil || n != 1 {
			t.Errorf("listed %d times as ended (%t): %v, %v", n, ended, all, err)
		}
	}
	listed(false)
	b.stop(t, state)
	b.ends(t, state, 5)
	if got := b.log(t, state); got != "begun\nsaved\n" {
		t.Errorf("it printed %q", got)
	}
	listed(true)
}

func testIgnoredStop(t *testing.T, b *runsBench) {
	state := b.script(t, "trap '' TERM; echo begun; while :; do sleep 0.1; done")
	b.prints(t, state, "begun")
	b.stop(t, state)
	if b.PassGrace != nil {
		b.PassGrace()
	}
	b.eventually(t, "ended", func() bool {
		b.stop(t, state)
		return b.poll(t, b.Runs, state).Ended
	})
	b.ends(t, state, 137)
}

func testInterrupted(t *testing.T, b *runsBench) {
	_, state := b.start(t, b.Spec(t), "python3", "-c", `import time; print("begun", flush=True); time.sleep(600)`)
	b.prints(t, state, "begun")
	if sent, err := b.Runs.Signal(t.Context(), state, unix.SIGINT); err != nil || !sent {
		t.Errorf("sent: %t, %v", sent, err)
	}
	b.ends(t, state, 130)
	if sent, err := b.Runs.Signal(t.Context(), state, unix.SIGINT); err != nil || sent {
		t.Errorf("sent to what has ended: %t, %v", sent, err)
	}
}

func testRunEnvironment(t *testing.T, b *runsBench) {
	spec, dir := b.Spec(t), b.Share(t)
	spec.Env = map[string]string{"EXTRA": "given $(HOME)"}
	spec.Mounts = []models.Mount{{Source: dir, Target: "/notebook/data"}}
	_, state := b.start(t, spec, "sh", "-c", `echo "$EXTRA $PWD $USER gpu=$CUDA_VISIBLE_DEVICES token=$JUPYTER_TOKEN"
		touch /notebook/data/made; ls /usr/x`)
	b.ends(t, state, 2)
	_, err := os.Stat(filepath.Join(dir, "made"))
	if got := b.log(t, state); !strings.HasPrefix(got, "given $(HOME) /home/jovyan jovyan gpu= token=\n") || err != nil {
		t.Errorf("it printed %q, %v", got, err)
	}
}

// A command begins in the directory of its run. Where there is none, it does not begin, and the
// output says why.
func testRunDirectory(t *testing.T, b *runsBench) {
	for dir, want := range map[string]struct {
		code int
		log  string
	}{
		"/notebook/data/a $(HOME) b": {0, "/notebook/data/a $(HOME) b\n"},
		"/notebook/data/none":        {126, "weir: directory: /notebook/data/none does not exist in this run, or cannot be entered\n"},
	} {
		spec := b.Spec(t)
		spec.Directory = dir
		spec.Mounts = []models.Mount{{Source: b.Share(t), Target: "/notebook/data"}}
		if err := os.MkdirAll(filepath.Join(spec.Mounts[0].Source, "a $(HOME) b"), 0o755); err != nil {
			t.Fatal(err)
		}
		_, state := b.start(t, spec, "pwd")
		b.ends(t, state, want.code)
		if got := b.log(t, state); got != want.log {
			t.Errorf("in %s it printed %q", dir, got)
		}
	}
}

// A later value has the output of what the one before it has started, and its exit code.
func testAdoptedRun(t *testing.T, b *runsBench) {
	spec, gate := b.Spec(t), b.Share(t)
	spec.Mounts = []models.Mount{{Source: gate, Target: "/notebook/gate"}}
	_, state := b.start(t, spec, "sh", "-c", "seq 1000; echo begun; until [ -e /notebook/gate/go ]; do sleep 0.1; done; echo done; exit 9")
	b.prints(t, state, "begun\n")
	before := b.log(t, state)
	b.Runs = b.Reopen(t)
	if b.poll(t, b.Runs, state).Ended {
		t.Error("it has ended")
	}
	if err := os.WriteFile(filepath.Join(gate, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	b.ends(t, state, 9)
	if got := b.log(t, state); got != before+"done\n" {
		t.Errorf("it printed %q", got)
	}
}
