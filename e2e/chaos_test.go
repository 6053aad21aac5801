package e2e

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"weir/models/store"
)

// chaosFor is how long a server is disturbed: WEIR_CHAOS=10m for the whole of it.
func chaosFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("WEIR_CHAOS")
	if text == "" {
		return 30 * time.Second
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("WEIR_CHAOS=%q is not a duration", text)
	}
	return length
}

// lull is how long a disturbance stays, and the time until the next one.
const lull = 2 * time.Second

// A server whose disk is full and freed, whose descriptors are exhausted, whose database is locked, whose clock
// jumps and that is killed, while members launch and stop: what was answered is there in the end, what nobody
// has stopped runs by the same processes, and the rules hold all the time.
func TestChaos(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a disk to fill")
	}
	length := chaosFor(t)
	s := newServer(t, options{gpus: "h100:8", disk: "256m", files: 512})
	env := s.standIn(t)
	team := s.team("bystanders", share, "bob")
	bob := team.Members[0]
	bystander := bob.await(bob.launch(team.Project, env, "bystander"), "running", starting)
	processes := s.sandboxes()
	l := newLoad(s, s, env)
	var work sync.WaitGroup
	for i, m := range l.team.Members {
		work.Go(func() { l.works(i, m) })
		work.Go(func() { l.follows(i, m) })
	}
	work.Go(l.looks)
	rounds := 0
	for begin := time.Now(); time.Since(begin) < length; rounds++ {
		begin := time.Now()
		s.fillsDisk()
		l.full = append(l.full, interval{begin, time.Now()})
		for _, disturb := range []func(*server){(*server).losesDescriptors, (*server).isLocked, (*server).jumpsAhead, (*server).jumpsBack} {
			time.Sleep(lull)
			disturb(s)
		}
	}
	close(l.over)
	work.Wait()

	t.Logf("%s, each disturbance %d times: %s", length, rounds, l.figures())
	if now := bob.workspace(bystander.ID); now.State != "running" {
		t.Errorf("the bystander is %s: %s", now.State, now.Reason)
	}
	for k, pids := range processes {
		if now := s.sandboxes()[k]; !slices.Equal(now, pids) {
			t.Errorf("the bystander's processes were %v and are %v", pids, now)
		}
	}
	settle(t, l)
	l.check(t)
	s.holdsRules(0)
}

// fillsDisk kills the server while its disk is full, starts it so, and frees the disk.
func (s *server) fillsDisk() {
	s.t.Helper()
	large := filepath.Join(s.dir, "large")
	fill(s.t, large)
	time.Sleep(lull)
	s.kill()
	s.start()
	if err := os.Remove(large); err != nil {
		s.t.Fatal(err)
	}
}

// losesDescriptors opens more connections than the server may have descriptors, from one address.
func (s *server) losesDescriptors() {
	flood := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	for range 2 * s.opts.files {
		conn, err := flood.DialContext(s.t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(s.port))
		if err != nil {
			break // the backlog is full
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Unfinished: ") // it may be closed already
	}
	time.Sleep(lull)
}

// isLocked keeps the database of the server from being written.
func (s *server) isLocked() {
	s.t.Helper()
	s.books()
	err := s.store.InTx(s.t.Context(), func(q *store.Queries) error {
		err := q.LockPool()
		time.Sleep(lull)
		return err
	})
	if err != nil {
		s.t.Error(err)
	}
}

// jumpsAhead kills the server and sets its clock ahead.
func (s *server) jumpsAhead() {
	s.kill()
	s.start("WEIR_CLOCK_OFFSET=10m")
}

// jumpsBack kills the server and sets its clock back to the time.
func (s *server) jumpsBack() {
	s.kill()
	s.start()
}
