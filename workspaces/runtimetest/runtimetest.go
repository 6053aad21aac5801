package runtimetest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/runtime"
)

// Harness is an implementation under test.
type Harness struct {
	Runtime runtime.Runtime

	// Reopen returns another value over the same machine or cluster, as a
	// restarted server would have.
	Reopen func(t *testing.T) runtime.Runtime

	// Notebook is a spec that starts real Jupyter. The suite sets the ids,
	// the token and the mounts.
	Notebook func(t *testing.T) runtime.Spec

	// Script is a spec that runs a shell script in place of Jupyter.
	Script func(t *testing.T, script string) runtime.Spec

	// Share makes a directory that can be a mount's source.
	Share func(t *testing.T) string

	// StepTimeout is how long the slowest single step may take.
	StepTimeout time.Duration

	// PassGrace advances the runtime's clock past the grace period of Stop. Nil
	// if the suite has to wait.
	PassGrace func()
}

const token = "0f3a5c79b1d2e4f6a8c0"

// Run tests an implementation of runtime.Runtime. Every test has its own Harness.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *bench)
	}{
		{"notebook answers with its token only", testNotebook},
		{"activity is work", testActivity},
		{"mounts are writable as they say", testMounts},
		{"start twice is one", testStartTwice},
		{"stop ends, twice", testStop},
		{"stop ends what does not listen", testStubborn},
		{"exit is reported", testExit},
		{"list shows what runs", testList},
		{"another value adopts", testAdoption},
		{"generations are apart", testGenerations},
		{"a state of nothing", testUnknown},
		{"a spec that cannot run", testBadSpec},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, &bench{Harness: newHarness(t), ctx: t.Context()})
		})
	}
}

// bench is a Harness with helpers.
type bench struct {
	Harness
	ctx context.Context
}

// start launches a workspace, and stops it after the test.
func (b *bench) start(t *testing.T, spec runtime.Spec) runtime.State {
	t.Helper()
	state, err := b.Runtime.Start(b.ctx, spec)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		b.ctx = context.Background() // the test's own has ended
		b.stop(t, b.Runtime, state)
	})
	return state
}

// stop calls Stop until the workspace is gone.
func (b *bench) stop(t *testing.T, r runtime.Runtime, state runtime.State) runtime.Status {
	t.Helper()
	return b.until(t, r, state, "exited", func(s runtime.Status) bool {
		if err := r.Stop(b.ctx, state); err != nil {
			t.Fatalf("Stop: %v", err)
		}
		return s.Phase == runtime.PhaseExited
	})
}

// until polls until ok is true.
func (b *bench) until(t *testing.T, r runtime.Runtime, state runtime.State, want string, ok func(runtime.Status) bool) runtime.Status {
	t.Helper()
	var s runtime.Status
	b.eventually(t, want, func() bool {
		var err error
		if s, err = r.Poll(b.ctx, state); err != nil {
			t.Fatalf("Poll: %v", err)
		}
		return ok(s)
	})
	return s
}

// eventually polls until ok is true.
func (b *bench) eventually(t *testing.T, want string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(b.StepTimeout)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not %s after %s", want, b.StepTimeout)
		}
		<-tick.C
	}
}

func (b *bench) running(t *testing.T, state runtime.State) runtime.Status {
	t.Helper()
	last := 0
	return b.until(t, b.Runtime, state, "running", func(s runtime.Status) bool {
		if s.Phase == runtime.PhaseExited {
			t.Fatalf("ended instead of running: %s (code %d)\n%s", s.Message, s.ExitCode, s.LogTail)
		}
		if s.Progress < last || s.Progress > 100 || s.Message.Empty() {
			t.Fatalf("progress went from %d to %d, message %q", last, s.Progress, s.Message)
		}
		last = s.Progress
		return s.Phase == runtime.PhaseRunning
	})
}

func (b *bench) exited(t *testing.T, state runtime.State) runtime.Status {
	t.Helper()
	return b.until(t, b.Runtime, state, "exited", func(s runtime.Status) bool {
		return s.Phase == runtime.PhaseExited
	})
}

// list returns the workspace and generation of all that runs.
func (b *bench) list(t *testing.T, r runtime.Runtime) map[[2]int64]runtime.State {
	t.Helper()
	instances, err := r.List(b.ctx)
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	all := map[[2]int64]runtime.State{}
	for _, in := range instances {
		all[[2]int64{in.Workspace, in.Generation}] = in.State
	}
	if len(all) != len(instances) {
		t.Fatalf("List repeats itself: %v", instances)
	}
	return all
}

func (b *bench) notebook(t *testing.T, id int64) runtime.Spec {
	spec := b.Notebook(t)
	spec.Workspace, spec.Generation, spec.Token = id, 1, token
	return spec
}

func (b *bench) script(t *testing.T, id int64, script string) runtime.Spec {
	spec := b.Script(t, script)
	spec.Workspace, spec.Generation, spec.Token = id, 1, token
	return spec
}

// Call sends an HTTP request to a notebook; an empty token sends none.
func Call(t *testing.T, at models.Endpoint, token, method, path, body string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 30 * time.Second, Transport: transport(at)}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://ws-1.localhost:8000"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, string(answer)
}

func transport(at models.Endpoint) *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, at.Network, at.Address)
	}}
}

// textFile is the body by which Jupyter's contents API saves a file.
func textFile(content string) string {
	return fmt.Sprintf(`{"type":"file","format":"text","content":%q}`, content)
}
