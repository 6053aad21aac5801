package local

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

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
	// connections bounds those to the sockets of api.
	connections apiConnections

	commands bool // its instances are those of [Runs]: no notebooks, and kept until they are removed

	beforeOpen func() // failpoint before the gate is opened
}

var _ runtime.Runtime = (*Runtime)(nil)

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

// maxSocketPath is the maximum length of a path in a socket address.
const maxSocketPath = 107

// address returns the address, for this process, of a socket in the run directory.
func (r *Runtime) address(socket string) string {
	if len(socket) <= maxSocketPath {
		return socket
	}
	return fmt.Sprintf("/proc/self/fd/%d%s", r.root.Fd(), strings.TrimPrefix(socket, r.config.Dir))
}
