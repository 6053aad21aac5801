package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"weir/workspaces/runtime"
)

// Names inside the sandbox of a workspace. Sandboxes may have no way to the network of
// the host, so the REST API has a socket there.
const (
	innerAPI     = "/run/weir-api"     // read-only, with the socket
	innerKernels = "/run/weir-kernels" // the sockets of kernels, also in the sandboxes of its runs
	innerBin     = "/etc/weir/bin"     // the program weir
	apiSocket    = "api.sock"
)

func (in *instance) apiDir() string     { return filepath.Join(in.dir, "api") }
func (in *instance) kernelsDir() string { return filepath.Join(in.dir, "kernels") }

// ServeAPI serves a socket in the sandbox of every workspace, from its start to its end,
// until Close. It serves those that run already, too; one whose socket cannot be made, as on
// a full disk, goes on without.
func (r *Runtime) ServeAPI(handler func(workspace int64) http.Handler) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	connections, err := newAPIConnections()
	if err != nil {
		return err
	}
	r.api, r.connections = handler, connections
	keys, err := r.directories()
	for _, k := range keys {
		in, err := r.load(k)
		if err != nil || in.exited() {
			continue
		}
		if err := r.openAPI(in); err != nil && !errors.Is(err, fs.ErrNotExist) { // one of an earlier version has no directory for it
			r.config.Logger.Error("a workspace has no socket of the REST API until it is started again", "workspace", in.Workspace, "error", err)
		}
	}
	return err
}

// openAPI serves the socket of a workspace. The caller must have locked mu.
func (r *Runtime) openAPI(in *instance) error {
	if r.api == nil || r.commands || r.ctx.Err() != nil {
		return nil
	}
	path := filepath.Join(in.apiDir(), apiSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // of a killed server
		return err
	}
	listener, err := net.Listen("unix", r.address(path))
	if err != nil {
		return fmt.Errorf("the API socket of workspace %d: %w", in.Workspace, err)
	}
	if err := os.Chmod(path, 0o666); err != nil { // the sandbox's user connects
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: r.api(in.Workspace), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(r.config.Logger.Handler(), slog.LevelDebug)}
	r.apis[in.key()] = server
	r.wg.Go(func() { _ = server.Serve(r.connections.bound(listener)) }) // until it is closed
	return nil
}

// closeAPI ends the socket of a workspace and its connections. The caller must have locked mu.
func (r *Runtime) closeAPI(k key) {
	if server := r.apis[k]; server != nil {
		_ = server.Close() // its listener and its connections
		delete(r.apis, k)
	}
}

// makeAPIDirs creates the directories of a workspace that its runs and the API need.
func (r *Runtime) makeAPIDirs(in *instance, user identity) error {
	if r.commands {
		return nil
	}
	err := errors.Join(os.Mkdir(in.apiDir(), 0o755), os.Mkdir(in.kernelsDir(), 0o770),
		os.Chmod(in.apiDir(), 0o755), os.Chmod(in.kernelsDir(), 0o770))
	if err == nil && user.drop {
		err = os.Chown(in.kernelsDir(), int(user.uid), int(user.gid))
	}
	return err
}

// bindAPI mounts the program weir, what programs in a workspace need for runs, and in a run the
// sockets of its workspace's kernels.
func (r *Runtime) bindAPI(s *sandbox, in *instance, spec runtime.Spec) {
	if r.config.Program != "" {
		s.bind(r.config.Program, innerBin+"/weir", true)
	}
	switch {
	case !r.commands:
		s.bind(in.apiDir(), innerAPI, true)
		s.bind(in.kernelsDir(), innerKernels, false)
	case spec.Kernels != "":
		s.bind(spec.Kernels, innerKernels, false)
	}
}

// KernelsDir returns the directory of the sockets of a workspace's kernels.
func (r *Runtime) KernelsDir(state runtime.State) (string, error) {
	in, err := r.parseState(state)
	if err != nil {
		return "", err
	}
	return in.kernelsDir(), nil
}
