package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/models/store"
	"weir/models/store/storetest"
)

// How long a server may take to answer, a workspace to start, and either to
// end, on a machine that is busy with other tests and whose disk may stall.
const (
	ready    = 3 * time.Minute
	starting = 5 * time.Minute
	gone     = 3 * time.Minute
)

var workDir string // of this test process, for what is built

func TestMain(m *testing.M) {
	becomeBrowser()
	// The tests wait for servers, browsers and notebooks most of the time, so
	// more run at once than there are processors. The flag -parallel overrides it.
	err := flag.Set("test.parallel", strconv.Itoa(2*runtime.NumCPU()))
	dir, errDir := newWorkDir()
	if err = errors.Join(err, errDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	workDir = dir
	code := m.Run()
	endBrowser()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// newWorkDir makes a folder that is locked as long as this process lives, and removes
// those that killed processes have left.
func newWorkDir() (string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-e2e-*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		// What has no lock yet is just being made.
		if _, err := os.Stat(filepath.Join(dir, lockFile)); err == nil && lock(dir) == nil {
			err = os.RemoveAll(dir)
			if err != nil {
				fmt.Fprintln(os.Stderr, err) // mounted, or of another user
			}
		}
	}
	dir, err := os.MkdirTemp("", "weir-e2e-")
	if err != nil {
		return "", err
	}
	return dir, lock(dir)
}

const lockFile = "lock"

// lock locks a folder until this process ends; it fails if another process has done so.
func lock(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	locks = append(locks, f)
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

var locks []*os.File // open as long as this process lives

// program builds the program once for each test process, with failpoints.
var program = sync.OnceValues(func() (string, error) {
	bin := filepath.Join(workDir, "weir")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-tags", "failpoints", "-ldflags=-s -w", "-o", bin, "./cmd/weir")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return bin, nil
})

// weir runs one command of the program to its end.
func weir(t testing.TB, stdin string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errOut
	cmd.Env = environment(env)
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("weir %s: %v", strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// environment is this process's own without any setting of Weir, and then more.
func environment(more []string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WEIR_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}

// options of a server; the zero value is SQLite and eight simulated H100.
type options struct {
	database string   // URL; empty: SQLite
	gpus     string   // "h100:8" when empty, none when "none"
	args     []string // further flags
	env      []string
	disk     string // size of a disk of its own for its data, for root; empty: none
	files    int    // how many files it can have open; 0: as the test
}

// server is a weir serve that a test started, through all its restarts.
type server struct {
	t    testing.TB
	opts options
	dir  string // its data directory
	port int
	url  string // of the portal

	transport *http.Transport // of browsers; nil: straight to the server

	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	out  *transcript   // standard output, of all runs
	log  *transcript   // standard error, of all runs

	adminOnce  sync.Once
	adminToken string

	booksOnce sync.Once
	store     *store.Store // the server's database, once somebody asks for it
}

// eachDatabase runs a test as "sqlite" and as "postgres".
func eachDatabase(t *testing.T, test func(t *testing.T, o options)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) { test(t, options{}) })
	t.Run("postgres", func(t *testing.T) { test(t, options{database: storetest.MigratedPostgres(t)}) })
}

// newServer starts a server and waits until it is ready. When the test ends,
// its workspaces are stopped and it is, and nothing of it may be left.
func newServer(t testing.TB, o options) *server {
	t.Helper()
	if o.gpus == "" {
		o.gpus = "h100:8"
	}
	dir := t.TempDir()
	if o.disk != "" {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size="+o.disk); err != nil {
			t.Fatal("mount: ", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	}
	if o.database == "" {
		storetest.MigratedSQLite(t, filepath.Join(dir, "weir.db"))
	}
	return serverOn(t, o, dir)
}

// serverOn starts a server on a data directory.
func serverOn(t testing.TB, o options, dir string) *server {
	t.Helper()
	s := &server{t: t, opts: o, dir: dir, port: freePort(t), out: &transcript{}, log: &transcript{}}
	s.url = "http://localhost:" + strconv.Itoa(s.port)
	t.Cleanup(s.end)
	serving.Store(s.url, s)
	s.start()
	return s
}

// serving is the servers of all tests, by URL.
var serving sync.Map

// dump ends the server at a URL in such a way that it prints what each of its goroutines
// waits for. Only a test that has failed already does so.
func dump(url string) {
	v, ok := serving.Load(url)
	if !ok {
		return
	}
	s := v.(*server)
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		s.t.Log(err)
		return
	}
	<-s.done
}

// freePort finds a port below those that the system itself gives away, so
// that no outgoing connection takes it while a server is restarted.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// settings are what every command on this server's data needs to be told.
func (s *server) settings() []string {
	env := append([]string{"WEIR_DATA_DIR=" + s.dir}, s.opts.env...)
	if s.opts.database != "" {
		env = append(env, "WEIR_DATABASE_URL="+s.opts.database)
	}
	return env
}

const metricsToken = "the token of a scraper"

// scrape reads /metrics.
func (s *server) scrape() (*http.Response, error) {
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(s.port)+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+metricsToken)
	return apiClient.Do(r)
}

// launch starts the process, with more environment, and does not wait.
func (s *server) launch(env ...string) {
	s.t.Helper()
	bin, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	token := filepath.Join(s.dir, "metrics-token")
	if err := os.WriteFile(token, []byte(metricsToken), 0o600); err != nil {
		s.t.Fatal(err)
	}
	args := []string{"serve", "--metrics-token-file", token, "--listen", "127.0.0.1:" + strconv.Itoa(s.port), "--agents-listen", "127.0.0.1:0", "--log-level", "debug"}
	if s.opts.gpus != "none" {
		args = append(args, "--simulate-gpus", s.opts.gpus)
	}
	cmd := exec.Command(bin, append(args, s.opts.args...)...)
	if s.opts.files > 0 {
		limited := []string{"-c", fmt.Sprintf(`ulimit -n %d; exec "$@"`, s.opts.files), "sh"}
		cmd = exec.Command("/bin/sh", append(limited, cmd.Args...)...)
	}
	cmd.Env = environment(append(s.settings(), env...))
	cmd.Stdout, cmd.Stderr = s.out, s.log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		_ = cmd.Wait() // how it ended is read from its state
		close(done)
	}()
}

// start starts the process, with more environment, and waits for /readyz.
func (s *server) start(env ...string) {
	s.t.Helper()
	s.launch(env...)
	s.awaitReady()
}

func (s *server) awaitReady() {
	s.t.Helper()
	client := &http.Client{Timeout: 5 * time.Second}
	eventually(s.t, ready, func() string {
		select {
		case <-s.done:
			s.t.Fatalf("the server ended: %s\n%s", s.cmd.ProcessState, s.log)
		default:
		}
		res, err := client.Get("http://127.0.0.1:" + strconv.Itoa(s.port) + "/readyz")
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			return fmt.Sprint("/readyz: ", res.Status, err)
		}
		return ""
	})
}

// running tells whether the process still is.
func (s *server) running() bool {
	if s.cmd == nil {
		return false
	}
	select {
	case <-s.done:
		return false
	default:
		return true
	}
}

// wait returns the exit code of a server that is to end by itself; -1 when a
// signal ended it.
func (s *server) wait() int {
	s.t.Helper()
	select {
	case <-s.done:
	case <-time.After(gone):
		s.kill()
		s.t.Fatalf("the server did not end within %s", gone)
	}
	return s.cmd.ProcessState.ExitCode()
}

// stop asks the server to end and returns its exit code. Its workspaces go on
// running.
func (s *server) stop() int {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	return s.wait()
}

// kill ends the server as a power cut would. Its workspaces go on running.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Error(err)
	}
	<-s.done
}

// end is the test's end: workspaces are stopped, then the server; nothing
// that belongs to its data directory may be left.
func (s *server) end() {
	if s.running() && !s.t.Failed() {
		s.stopWorkspaces()
	}
	if s.running() {
		if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Log(err)
		}
		select {
		case <-s.done:
			if !s.cmd.ProcessState.Success() {
				s.t.Errorf("asked to end, the server ended: %s", s.cmd.ProcessState)
			}
		case <-time.After(gone):
			s.t.Errorf("the server did not end within %s of SIGTERM", gone)
			s.kill()
		}
	}
	if !s.t.Failed() {
		if left := processesOf(s.dir); len(left) > 0 {
			s.t.Errorf("processes are left: %v", left)
		}
	}
	if s.t.Failed() {
		s.t.Logf("what the server printed:\n%s%s", s.out, s.log)
	}
	s.clear()
}

// clear ends by force what a failed test left: a process is known by the
// test's own directory in its command line.
func (s *server) clear() {
	deadline := time.Now().Add(gone)
	for left := processesOf(s.dir); len(left) > 0 && time.Now().Before(deadline); left = processesOf(s.dir) {
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for groupsLeft(s.dir) && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond) // a process of them still exits
	}
}

// groupsLeft removes the control groups of sandboxes that no server removes any more, and reports whether some are left:
// each would make the machine slower for all tests that follow.
func groupsLeft(dir string) (left bool) {
	states, _ := filepath.Glob(filepath.Join(dir, "*", "ws-*", "state"))
	for _, name := range states {
		var state struct{ Cgroup map[string]string }
		b, err := os.ReadFile(name)
		if err != nil || json.Unmarshal(b, &state) != nil {
			continue
		}
		for _, group := range state.Cgroup {
			if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
				left = true
			}
		}
	}
	return left
}

// processesOf finds the processes whose command line names a directory: the
// sandboxes of workspaces do. What runs inside one ends with it.
func processesOf(dir string) map[int]string {
	found := map[int]string{}
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.Contains(b, []byte(dir+"/")) {
			found[pid] = strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

var setupPattern = regexp.MustCompile(`http://[^\s"]+/setup\?token=[\w-]+`)

// setupLink is the one-time link that the server printed.
func (s *server) setupLink() (link string) {
	s.t.Helper()
	eventually(s.t, ready, func() string {
		if link = setupPattern.FindString(s.out.String()); link == "" {
			return "no setup link in " + s.out.String()
		}
		return ""
	})
	return link
}

// transcript keeps what a process prints, and can be read meanwhile.
type transcript struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *transcript) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *transcript) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}
