package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// stopGrace is the grace period after the first Stop.
const stopGrace = 3 * time.Second

// Config configures a Runtime.
type Config struct {
	Dir        string // contains one directory per running workspace
	Owner      runtime.Owner
	SandboxUID uint32 // of notebooks if this process is root; otherwise its own
	SandboxGID uint32
	Logger     *slog.Logger     // slog.Default when nil
	Clock      func() time.Time // time.Now when nil

	// Program is the path of weir, for the terminals of workspaces and for runs; empty: they have none.
	Program string

	// MPSDir contains a directory for each GPU with an MPS daemon, named by its
	// UUID, with the daemon's pipes (pipe) and its /dev/shm (shm). Without MPSDir,
	// workspaces with such shares are not launched.
	MPSDir string
	// Files returns the device files of a MIG instance. Without it, workspaces
	// with such instances are not launched.
	Files func(ctx context.Context, uuid string) ([]string, error)
}

// Runtime runs workspaces on this machine. Make one with New.
type Runtime struct {
	config  Config   // Dir is canonical
	root    *os.File // Dir, for sockets whose path is too long
	user    identity
	tool    bubblewrap
	network network
	runtime.Changes

	ctx    context.Context // of the watchers, not of what they watch
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu       sync.Mutex // serializes Start and cleanup, guards the following fields
	watched  map[incarnation]bool
	stopping map[key]time.Time // time of the first Stop
	apis     map[key]*http.Server
	reasons  map[key]models.Text                // why this process has killed an instance
	api      func(workspace int64) http.Handler // nil before ServeAPI

	commands bool // its instances are those of [Runs]: no notebooks, and kept until they are removed

	beforeOpen func() // failpoint before the gate is opened
}

var _ runtime.Runtime = (*Runtime)(nil)

// New returns a Runtime on c.Dir. If this machine cannot run a sandbox, the error
// describes what to install or to configure.
func New(c Config) (*Runtime, error) {
	user := identity{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}
	if os.Geteuid() == 0 {
		user = identity{uid: c.SandboxUID, gid: c.SandboxGID, drop: true}
		if user.uid == 0 || user.gid == 0 {
			return nil, errors.New("notebooks must not run as root: set the user and group id that they run as")
		}
	}
	if bootID() == "" {
		return nil, errors.New("cannot read the boot id of this machine, by which its processes are known")
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Clock == nil {
		c.Clock = time.Now
	}
	// Files that this process inherited must not be inherited by notebooks.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		c.Logger.Warn("notebooks may inherit open files", "error", err)
	}
	tool, err := available(user)
	if errors.Is(err, errTimedOut) {
		c.Logger.Warn("cannot tell whether sandboxes can be made here", "error", err)
	} else if err != nil {
		return nil, err
	}
	if c.Dir, err = makeDir(c.Dir); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	if err := claim(c.Dir, c.Owner); err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	root, err := os.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("run directory: %w", err)
	}
	r := &Runtime{config: c, root: root, user: user, tool: tool, network: findNetwork(user),
		watched: map[incarnation]bool{}, stopping: map[key]time.Time{}, apis: map[key]*http.Server{},
		reasons: map[key]models.Text{}}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.tryNetwork()
	return r, r.discardLeftovers()
}

// User is the user id that workspaces without one of their own run as.
func (r *Runtime) User() uint32 { return r.user.uid }

// userOf is the user that a workspace runs as. Those with shares under MPS have the same:
// programs of several users have not been run with it yet.
func (r *Runtime) userOf(spec runtime.Spec) identity {
	user := r.user
	if !user.drop || spec.GID == 0 {
		return user
	}
	user.gid = uint32(spec.GID)
	if !slices.ContainsFunc(spec.GPUs, func(g runtime.GPU) bool { return g.Enforcement == "mps" && !g.Simulated }) {
		user.uid = uint32(spec.UID)
	}
	return user
}

// makeDir creates the run directory and returns its canonical path, which is in the
// command lines of its processes.
func makeDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("is not set")
	}
	// The sandbox's user needs search permission to bind a source by its path.
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// Close ends what this Runtime does in the background. Workspaces continue to run.
func (r *Runtime) Close() error {
	r.mu.Lock() // no watcher starts after this
	r.cancel()
	for k := range r.apis {
		r.closeAPI(k)
	}
	r.mu.Unlock()
	r.wg.Wait()
	return r.root.Close()
}
