package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces"
)

// jupyterConfig suits the classic notebook and everything on jupyter_server;
// what one of them does not know it ignores. The token is not in it: Jupyter
// takes that from its environment.
const jupyterConfig = `c = get_config()  # noqa
for app in (c.NotebookApp, c.ServerApp):
    app.sock = "` + innerRun + `/` + socketName + `"
    app.base_url = "/"
    app.open_browser = False
    app.quit_button = False
    app.allow_remote_access = True
    app.allow_password_change = False
    app.password_required = False
c.PasswordIdentityProvider.allow_password_change = False
c.KernelManager.transport = "ipc"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
`

// configNames are the names under which the programs look for it.
var configNames = []string{"jupyter_notebook_config.py", "jupyter_server_config.py", "jupyter_lab_config.py"}

// checkSpec refuses a spec that cannot be run as it is, and returns its command
// with the program found.
func checkSpec(spec workspaces.Spec) ([]string, error) {
	if spec.Workspace <= 0 || spec.Generation < 0 {
		return nil, errors.New("a workspace needs a positive id and a generation")
	}
	if len(spec.Command) == 0 {
		return nil, errors.New("the environment names no command to run")
	}
	for _, m := range spec.Mounts {
		if err := checkTarget(m.Target); err != nil {
			return nil, err
		}
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

// checkTarget keeps mounts away from what the sandbox itself is made of.
func checkTarget(target string) error {
	if !filepath.IsAbs(target) || filepath.Clean(target) != target || target == "/" {
		return fmt.Errorf("%q is not a place for a mount", target)
	}
	top := strings.SplitN(target, "/", 3)[1]
	if slices.Contains([]string{"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "usr"}, top) {
		return fmt.Errorf("%s belongs to the system and is not a place for a mount", target)
	}
	return nil
}

// sandboxFor describes the sandbox of one instance.
func (r *Runtime) sandboxFor(ctx context.Context, in *instance, spec workspaces.Spec) (*sandbox, error) {
	program := spec.Command[0]
	s := newSandbox(r.tool, r.user)
	s.system(spec.Memory, max(spec.Shm, 64))
	s.hostname(fmt.Sprintf("ws-%d", spec.Workspace))
	r.showGPUs(ctx, s, spec.GPUs)
	s.installation(program, r.dir)
	s.mounts(spec.Mounts)
	s.bind(in.shared(), innerRun, false)
	for _, name := range configNames {
		s.data(innerEtc+"/jupyter/"+name, jupyterConfig)
	}
	env := environment(program, spec)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		s.setenv(name, env[name])
	}
	s.add("--chdir", innerHome)
	if s.err != nil {
		s.close()
	}
	return s, s.err
}

// mounts shows the shared directories, outer ones before those inside them.
func (s *sandbox) mounts(mounts []models.Mount) {
	mounts = slices.SortedFunc(slices.Values(mounts), func(a, b models.Mount) int {
		return strings.Compare(a.Target, b.Target)
	})
	home := slices.ContainsFunc(mounts, func(m models.Mount) bool { return m.Target == innerHome })
	if !home {
		s.tmpfs(innerHome, "0755", 0)
	}
	for _, m := range mounts {
		s.bind(m.Source, m.Target, m.ReadOnly)
	}
}

// environment is the spec's, over what every notebook needs, under what this
// runtime decides.
func environment(program string, spec workspaces.Spec) map[string]string {
	path := "/usr/local/bin:/usr/bin:/bin"
	if dir := filepath.Dir(program); dir != "/usr/bin" {
		path = dir + ":" + path
	}
	env := map[string]string{
		"PATH": path,
		"LANG": "C.UTF-8",
		// The system is read-only inside: pip can only write to the home.
		"PIP_BREAK_SYSTEM_PACKAGES": "1",
	}
	maps.Copy(env, spec.Env)
	maps.Copy(env, map[string]string{
		"HOME": innerHome, "USER": innerUser, "LOGNAME": innerUser, "NB_USER": innerUser,
		"SHELL":               "/bin/bash",
		"XDG_RUNTIME_DIR":     innerXDG,
		"JUPYTER_RUNTIME_DIR": innerXDG + "/jupyter",
		"JUPYTER_CONFIG_PATH": strings.TrimSuffix(innerEtc+"/jupyter:"+env["JUPYTER_CONFIG_PATH"], ":"),
		"JUPYTER_TOKEN":       spec.Token,
	})
	maps.Copy(env, workspaces.GPUEnvironment(spec.GPUs))
	return env
}

// ready reports whether the notebook has answered. The first time it does, its
// socket is linked to where the sandbox cannot reach: what is dialled later
// is that very socket, whatever the sandbox puts in its place.
func (r *Runtime) ready(ctx context.Context, in *instance) bool {
	if isSocket(in.socket()) {
		return true
	}
	path := filepath.Join(in.shared(), socketName)
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK || st.Uid != r.user.uid {
		return false
	}
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	if !answers(ctx, self, in.token()) {
		return false
	}
	err = unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, in.socket(), unix.AT_SYMLINK_FOLLOW)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		r.log.Error("cannot keep the notebook's socket", "workspace", in.Workspace, "error", err)
		return false
	}
	return true
}

func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// answers asks a notebook whether it is up.
func answers(ctx context.Context, socket, token string) bool {
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives:      true,
			MaxResponseHeaderBytes: 64 << 10,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", socket)
			},
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/status", nil)
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "token "+token)
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// maxSocketPath is what fits into a socket address.
const maxSocketPath = 107

// endpoint is where this process dials the notebook.
func (r *Runtime) endpoint(in *instance) models.Endpoint {
	address := in.socket()
	if len(address) > maxSocketPath {
		address = fmt.Sprintf("/proc/self/fd/%d/%s/%s", r.root.Fd(), filepath.Base(in.dir), socketName)
	}
	return models.Endpoint{Network: "unix", Address: address}
}
