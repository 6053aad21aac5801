package storagetest

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

const token = "c0ffee11111111111111111111"

// Notebooks runs workspaces of members in a runtime.
type Notebooks struct {
	*World
	Runtime  runtime.Runtime
	Patience time.Duration // for one step

	count   int64
	states  map[string]runtime.State       // by member
	kernels map[string]*runtimetest.Kernel // by member
}

// Start starts a workspace of a member as the reconciler would, and stops it with the
// test.
func (b *Notebooks) Start(t *testing.T, who string, command ...string) runtime.State {
	t.Helper()
	u := b.DirectoryUser(t, who)
	mounts, _, err := b.Dirs.EnsureMounts(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	uid, gid, err := b.Dirs.IDs(u)
	if err != nil {
		t.Fatal(err)
	}
	b.count++
	spec := runtime.Spec{Workspace: b.count, Generation: 1, Project: u.ProjectID, Member: u.MemberID, UID: uid, GID: gid, Token: token,
		Mounts: mounts, Command: command}
	var state runtime.State
	b.eventually(t, func() (bool, string) {
		if state, err = b.Runtime.Start(t.Context(), spec); err != nil && models.KindOf(err) != models.KindUnavailable {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
	t.Cleanup(func() { b.stop(t, state) })
	return state
}

func (b *Notebooks) stop(t *testing.T, state runtime.State) {
	b.Await(t, state, func(s runtime.Status) bool {
		if err := b.Runtime.Stop(context.Background(), state); err != nil {
			t.Fatal(err)
		}
		return s.Phase == runtime.PhaseExited
	})
}

// Await polls until ok.
func (b *Notebooks) Await(t *testing.T, state runtime.State, ok func(runtime.Status) bool) (s runtime.Status) {
	t.Helper()
	b.eventually(t, func() (_ bool, last string) {
		var err error
		if s, err = b.Runtime.Poll(context.Background(), state); err != nil {
			t.Fatal(err)
		}
		return ok(s), fmt.Sprintf("%s\n%s", s.Message, s.LogTail)
	})
	return s
}

func (b *Notebooks) eventually(t *testing.T, try func() (ok bool, last string)) {
	t.Helper()
	deadline := time.Now().Add(b.Patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, last := try()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", b.Patience, last)
		}
		<-tick.C
	}
}

// Script runs a script in a workspace of a member to its end.
func (b *Notebooks) Script(t *testing.T, who, script string) string {
	t.Helper()
	s := b.Await(t, b.Start(t, who, "bash", "-c", script), func(s runtime.Status) bool { return s.Phase == runtime.PhaseExited })
	if s.ExitCode != 0 {
		t.Fatalf("%s: exit code %d\n%s", who, s.ExitCode, s.LogTail)
	}
	return s.LogTail
}

// StartKernels starts Jupyter with a kernel for ann and for ben.
func (b *Notebooks) StartKernels(t *testing.T) {
	t.Helper()
	b.states = map[string]runtime.State{"ann": nil, "ben": nil}
	for who := range b.states {
		b.states[who] = b.Start(t, who, "jupyter-notebook")
	}
	b.kernels = map[string]*runtimetest.Kernel{}
	for who, state := range b.states {
		s := b.Await(t, state, func(s runtime.Status) bool { return s.Phase == runtime.PhaseRunning })
		if code, body := runtimetest.Call(t, s.Endpoint, token, http.MethodPost, "/api/kernels", "{}"); code != http.StatusCreated {
			t.Fatalf("starting a kernel: %d %s", code, body)
		}
		b.kernels[who] = runtimetest.Connect(t, s.Endpoint, token)
	}
}

// RefreshKernels gives the workspaces with kernels the mounts that the rules now need, as
// the reconciler would.
func (b *Notebooks) RefreshKernels(t *testing.T) {
	t.Helper()
	for who, state := range b.states {
		mounts, _, err := b.Dirs.EnsureMounts(t.Context(), b.DirectoryUser(t, who))
		if err == nil {
			err = b.Runtime.(runtime.Refresher).Refresh(t.Context(), state, mounts)
		}
		if err != nil {
			t.Fatalf("%s: %v", who, err)
		}
	}
}

// programs carry operations out in a kernel.
var programs = map[Op]string{
	List:     `if "file" not in os.listdir(path): raise FileNotFoundError`,
	Read:     `open(path).read()`,
	Download: `import shutil; shutil.copy(path, "/tmp/downloaded")`,
	Write:    `f = open(path, "r+"); f.write("by a notebook"); f.close()`,
	Create:   `open(path, "x").close()`,
	Mkdir:    `os.mkdir(path)`,
	Remove:   `os.rmdir(path) if os.path.isdir(path) else os.remove(path)`,
}

// Try carries an operation out in the kernel of a member: see [Medium].
func (b *Notebooks) Try(t *testing.T, who string, op Op, path string) bool {
	t.Helper()
	out := b.kernels[who].Execute(t.Context(), t, fmt.Sprintf(`
import os
path = %q
try:
    %s
    print("done")
except OSError as e:
    print("refused", e)`, path, programs[op]))
	if !strings.HasPrefix(out, "done") && !strings.HasPrefix(out, "refused") {
		t.Fatalf("%s %s %s: %s", who, op, path, out)
	}
	return strings.HasPrefix(out, "done")
}
