package local

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

func openRuns(t *testing.T, c Config) *Runs {
	t.Helper()
	r, err := NewRuns(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// startRun runs a script and sees to it that it ends with the test.
func startRun(t *testing.T, r *Runs, script string) runtime.State {
	t.Helper()
	state, err := r.Start(t.Context(), 1, scriptSpec(7, ""), []string{"sh", "-c", script})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r.runtime, state) })
	return state
}

func pollRun(t *testing.T, r *Runs, state runtime.State) runtime.RunStatus {
	t.Helper()
	s, err := r.Poll(t.Context(), state)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// endOf waits until a run has ended, and returns its exit code.
func endOf(t *testing.T, r *Runs, state runtime.State) int {
	t.Helper()
	eventually(t, "the run has ended", func() bool { return pollRun(t, r, state).Ended })
	return pollRun(t, r, state).ExitCode
}

func logOf(t *testing.T, r *Runs, state runtime.State) string {
	t.Helper()
	b, _, err := r.Log(state, 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// prints waits until a run has printed a text.
func prints(t *testing.T, r *Runs, state runtime.State, text string) {
	t.Helper()
	eventually(t, "it prints "+text, func() bool { return strings.Contains(logOf(t, r, state), text) })
}

func TestConformanceOfRuns(t *testing.T) {
	c, time := config(t.TempDir()), &clock{now: time.Unix(1_700_000_000, 0)}
	c.Clock = time.Now
	runtimetest.RunRuns(t, runtimetest.RunsHarness{
		Runs:        openRuns(t, c),
		Reopen:      func(t *testing.T) runtime.Runs { return openRuns(t, c) },
		Spec:        func(*testing.T) runtime.Spec { return scriptSpec(7, "") },
		Share:       share,
		StepTimeout: patience,
		PassGrace:   func() { time.pass(stopGrace) },
	})
}

// A run has the host name, the variables and the directories of its workspace and the GPUs
// of its own share, and no secret of the notebook.
func TestEnvironmentOfARun(t *testing.T) {
	dir := share(t)
	r := openRuns(t, config(t.TempDir()))
	spec := scriptSpec(7, "")
	spec.Env, spec.CPU = map[string]string{"EXTRA": "given", "OMP_NUM_THREADS": "9"}, 1500
	spec.Mounts = []models.Mount{{Source: dir, Target: "/notebook/data"}}
	spec.GPUs = []runtime.GPU{{UUID: "GPU-a", Cores: 50, MemoryMiB: 4096, Simulated: true, Enforcement: "advisory"}}
	state, err := r.Start(t.Context(), 1, spec, []string{"sh", "-c",
		`echo "$(hostname) $EXTRA $PWD $(id -un) token=$JUPYTER_TOKEN threads=$OPENBLAS_NUM_THREADS,$OMP_NUM_THREADS"; env | grep GPU-a; touch /notebook/data/made; ls /usr/x /etc/shadow`})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r.runtime, state) })
	code, out := endOf(t, r, state), logOf(t, r, state)
	if code != 2 || !strings.Contains(out, "ws-7 given /home/jovyan jovyan token= threads=2,9\n") || !strings.Contains(out, "=GPU-a\n") || !exists(filepath.Join(dir, "made")) {
		t.Errorf("%d: %s", code, out)
	}
}

// leftRun returns Runs over the directory of a killed server, and the run of a script that
// it has left. The script sees gate as /gate.
func leftRun(t *testing.T, c Config, gate, script string) (*Runs, runtime.State) {
	t.Helper()
	writeFileIn(t, gate, "script", script)
	killedServer(t, c.Dir, "started", serverRuns+"="+gate)
	r := openRuns(t, c)
	all, err := r.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Workspace != 1 {
		t.Fatalf("listed: %v, %v", all, err)
	}
	t.Cleanup(func() { stop(t, r.runtime, all[0].State) })
	return r, all[0].State
}

func writeFileIn(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A run outlives a killed server, and its exit code is known to the next one, whether it
// ends before or after that adopts it.
func TestRunOutlivesItsServer(t *testing.T) {
	for _, adopted := range []bool{false, true} {
		gate := share(t)
		r, state := leftRun(t, config(t.TempDir()), gate, "until [ -e /gate/go ]; do sleep 0.1; done; echo released; exit 3")
		if adopted && pollRun(t, r, state).Ended {
			t.Error("it ended with its server")
		}
		writeFileIn(t, gate, "go", "")
		if in, err := r.runtime.parseState(state); err != nil {
			t.Error(err)
		} else if !adopted {
			eventually(t, "it has ended", in.exited)
		}
		if code := endOf(t, r, state); code != 3 || logOf(t, r, state) != "released\n" {
			t.Errorf("adopted %t: %d: %s", adopted, code, logOf(t, r, state))
		}
	}
}

// The CPU time of a run that has ended is that of all its processes, the ended ones too.
func TestCPUTimeOfARun(t *testing.T) {
	r := openRuns(t, config(t.TempDir()))
	state := startRun(t, r, "(i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; times); times")
	endOf(t, r, state)
	in, err := r.runtime.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	var minutes int
	var seconds float64 // of the inner shell, as it says itself
	if _, err := fmt.Sscanf(logOf(t, r, state), "%dm%fs", &minutes, &seconds); err != nil || seconds == 0 {
		t.Fatalf("%q: %v", logOf(t, r, state), err)
	}
	used, counted := pollRun(t, r, state).CPU.Seconds(), len(in.Cgroup) > 0
	if counted != (used > 0) || counted && used < seconds {
		t.Errorf("%v s, of which a shell that has ended has used %v", used, seconds)
	}
}

// A stop of an adopted run has the same exit codes.
func TestAdoptedRunIsStopped(t *testing.T) {
	for script, want := range map[string]int{
		"echo begun; exec sleep 600":                            143,
		"trap '' TERM; echo begun; while :; do sleep 0.1; done": 137,
	} {
		c, time := config(t.TempDir()), &clock{now: time.Unix(1_700_000_000, 0)}
		c.Clock = time.Now
		r, state := leftRun(t, c, share(t), script)
		prints(t, r, state, "begun")
		if err := r.Stop(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if want == 137 {
			time.pass(stopGrace)
		}
		eventually(t, "the run has ended", func() bool { return r.Stop(t.Context(), state) == nil && pollRun(t, r, state).Ended })
		if code := endOf(t, r, state); code != want {
			t.Errorf("%d, not %d", code, want)
		}
	}
}

// The log of a run is read by offsets, which remain valid when its beginning is freed.
func TestLogOfARun(t *testing.T) {
	r := openRuns(t, config(t.TempDir()))
	state := startRun(t, r, "head -c 80000000 /dev/zero | tr '\\0' x; printf end")
	endOf(t, r, state)
	const size = 80_000_003
	b, from, err := r.Log(state, size-4, 100)
	if err != nil || from != size-4 || string(b) != "xend" {
		t.Errorf("from %d: %q, %v", from, b, err)
	}
	b, from, err = r.Log(state, 5, 100)
	if err != nil || from < size-runLogLimit || !bytes.Equal(b, bytes.Repeat([]byte("x"), 100)) {
		t.Errorf("from %d: %q, %v", from, b, err)
	}
	if b, from, err = r.Log(state, size+9, 100); err != nil || from != size || len(b) != 0 {
		t.Errorf("behind its end: from %d: %q, %v", from, b, err)
	}
}

// A run has the program weir, and what it writes to its own directory can be read: whatever it
// puts there, only a file of its own is.
func TestFileOfARun(t *testing.T) {
	c := config(t.TempDir())
	c.Program = "/usr/bin/env"
	r := openRuns(t, c)
	state := startRun(t, r, `cd /run/weir; echo one > file; ln -s file link; ln file twice; mkfifo fifo; mkdir directory; head -c 100 /dev/zero > large
		cp file only; command -v weir; weir true && echo "to $WEIR_GRAPH_JOURNAL"`)
	if code, out := endOf(t, r, state), logOf(t, r, state); code != 0 || out != "/etc/weir/bin/weir\nto /run/weir/graph.journal\n" {
		t.Errorf("%d: %s", code, out)
	}
	if b, err := r.File(state, "only", 10); err != nil || string(b) != "one\n" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{"file", "link", "fifo", "directory", "large", "none"} {
		if b, err := r.File(state, name, 10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
