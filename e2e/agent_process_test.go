package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// machine is one that lends GPUs, as far as a test can make one: an identity,
// a state directory, and the agent that runs there, through all its restarts.
type machine struct {
	t      testing.TB
	s      *server
	server string // what the agent is told; the portal's address unless a test says otherwise
	dir    string // state directory
	id     string // file with the machine's identity
	gpus   string
	name   string // of the provider

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	log  *transcript
}

// newMachine is one with two simulated GPUs that has not enrolled.
func newMachine(t testing.TB, s *server, name string) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{t: t, s: s, dir: filepath.Join(dir, "state"), id: filepath.Join(dir, "machine-id"), gpus: "h100:2", name: "node", log: &transcript{},
		server: "http://127.0.0.1:" + strconv.Itoa(s.port)}
	if err := os.WriteFile(m.id, []byte("identity of "+name+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if m.running() {
			m.kill()
		}
		if t.Failed() {
			t.Logf("what the agent of %s printed:\n%s", name, m.log)
		}
	})
	return m
}

func (m *machine) settings() []string {
	return []string{"WEIR_STATE_DIR=" + m.dir, "WEIR_MACHINE_ID_FILE=" + m.id, "WEIR_SIMULATE_GPUS=" + m.gpus, "WEIR_NAME=" + m.name, "WEIR_LOG_LEVEL=debug"}
}

// gpuCode asks the agent for it.
func (m *machine) gpuCode() string {
	m.t.Helper()
	code, stdout, stderr := weir(m.t, "", m.settings(), "agent", "--output", "json")
	var shown struct {
		GPUCode string `json:"gpu_code"`
	}
	if err := json.Unmarshal([]byte(stdout), &shown); code != 0 || err != nil || shown.GPUCode == "" {
		m.t.Fatalf("exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	return shown.GPUCode
}

// authorize makes an authorization code by the command line, as an operator
// would.
func (s *server) authorize(gpuCode string) string {
	s.t.Helper()
	s.admin() // there has to be somebody
	code, stdout, stderr := weir(s.t, "", s.settings(), "admin", "authorize", "--gpu-code", gpuCode, "--owner", "operator@example.org")
	if code != 0 {
		s.t.Fatalf("authorize: exit code %d\n%s", code, stderr)
	}
	return strings.TrimSpace(stdout)
}

// start starts the agent, with a code when one is given, and does not wait.
func (m *machine) start(code string, env ...string) {
	m.t.Helper()
	bin, err := program()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(bin, "agent", "--server", m.server)
	cmd.Env = environment(append(append(m.settings(), env...), "WEIR_CODE="+code))
	cmd.Stdout, cmd.Stderr = m.log, m.log
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	done := make(chan struct{})
	m.cmd, m.done = cmd, done
	go func() {
		_ = cmd.Wait() // how it ended is read from its state
		close(done)
	}()
}

func (m *machine) running() bool {
	if m.cmd == nil {
		return false
	}
	select {
	case <-m.done:
		return false
	default:
		return true
	}
}

// wait returns the exit code of an agent that is to end by itself; -1 when a
// signal ended it.
func (m *machine) wait() int {
	m.t.Helper()
	select {
	case <-m.done:
	case <-time.After(ready):
		m.t.Fatalf("the agent did not end within %s", ready)
	}
	return m.cmd.ProcessState.ExitCode()
}

func (m *machine) kill() {
	m.t.Helper()
	if err := m.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.t.Error(err)
	}
	<-m.done
}

// stop asks the agent to end and returns its exit code.
func (m *machine) stop() int {
	m.t.Helper()
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		m.t.Error(err)
	}
	return m.wait()
}

// copied is a machine that is a copy of this one, state and all.
func (m *machine) copied() *machine {
	m.t.Helper()
	c := newMachine(m.t, m.s, "copy")
	c.id, c.server = m.id, m.server
	if err := os.CopyFS(c.dir, os.DirFS(m.dir)); err != nil {
		m.t.Fatal(err)
	}
	return c
}

// books opens the server's database.
func (s *server) books() *store.Queries {
	s.t.Helper()
	s.booksOnce.Do(func() {
		store, err := store.Open(context.Background(), s.opts.database, filepath.Join(s.dir, "weir.db"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = store.Close() })
		s.store = store
	})
	return s.store.Read(s.t.Context())
}

// provider is that of an agent; there must be no more than one.
func (s *server) provider() (models.Provider, bool) {
	s.t.Helper()
	all, err := s.books().Providers()
	if err != nil {
		s.t.Fatal(err)
	}
	var found []models.Provider
	for _, p := range all {
		if p.Agent {
			found = append(found, p)
		}
	}
	if len(found) > 1 {
		s.t.Fatalf("one machine has become %d providers: %+v", len(found), found)
	}
	if len(found) == 0 {
		return models.Provider{}, false
	}
	return found[0], true
}

// awaitProvider polls until the provider is in a state and was heard of after
// a moment.
func (s *server) awaitProvider(state string, after time.Time) (p models.Provider) {
	s.t.Helper()
	eventually(s.t, ready, func() string {
		found, ok := s.provider()
		if p = found; !ok {
			return "no provider"
		}
		if p.State != state || p.SeenAt.Before(after) {
			return fmt.Sprintf("the provider is %s (%s), heard of at %s", p.State, p.Reason, p.SeenAt)
		}
		return ""
	})
	return p
}

// beats polls until the agent has been heard twice from now on: once could
// have been on its way.
func (s *server) beats() models.Provider {
	s.t.Helper()
	p := s.awaitProvider(models.ProviderOnline, time.Now())
	return s.awaitProvider(models.ProviderOnline, p.SeenAt.Add(time.Millisecond))
}

// holdsRules checks what is always true: one live agent at most, no device
// gives away more than it has, and nobody holds a share who does not live.
func (s *server) holdsRules(agents int) {
	s.t.Helper()
	q := s.books()
	live, err1 := storetest.LiveAgents(q)
	shares, err2 := q.OpenSharesAmong(store.AllMachines)
	if err := errors.Join(err1, err2); err != nil || len(live) != agents {
		s.t.Errorf("%d agents are live, not %d, %v", len(live), agents, err)
	}
	cores := map[int64]int64{}
	for _, share := range shares {
		cores[share.DeviceID] += share.Cores
		w, err := q.Workspace(store.AllProjects, share.ObjectID)
		if err != nil || w.State == models.StateStopped || w.State == models.StateFailed || w.State == models.StateQueued {
			s.t.Errorf("workspace %d is %s and holds a share, %v", w.ID, w.State, err)
		}
	}
	for device, n := range cores {
		if n > 100 {
			s.t.Errorf("device %d gives away %d cores", device, n)
		}
	}
}

// agentsAddress is where the agents' listener is now.
func (s *server) agentsAddress() (string, error) {
	res, err := apiClient.Get("http://127.0.0.1:" + strconv.Itoa(s.port) + "/api/v1/agents/address")
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var answer struct {
		URL string `json:"url"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s %w", res.Status, err)
	}
	return answer.URL, nil
}

// wire is a connection between agents and their listener that can be cut: what
// is said meanwhile is held, and arrives when it is joined again, late.
type wire struct {
	s      *server
	l      net.Listener
	mu     sync.Mutex
	joined *sync.Cond
	cut    bool
	open   []net.Conn
}

func newWire(t testing.TB, s *server) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{s: s, l: l}
	w.joined = sync.NewCond(&w.mu)
	go w.serve()
	t.Cleanup(w.close)
	return w
}

func (w *wire) url() string { return "https://" + w.l.Addr().String() }

func (w *wire) serve() {
	for {
		conn, err := w.l.Accept()
		if err != nil {
			return
		}
		go w.carry(conn)
	}
}

func (w *wire) carry(from net.Conn) {
	defer from.Close()
	w.wait()
	address, err := w.s.agentsAddress()
	if err != nil {
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	to, err := net.Dial("tcp", u.Host)
	if err != nil {
		return
	}
	defer to.Close()
	w.mu.Lock()
	w.open = append(w.open, from, to)
	w.mu.Unlock()
	back := make(chan struct{})
	go func() {
		defer close(back)
		w.copy(from, to)
	}()
	w.copy(to, from)
	<-back
}

// copy passes on what it reads, as soon as the wire is joined.
func (w *wire) copy(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		w.wait()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if tcp, ok := to.(*net.TCPConn); ok {
		_ = tcp.CloseWrite() // the other side may have gone
	}
	_, _ = io.Copy(io.Discard, from)
}

func (w *wire) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.cut {
		w.joined.Wait()
	}
}

func (w *wire) set(cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = cut
	w.joined.Broadcast()
}

func (w *wire) close() {
	_ = w.l.Close()
	w.set(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.open {
		_ = conn.Close()
	}
}
