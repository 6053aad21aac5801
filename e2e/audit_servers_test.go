//go:build cluster

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weir/tools/cluster"
)

// tickerIn adds the environment of an audit in a cluster.
func (s *server) tickerIn(k *cluster.Cluster) int64 {
	s.t.Helper()
	var env id
	s.api(s.admin()).must("POST", "/environments", map[string]any{"name": "Ticker", "language": "none", "language_version": "1",
		"image": k.Image, "command": []string{"/usr/bin/python3", "-c", ticker, "pod"}}, &env)
	return env.ID
}

// pause stops the process of a server, and lets it go on. When it returns, no thread answers any more.
func (s *server) pause(stop bool) {
	s.t.Helper()
	signal := map[bool]syscall.Signal{true: syscall.SIGSTOP, false: syscall.SIGCONT}[stop]
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.t.Fatal(err)
	}
	if !stop {
		return
	}
	eventually(s.t, gone, func() string {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			return fmt.Sprint("no threads: ", err)
		}
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if _, state, _ := strings.Cut(string(text), ") "); err == nil && !strings.HasPrefix(state, "T") {
				return string(text)
			}
		}
		return ""
	})
}

// A right that is taken away at one of two servers is gone at both when the call returns, also if the other
// one hangs then and goes on later, or is killed and starts again. WEIR_AUDIT=all tries each revocation in
// each of these ways, else one.
func TestAuditOfServers(t *testing.T) {
	k, _ := newCluster(t)
	one, other := replicas(t, k)
	a := newAuditor(t, one.tickerIn(k), one, other)
	ways := []struct {
		name   string
		during func(against *server, revoke func())
	}{
		{"both servers run", func(_ *server, revoke func()) { revoke() }},
		{"the other server hangs", func(against *server, revoke func()) {
			against.pause(true)
			revoke()
			against.pause(false)
		}},
		{"the other server is killed", func(against *server, revoke func()) {
			against.kill()
			revoke()
			against.start()
		}},
	}
	n := 0
	for i, way := range ways {
		t.Logf("%s; the first server came to lead %d times, the second %d", way.name, one.leads(), other.leads())
		tried := revocations
		if os.Getenv("WEIR_AUDIT") != "all" {
			tried = revocations[9+i : 10+i]
		}
		for some := range slices.Chunk(tried, auditedAtOnce) {
			at, against := one, other
			if n++; n%2 == 0 {
				at, against = other, one
			}
			a.audit(some, at, func(revoke func()) { way.during(against, revoke) })
		}
	}
}
