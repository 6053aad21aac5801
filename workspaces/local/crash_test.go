package local

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// The test binary is its own other server: it starts one workspace as the
// variables say, prints where it stands, and waits to be killed.
const (
	serverDir   = "WEIR_TEST_SERVER_DIR"
	serverStops = "WEIR_TEST_SERVER_STOPS"
	serverRuns  = "WEIR_TEST_SERVER_RUNS" // a run instead, of the script in this directory, which it sees as /gate
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		server(dir)
	}
	os.Exit(m.Run())
}

func server(dir string) {
	if gate := os.Getenv(serverRuns); gate != "" {
		serverOfRuns(dir, gate)
	}
	r, err := New(config(dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	if os.Getenv(serverStops) != "" {
		r.beforeOpen = func() {
			fmt.Println("in_use")
			select {}
		}
	}
	if _, err := r.Start(r.ctx, scriptSpec(1, "touch /run/weir/ran; exec sleep 600")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

func serverOfRuns(dir, gate string) {
	r, err := NewRuns(config(dir))
	if err == nil {
		spec := scriptSpec(7, "")
		spec.Mounts = []models.Mount{{Source: gate, Target: "/gate"}}
		_, err = r.Start(context.Background(), 1, spec, []string{"sh", "/gate/script"})
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("started")
	select {}
}

// killedServer runs such a server until it says what is expected, and kills it.
func killedServer(t *testing.T, dir, expect string, env ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serverDir+"="+dir), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	searchAgain() // the next server is another process
	if line != expect+"\n" {
		t.Fatalf("the server said %q", line)
	}
}

func TestServerKilledBeforeGo(t *testing.T) {
	dir := t.TempDir()
	killedServer(t, dir, "in_use", serverStops+"=1")
	r := open(t, config(dir))
	in, err := r.load(key{1, 1})
	if err != nil {
		t.Fatalf("nothing was written down: %v", err)
	}
	eventually(t, "the in use process is gone", in.exited)
	if exists(filepath.Join(in.shared(), "ran")) {
		t.Error("it ran")
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("listed: %v, %v", all, err)
	}
	state := start(t, r, scriptSpec(1, "exec sleep 600"))
	if s := poll(t, r, state); s.Phase == runtime.PhaseExited {
		t.Errorf("it cannot be started again: %+v", s)
	}
}

func TestServerKilledLater(t *testing.T) {
	dir := t.TempDir()
	killedServer(t, dir, "started")
	r := open(t, config(dir))
	all, err := r.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Workspace != 1 || all[0].Generation != 1 {
		t.Fatalf("listed: %v, %v", all, err)
	}
	t.Cleanup(func() { stop(t, r, all[0].State) })
	if s := poll(t, r, all[0].State); s.Phase != runtime.PhaseStarting {
		t.Errorf("it is %+v", s)
	}
	in, _ := r.parseState(all[0].State)
	eventually(t, "the sandbox stands", func() bool { return in.sandboxStatus().Child != 0 })
	awaken(t, r, all[0].State, in.kill) // although it was no child of this process
}

// awaken ends a workspace, and polls only when told of a change, until it has
// ended.
func awaken(t *testing.T, r *Runtime, state runtime.State, end func()) runtime.Status {
	t.Helper()
	changed := make(chan int64, 100)
	r.OnChange(func(workspace int64) { changed <- workspace })
	end()
	for deadline := time.After(patience); ; {
		select {
		case <-changed:
		case <-deadline:
			t.Fatal("nothing was heard of the end")
		}
		if s := poll(t, r, state); s.Phase == runtime.PhaseExited {
			return s
		}
	}
}

// notebookPID is the outer number of the process that is the notebook.
func notebookPID(t *testing.T, in *instance) int {
	t.Helper()
	var pids []int
	eventually(t, "the notebook's process", func() bool {
		pids = childrenOf(in.sandboxStatus().Child)
		return len(pids) > 0
	})
	return pids[0]
}

func TestKilledNotebook(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, notebookSpec(1))
	reach(t, r, state, runtime.PhaseRunning)
	in, _ := r.parseState(state)
	pid := notebookPID(t, in)
	s := awaken(t, r, state, func() { syscall.Kill(pid, syscall.SIGKILL) })
	if s.Phase != runtime.PhaseExited || s.ExitCode != 137 || s.Message.String() != "Jupyter was killed by signal 9" {
		t.Errorf("it says %+v", s)
	}
	if _, err := readProcess(in.PID); err == nil {
		t.Error("a zombie is left")
	}
}

// What a notebook left in the background ends with it.
func TestNothingOutlivesTheNotebook(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "(trap '' TERM HUP; exec setsid sleep 600) & exit 4"))
	s := reach(t, r, state, runtime.PhaseExited)
	if s.ExitCode != 4 {
		t.Errorf("it says %+v", s)
	}
	in, _ := r.parseState(state)
	if left, err := markedProcesses(in.mark()); err != nil || len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestKilledBubblewrap(t *testing.T) {
	c := config(t.TempDir())
	moving := &clock{now: time.Unix(1_700_000_000, 0)}
	c.Clock = moving.Now
	r := open(t, c)
	state := start(t, r, scriptSpec(1, "exec sleep 600"))
	in, _ := r.parseState(state)
	notebook := notebookPID(t, in)
	syscall.Kill(in.PID, syscall.SIGKILL)
	eventually(t, "the outer process is gone", func() bool { return !in.outerAlive() })
	all, err := r.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("listed: %v, %v", all, err)
	}
	eventually(t, "nothing is left", func() bool {
		if err := r.Stop(t.Context(), all[0].State); err != nil {
			t.Fatal(err)
		}
		moving.pass(stopGrace)
		return !exists(in.dir)
	})
	if p, err := readProcess(notebook); err == nil && !p.dead {
		t.Error("the notebook lives on")
	}
}

func TestClosedDirectoryIsRemoved(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "mkdir -p /run/weir/a/b; chmod 0 /run/weir/a; exit 0"))
	reach(t, r, state, runtime.PhaseExited)
	if err := r.Stop(t.Context(), state); err != nil {
		t.Error(err)
	}
	if in, _ := r.parseState(state); exists(in.dir) {
		t.Error("its directory is left")
	}
}

// Even without its directory a sandbox is found and stopped.
func TestLostDirectory(t *testing.T) {
	c := config(t.TempDir())
	first := open(t, c)
	state := start(t, first, scriptSpec(1, "exec sleep 600"))
	in, _ := first.parseState(state)
	notebook := notebookPID(t, in)
	first.Close() // it would see to it at once
	r := open(t, c)
	if err := os.RemoveAll(in.dir); err != nil {
		t.Fatal(err)
	}
	syscall.Kill(in.PID, syscall.SIGKILL)
	eventually(t, "the outer process is gone", func() bool { return !in.outerAlive() })
	all, err := r.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Workspace != 1 {
		t.Fatalf("listed: %v, %v", all, err)
	}
	if err := r.Stop(t.Context(), all[0].State); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the notebook is gone", func() bool {
		p, err := readProcess(notebook)
		return err != nil || p.dead
	})
	in.Cgroup.remove()
}

// A user cannot make the portal believe in workspaces that do not exist.
func TestForgedMarkerIsNotListed(t *testing.T) {
	r := open(t, config(t.TempDir()))
	forged := r.path(key{99, 1})
	state := start(t, r, scriptSpec(1, "echo ready; exec sh -c 'sleep 600; true' --setenv "+markerName+" "+forged))
	eventually(t, "ready", func() bool { return poll(t, r, state).LogTail != "" })
	eventually(t, "the forged marker", func() bool { return strings.Contains(everyCommandLine(t), markerName+"\x00"+forged) })
	all, err := r.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Workspace != 1 {
		t.Errorf("listed: %v, %v", all, err)
	}
}

func TestNumberOfAnotherProcess(t *testing.T) {
	r := open(t, config(t.TempDir()))
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for name, rec := range map[string]record{
		"another start": {PID: self.pid, Started: self.started + 1, Boot: bootID()},
		"another boot":  {PID: self.pid, Started: self.started, Boot: "before"},
	} {
		rec.Workspace, rec.Generation = 1, 1
		in := &instance{record: rec}
		if s := poll(t, r, in.state()); s.Phase != runtime.PhaseExited {
			t.Errorf("%s: it is %+v", name, s)
		}
		if err := r.Stop(t.Context(), in.state()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
