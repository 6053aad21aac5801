package local

import (
	"testing"

	"golang.org/x/sys/unix"

	"weir/workspaces/runtime"
)

// A server that is out of descriptors cannot tell what runs: it takes nothing for gone,
// starts nothing a second time, and ends nothing.
func TestOutOfDescriptors(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "exec sleep 600"))
	in, err := r.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sandbox stands", func() bool { return in.sandboxStatus().Child != 0 })
	later := open(t, r.config) // has looked at nothing yet

	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	status, polled := later.Poll(t.Context(), state)
	all, listed := later.List(t.Context())
	_, started := later.Start(t.Context(), scriptSpec(1, "exec sleep 600"))
	exited := in.exited()
	in.kill() // kills nothing that it cannot identify
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}

	if polled == nil && status.Phase == runtime.PhaseExited || exited {
		t.Error("the notebook is taken for gone")
	}
	if listed == nil && len(all) != 1 {
		t.Errorf("%d notebooks are listed", len(all))
	}
	if started == nil {
		t.Error("a start that could not look at the first one succeeded")
	}
	if !in.outerAlive() || !in.innerAlive(in.sandboxStatus()) {
		t.Error("the notebook has ended")
	}
	if status, err := later.Poll(t.Context(), state); err != nil || status.Phase == runtime.PhaseExited {
		t.Errorf("afterwards: %v, %v", status, err)
	}
}
