package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/workspaces"
)

// stopGrace is how long a notebook may take to end after the first Stop.
const stopGrace = 3 * time.Second

// Config is where a Runtime keeps its files and as whom notebooks run.
type Config struct {
	Dir        string // one directory per running workspace is made below it
	SandboxUID uint32 // used when this process is root; otherwise its own uid
	SandboxGID uint32
	Logger     *slog.Logger     // slog.Default when nil
	Clock      func() time.Time // time.Now when nil

	// MPSDir has a directory for each GPU whose MPS daemon runs, named by its
	// UUID: pipe is the daemon's pipes, shm its /dev/shm. Without it no
	// workspace with such a share is launched.
	MPSDir string
	// Files are the device files that the holder of a MIG instance needs, and
	// no other. Without it no workspace with an instance is launched.
	Files func(ctx context.Context, uuid string) ([]string, error)
}

// Runtime runs workspaces on this machine. Make one with New.
type Runtime struct {
	dir    string
	root   *os.File // dir, held open: the way to sockets whose path is too long
	user   identity
	tool   bubblewrap
	log    *slog.Logger
	now    func() time.Time
	mpsDir string
	files  func(ctx context.Context, uuid string) ([]string, error)
	workspaces.Changes

	ctx    context.Context // ends the watchers, never what they watch
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // serialises Start and clean-up, guards what follows
	watched  map[key]bool
	stopping map[key]time.Time // first Stop

	beforeOpen func() // failpoint: everything is ready, the gate is closed
}

var (
	_ workspaces.Runtime = (*Runtime)(nil)
)

// New makes a Runtime over c.Dir. When this machine cannot run a sandbox, the
// error says in plain words what to install or to set.
func New(c Config) (*Runtime, error) {
	user := identity{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	if os.Geteuid() == 0 {
		user = identity{uid: c.SandboxUID, gid: c.SandboxGID, drop: true}
		if user.uid == 0 || user.gid == 0 {
			return nil, errors.New("notebooks must not run as root: set the user and group id that they run as")
		}
	}
	// What our own starter left open is none of a notebook's business.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil && c.Logger != nil {
		c.Logger.Warn("notebooks may inherit open files", "error", err)
	}
	tool, err := available(user)
	if err != nil {
		return nil, err
	}
	dir, err := makeDir(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	root, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	r := &Runtime{
		dir: dir, root: root, user: user, tool: tool, log: c.Logger, now: c.Clock, mpsDir: c.MPSDir, files: c.Files,
		watched: map[key]bool{}, stopping: map[key]time.Time{},
	}
	if r.log == nil {
		r.log = slog.Default()
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r, nil
}

// makeDir makes the run directory and returns its canonical path, by which
// processes are found again.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("is not set")
	}
	// Others may pass through, for where the sandbox's user has to reach a
	// bind's source by its path, but not look around.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Close ends what this Runtime does in the background. What runs goes on.
func (r *Runtime) Close() error {
	r.mu.Lock() // no watcher begins from here on
	r.cancel()
	r.mu.Unlock()
	r.wg.Wait()
	return r.root.Close()
}

// Start launches spec; see workspaces.Runtime.
func (r *Runtime) Start(ctx context.Context, spec workspaces.Spec) (workspaces.State, error) {
	command, err := checkSpec(spec)
	if err != nil {
		return nil, err
	}
	spec.Command = command
	r.mu.Lock()
	defer r.mu.Unlock()
	k := key{spec.Workspace, spec.Generation}
	if in, err := r.load(k); err == nil && !in.exited() {
		return in.state(), nil
	}
	if err := r.sweep(k); err != nil {
		return nil, err
	}
	delete(r.stopping, k)
	in := &instance{dir: r.path(k)}
	in.Workspace, in.Generation = k.workspace, k.generation
	if err := r.launch(ctx, in, spec); err != nil {
		return nil, errors.Join(err, r.remove(in))
	}
	return in.state(), nil
}

// sweep removes what dead generations of a workspace left, up to this one.
func (r *Runtime) sweep(k key) error {
	for _, old := range r.directories() {
		if old.workspace != k.workspace || old.generation > k.generation {
			continue
		}
		in, err := r.load(old)
		if err != nil { // a server died before it had written the record
			in = &instance{dir: r.path(old)}
		}
		if !in.exited() {
			continue
		}
		if err := r.remove(in); err != nil {
			return err
		}
	}
	return nil
}

// launch makes everything that the workspace needs, starts its process behind
// a gate, and opens the gate when all is recorded.
func (r *Runtime) launch(ctx context.Context, in *instance, spec workspaces.Spec) error {
	if err := r.makeFiles(in, spec); err != nil {
		return err
	}
	box, err := r.sandboxFor(ctx, in, spec)
	if err != nil {
		return err
	}
	defer box.close()
	gated, err := r.startGated(in, box, spec.Command)
	if err != nil {
		return err
	}
	if err := r.confirm(ctx, in, gated, spec); err != nil {
		gated.kill()
		return err
	}
	r.watch(in, gated.cmd)
	return nil
}

// confirm limits a gated process, records it and only then lets it run: no
// workspace runs without a record.
func (r *Runtime) confirm(ctx context.Context, in *instance, gated *gatedProcess, spec workspaces.Spec) error {
	p, err := readProcess(gated.cmd.Process.Pid)
	if err != nil {
		return err
	}
	in.PID, in.Started, in.Boot = p.pid, p.started, bootID()
	in.MemoryMiB = spec.Memory
	in.Cgroup, in.Limits = confine(cgroupName(in.dir), p.pid, spec)
	in.Limits = append(in.Limits, gpuLimit(spec.GPUs)...)
	if err := in.save(); err != nil {
		return err
	}
	if r.beforeOpen != nil {
		r.beforeOpen()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return gated.open()
}

func (r *Runtime) makeFiles(in *instance, spec workspaces.Spec) error {
	if err := os.Mkdir(in.dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(in.shared(), 0o700); err != nil {
		return err
	}
	if r.user.drop {
		if err := os.Chown(in.shared(), int(r.user.uid), int(r.user.gid)); err != nil {
			return err
		}
	}
	return os.WriteFile(in.tokenFile(), []byte(spec.Token), 0o600)
}

// gatedProcess is a started wrapper that waits for one line on a pipe before
// it becomes bubblewrap. When this process dies, the pipe ends and so does it.
type gatedProcess struct {
	cmd  *exec.Cmd
	gate *os.File
}

func (h *gatedProcess) open() error {
	defer h.gate.Close()
	_, err := h.gate.WriteString("go\n")
	return err
}

func (h *gatedProcess) kill() {
	h.gate.Close()
	h.cmd.Process.Kill()
	h.cmd.Wait()
}

// startGated starts the wrapper.
func (r *Runtime) startGated(in *instance, box *sandbox, command []string) (*gatedProcess, error) {
	read, gate, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	status, err := os.OpenFile(in.statusFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		gate.Close()
		return nil, err
	}
	defer status.Close()
	logFile, err := os.OpenFile(in.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		gate.Close()
		return nil, err
	}
	defer logFile.Close()
	cmd, err := box.command(in.dir, read, status, command)
	if err == nil {
		cmd.Stdout, cmd.Stderr = logFile, logFile
		err = box.start(cmd)
	}
	if err != nil {
		gate.Close()
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return &gatedProcess{cmd: cmd, gate: gate}, nil
}

// remove deletes what an instance that is gone has left. The cgroup goes
// first: as long as it cannot, the record stays.
func (r *Runtime) remove(in *instance) error {
	if err := in.Cgroup.remove(); err != nil {
		return err
	}
	err := os.RemoveAll(in.dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	// A user may have closed a directory of theirs, which is also ours.
	filepath.WalkDir(in.dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(in.dir)
}
