package nvml

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The directories of a device below Config.MPSDir. Workspaces need the first two.
const (
	mpsPipe = "pipe" // CUDA_MPS_PIPE_DIRECTORY of the daemon and its clients
	mpsShm  = "shm"  // /dev/shm of the daemon and its clients
	mpsLog  = "log"  // CUDA_MPS_LOG_DIRECTORY
)

const (
	mpsProgram = "nvidia-cuda-mps-control"
	mpsTimeout = 5 * time.Second       // of a command, a start and a stop
	mpsPoll    = 20 * time.Millisecond // of a start and a stop
	mpsPeriod  = 5 * time.Second       // of the supervision
	maxSocket  = 107                   // bytes of a socket's path
)

// daemons manages the MPS control daemons of this machine, one for each device with
// MPS. They outlive this process. Wanted daemons are restarted when they have died.
//
// A daemon and its clients communicate through /dev/shm too. Each daemon has its own
// directory for it, as in NVIDIA's device plugin for Kubernetes, so that workspaces
// do not see the machine's.
type daemons struct {
	dir    string
	period time.Duration

	ctx    context.Context // ends the supervision, never a daemon
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex // serializes starts and stops
	wanted map[string]bool
	guard  sync.Once // starts the supervision
}

func newDaemons(dir string) *daemons {
	m := &daemons{dir: dir, period: mpsPeriod, wanted: map[string]bool{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// usable returns an error if this machine cannot run a daemon for a device.
func (m *daemons) usable(uuid string) error {
	if m.dir == "" {
		return errors.New("this agent has no directory for MPS")
	}
	if socket := filepath.Join(m.dir, uuid, mpsPipe, "control_privileged"); len(socket) > maxSocket {
		return fmt.Errorf("the directory for MPS is too deep: %s has %d bytes, a socket's path at most %d", socket, len(socket), maxSocket)
	}
	if _, err := exec.LookPath(mpsProgram); err != nil {
		return fmt.Errorf("MPS is not installed: %w", err)
	}
	return nil
}

// setWanted starts and supervises the device's daemon.
func (m *daemons) setWanted(ctx context.Context, uuid string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.ensure(ctx, uuid); err != nil {
		return err
	}
	m.wanted[uuid] = true
	m.guard.Do(func() { m.wg.Go(m.supervise) })
	return nil
}

// supervise restarts wanted daemons. Failed starts are retried; meanwhile the device
// does not report MPS.
func (m *daemons) supervise() {
	tick := time.NewTicker(m.period)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		m.mu.Lock()
		for _, uuid := range slices.Sorted(maps.Keys(m.wanted)) {
			m.ensure(m.ctx, uuid)
		}
		m.mu.Unlock()
	}
}

// close stops the supervision; the daemons keep running.
func (m *daemons) close() {
	m.cancel()
	m.wg.Wait()
}

// ensure starts the device's daemon unless it responds.
func (m *daemons) ensure(ctx context.Context, uuid string) error {
	if m.alive(ctx, uuid) {
		return nil
	}
	if err := m.start(ctx, uuid); err != nil {
		return fmt.Errorf("MPS cannot be started: %w", err)
	}
	if !await(ctx, func() bool { return m.alive(ctx, uuid) }) {
		return fmt.Errorf("MPS was started but does not answer; see %s", filepath.Join(m.dir, uuid, mpsLog))
	}
	return nil
}

// private runs a program with its own /dev/shm.
const private = `mount --bind "$1" /dev/shm && shift && exec "$@"`

// daemonOptions let the daemon's server run as root. As the user of its first client, which
// is the default, a server of driver 580 ended as soon as it was started, and all clients
// failed with error 805.
var daemonOptions = []string{"-d", "-multiuser-server"}

func (m *daemons) start(ctx context.Context, uuid string) error {
	base := filepath.Join(m.dir, uuid)
	for name, mode := range map[string]os.FileMode{mpsPipe: 0o755, mpsLog: 0o700, mpsShm: 0o777 | os.ModeSticky} {
		if err := os.MkdirAll(filepath.Join(base, name), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(filepath.Join(base, name), mode); err != nil {
			return err
		}
	}
	// A file, not a pipe: the daemon keeps it open.
	out, err := os.Create(filepath.Join(base, mpsLog, "start.log"))
	if err != nil {
		return err
	}
	defer out.Close()
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, mpsProgram, daemonOptions...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 { // always, except in tests: only root can set the compute mode
		args := append([]string{"-c", private, "sh", filepath.Join(base, mpsShm), mpsProgram}, daemonOptions...)
		cmd = exec.CommandContext(ctx, "/bin/sh", args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Unshareflags: syscall.CLONE_NEWNS}
	}
	cmd.Env = append(m.env(uuid), "CUDA_VISIBLE_DEVICES="+uuid, "CUDA_MPS_LOG_DIRECTORY="+filepath.Join(base, mpsLog))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		return errors.Join(err, errors.New(line))
	}
	return nil
}

// env is the environment for a device's daemon, without other variables of this process.
func (m *daemons) env(uuid string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH"),
		"CUDA_MPS_PIPE_DIRECTORY=" + filepath.Join(m.dir, uuid, mpsPipe)}
}

// control sends a command to a device's daemon and returns its output.
func (m *daemons) control(ctx context.Context, uuid, command string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, mpsProgram)
	cmd.Env = m.env(uuid)
	cmd.Stdin = strings.NewReader(command + "\n")
	var failure strings.Builder
	cmd.Stderr = &failure
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("MPS: %s: %w %s", command, err, strings.TrimSpace(failure.String()))
	}
	return string(out), nil
}

// alive reports whether the device has a daemon that responds.
func (m *daemons) alive(ctx context.Context, uuid string) bool {
	if m.dir == "" {
		return false
	}
	if _, err := os.Stat(filepath.Join(m.dir, uuid, mpsPipe)); err != nil {
		return false
	}
	_, err := m.control(ctx, uuid, "get_server_list")
	return err == nil
}

// claim makes the directory of a device: until it is removed, the compute mode of the device is
// ours to reset, whatever becomes of the daemon and of this process.
func (m *daemons) claim(uuid string) error { return os.MkdirAll(filepath.Join(m.dir, uuid), 0o755) }

// disclaim removes what claim has made.
func (m *daemons) disclaim(uuid string) error {
	err := os.Remove(filepath.Join(m.dir, uuid))
	if errors.Is(err, syscall.ENOTEMPTY) { // of an earlier daemon
		return nil
	}
	return err
}

func (m *daemons) claimed(uuid string) bool {
	if m.dir == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(m.dir, uuid))
	return err == nil
}

// quit stops the device's daemon if it has no clients, and reports whether the device is
// claimed.
func (m *daemons) quit(ctx context.Context, uuid string) (owned bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.alive(ctx, uuid) {
		delete(m.wanted, uuid)
		return m.claimed(uuid), nil
	}
	servers, err := m.control(ctx, uuid, "get_server_list")
	if err != nil {
		return true, err
	}
	for _, pid := range strings.Fields(servers) {
		clients, err := m.control(ctx, uuid, "get_client_list "+pid)
		if err != nil {
			return true, err
		}
		if n := len(strings.Fields(clients)); n > 0 {
			return true, fmt.Errorf("MPS cannot end while it serves processes: %d; it is done when they have ended", n)
		}
	}
	delete(m.wanted, uuid)
	if _, err := m.control(ctx, uuid, "quit"); err != nil {
		return true, err
	}
	if !await(ctx, func() bool { return !m.alive(ctx, uuid) }) {
		return true, errors.New("MPS was told to end but still answers")
	}
	return true, nil
}

// await polls a condition for mpsTimeout.
func await(ctx context.Context, condition func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, mpsTimeout)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(mpsPoll):
		}
	}
	return true
}
