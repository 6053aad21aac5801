package local

import (
	"bytes"
	_ "embed"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"weir/workspaces/runtime"
)

//go:embed testdata/attack.py
var attackScript string

// A hostile notebook tries all that it could reach. What it gets must be its own: every line
// of its table that starts with “got” is a breach, except for the expected ones.
func TestAttackFromInside(t *testing.T) {
	r := open(t, config(t.TempDir()))
	here, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	accept(here, greet)
	abstract, err := net.Listen("unix", fmt.Sprintf("@weir-attack-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	_, port, _ := net.SplitHostPort(here.Addr().String())
	other := start(t, r, scriptSpec(2, "exec sleep 600"))
	in, err := r.parseState(other)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other workspace runs", func() bool { return in.sandboxStatus().Child != 0 })
	spec := scriptSpec(1, "exec python3 -c \"$ATTACK\"")
	spec.Memory, spec.CPU = 256, 1000
	spec.Env = map[string]string{"ATTACK": attackScript, "PORT": port, "ABSTRACT": abstract.Addr().String()[1:],
		"OTHER_PID": fmt.Sprint(in.sandboxStatus().Child), "OTHER_DIR": in.dir, "HOST_ADDRESSES": strings.Join(hostAddresses(t), " ")}
	state := start(t, r, spec)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s", poll(t, r, state).LogTail)
		}
	})
	s := reach(t, r, state, runtime.PhaseExited)
	t.Logf("%s", s.LogTail)
	if s.ExitCode != 0 || !strings.HasSuffix(s.LogTail, "done\n") {
		t.Fatalf("the script ended with %d: %s", s.ExitCode, s.Message)
	}
	shared := map[string]bool{"own": true} // expected: what is the workspace's
	for _, l := range s.Limits {
		shared[l.Resource] = !l.Enforced
	}
	for line := range strings.Lines(s.LogTail) {
		what, breach := strings.CutPrefix(line, "got ")
		kind, _, _ := strings.Cut(what, " ")
		if breach && !shared[kind] {
			t.Errorf("a breach: %s", what)
		}
	}
	if in.exited() {
		t.Error("the other workspace ended")
	}
	if b, _ := os.ReadFile(in.logFile()); bytes.Contains(b, []byte("attacked")) {
		t.Error("the log of the other workspace was written")
	}
}

func hostAddresses(t *testing.T) (all []string) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		all = append(all, a.(*net.IPNet).IP.String())
	}
	return all
}
