package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

// jupyterPath is the directory for JUPYTER_PATH below which Jupyter finds the kernel "Python (GPU)":
// the usual ones are those of this machine.
const (
	jupyterPath = "/etc/weir/share/jupyter"
	kernelDir   = jupyterPath + "/kernels/python-gpu"
)

// checkSpec returns the command of a spec with the path of its program, or an error
// for a spec that cannot be launched.
func checkSpec(spec runtime.Spec) ([]string, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	for _, m := range spec.Mounts {
		if !filepath.IsAbs(m.Source) {
			return nil, fmt.Errorf("the source of %s is not an absolute path", m.Target)
		}
	}
	program, err := exec.LookPath(spec.Command[0])
	if err != nil || !filepath.IsAbs(program) {
		return nil, fmt.Errorf("the notebook program %q is not on this machine", spec.Command[0])
	}
	return append([]string{program}, spec.Command[1:]...), nil
}

// sandboxFor returns the sandbox of an instance.
func (r *Runtime) sandboxFor(ctx context.Context, in *instance, spec runtime.Spec) (*sandbox, error) {
	program := spec.Command[0]
	s := newSandbox(r.tool, r.userOf(spec))
	s.system(spec.Memory, max(spec.Shm, 64))
	if in.Network {
		in.unblock = s.ownNetwork(in.networkFile())
	}
	s.names(fmt.Sprintf("ws-%d", spec.Workspace), in.Network, spec.Outgoing)
	r.bindGPUs(ctx, s, spec.GPUs)
	s.installation(program, r.config.Dir)
	if !spec.MountsHome() {
		s.tmpfs(innerHome, "0755", 0)
	}
	for _, m := range spec.SortedMounts() {
		s.share(m)
	}
	s.bind(in.shared(), innerRun, false)
	r.bindAPI(s, in, spec)
	if !r.commands {
		for name, config := range runtime.JupyterFiles(`sock = "` + innerRun + "/" + socketName + `"`) {
			s.data(runtime.JupyterDir+"/"+name, config)
		}
		for name, content := range runtime.GPUKernelFiles(kernelDir) {
			s.data(kernelDir+"/"+name, content)
		}
	}
	env := environment(program, spec)
	if code := findCodeServer(); code.program != "" && !r.commands {
		s.codeServer(code, r.config.Dir, env)
	}
	env["PATH"] = innerBin + ":" + env["PATH"] // before a weir of another version that is installed on this machine
	if r.commands {
		env[runtime.GraphJournalVariable] = innerRun + "/" + runtime.GraphJournal
	} else {
		env["WEIR_SOCKET"] = innerAPI + "/" + apiSocket
		env["JUPYTER_PATH"] = strings.TrimPrefix(env["JUPYTER_PATH"]+":"+jupyterPath, ":")
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		s.setenv(name, env[name])
	}
	s.add("--chdir", innerHome)
	s.filterCalls()
	if s.err != nil {
		s.close()
	}
	return s, s.err
}

// environment returns the variables of the spec, with defaults below and those of
// this runtime above them.
func environment(program string, spec runtime.Spec) map[string]string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if dir := filepath.Dir(program); dir != "/usr/bin" {
		path = dir + ":" + path
	}
	env := map[string]string{
		"PATH": path,
		"LANG": "C.UTF-8",
		// The root is read-only: pip can only write to the home.
		"PIP_BREAK_SYSTEM_PACKAGES": "1",
	}
	maps.Copy(env, runtime.Threads(spec))
	maps.Copy(env, spec.Env)
	maps.Copy(env, runtime.NotebookEnvironment(spec, innerXDG))
	maps.Copy(env, map[string]string{"SHELL": "/bin/bash", "JUPYTER_TOKEN": spec.Token})
	maps.Copy(env, runtime.GPUEnvironment(spec.GPUs))
	return env
}

// ready reports whether the notebook has responded. Its socket is then linked
// outside of the sandbox: later connections use that socket even if the sandbox
// replaces its own. There is an error only where this process cannot ask.
func (r *Runtime) ready(ctx context.Context, in *instance) (bool, error) {
	if isSocket(in.socket()) {
		return true, nil
	}
	path := filepath.Join(in.shared(), socketName)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, exhausted(err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != cmp.Or(in.UID, r.user.uid) {
		return false, nil
	}
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	if responds, err := serverResponds(ctx, self, in.token()); !responds {
		return false, err
	}
	err = unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, in.socket(), unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		r.config.Logger.Error("cannot keep the notebook's socket", "workspace", in.Workspace, "error", err)
		return false, nil
	}
	return true, nil
}

// exhausted returns an error of this process, not of what it looks at: it is out of
// descriptors or memory. Others are nil.
func exhausted(err error) error {
	for _, own := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.ENOBUFS} {
		if errors.Is(err, own) {
			return err
		}
	}
	return nil
}

// passing reports whether an error is of a shortage that may pass: of descriptors, memory, processes,
// disk space or time.
func passing(err error) bool {
	return exhausted(err) != nil || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EAGAIN) ||
		errors.Is(err, context.DeadlineExceeded)
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// serverResponds reports whether a notebook responds to its status request.
func serverResponds(ctx context.Context, socket, token string) (bool, error) {
	resp, err := runtime.GetNotebook(ctx, models.Endpoint{Network: "unix", Address: socket}, token, "/api/status")
	if err != nil {
		return false, exhausted(err)
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK, nil
}
