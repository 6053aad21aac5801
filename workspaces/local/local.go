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
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
)

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
