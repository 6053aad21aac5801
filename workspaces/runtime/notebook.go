package runtime

import (
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"weir/models"
)

// NotebookHome and NotebookUser are the home directory and the user of every
// notebook, and JupyterDir is where it finds the files of [JupyterFiles].
const (
	NotebookHome = "/home/jovyan"
	NotebookUser = "jovyan"
	JupyterDir   = "/etc/weir/jupyter"
)

// Check returns an error for a spec that no runtime can launch.
func (s Spec) Check() error {
	if s.Workspace <= 0 || s.Generation < 0 {
		return fmt.Errorf("a workspace needs a positive id and a generation: workspace %d, generation %d", s.Workspace, s.Generation)
	}
	if len(s.Command) == 0 {
		return errors.New("the environment names no command to run")
	}
	for _, m := range s.Mounts {
		if err := checkTarget(m.Target); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget rejects mounts over the system and over what a runtime mounts.
func checkTarget(target string) error {
	if !path.IsAbs(target) || path.Clean(target) != target || target == "/" || strings.Contains(target, ":") {
		return fmt.Errorf("%q is not a place for a mount", target)
	}
	top := strings.SplitN(target, "/", 3)[1]
	if slices.Contains([]string{"bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "run", "sbin", "sys", "tmp", "usr"}, top) {
		return fmt.Errorf("%s belongs to the system and is not a place for a mount", target)
	}
	return nil
}

// SortedMounts returns the mounts with parents before the directories in them.
func (s Spec) SortedMounts() []models.Mount {
	return slices.SortedFunc(slices.Values(s.Mounts), func(a, b models.Mount) int { return strings.Compare(a.Target, b.Target) })
}

// MountsHome reports whether a shared directory is mounted as the home directory.
func (s Spec) MountsHome() bool {
	return slices.ContainsFunc(s.Mounts, func(m models.Mount) bool { return m.Target == NotebookHome })
}

// Threads returns the variables by which libraries use no more threads than the CPU limit
// feeds. What a person sets instead takes precedence.
func Threads(s Spec) map[string]string {
	if s.CPU == 0 {
		return nil
	}
	return models.ThreadVariables((s.CPU + 999) / 1000)
}

// NotebookEnvironment returns the environment variables of a notebook that take
// precedence over those of its spec. runtimeDir is a private directory for the
// sockets of kernels.
func NotebookEnvironment(s Spec, runtimeDir string) map[string]string {
	env := map[string]string{
		"HOME": NotebookHome, "USER": NotebookUser, "LOGNAME": NotebookUser, "NB_USER": NotebookUser,
		"XDG_RUNTIME_DIR":     runtimeDir,
		"JUPYTER_RUNTIME_DIR": runtimeDir + "/jupyter",
		"JUPYTER_CONFIG_PATH": strings.TrimSuffix(JupyterDir+":"+s.Env["JUPYTER_CONFIG_PATH"], ":"),
	}
	readsHome := func(m models.Mount) bool { return m.Target == NotebookHome && m.ReadOnly }
	if slices.ContainsFunc(s.Mounts, readsHome) { // Jupyter does not start where it cannot create its directories
		env["JUPYTER_CONFIG_DIR"], env["JUPYTER_DATA_DIR"] = runtimeDir+"/jupyter-config", runtimeDir+"/jupyter-data"
		env["JUPYTER_CONFIG_PATH"] += ":" + NotebookHome + "/.jupyter"
		env["JUPYTER_PATH"] = strings.TrimPrefix(s.Env["JUPYTER_PATH"]+":"+NotebookHome+"/.local/share/jupyter", ":")
	}
	return env
}

// activityExtension is a module of Jupyter's server; see [ReadActivity].
//
//go:embed jupyter/weir_activity.py
var activityExtension string

// pagesExtension is a module of Jupyter's server that adds noticeScript to its pages, so that
// an open tab says why its workspace no longer answers.
//
//go:embed jupyter/weir_pages.py
var pagesExtension string

//go:embed jupyter/weir_notice.js
var noticeScript string

// codeExtension is a module of Jupyter's server that serves [models.VSCode].
//
//go:embed jupyter/weir_code.py
var codeExtension string

// pathsModule makes Jupyter start sooner.
//
//go:embed jupyter/weir_paths.py
var pathsModule string

// Variables for codeExtension: the path of code-server, which it otherwise looks for in PATH, and
// that of the program that interprets it; empty: the one in its first line.
const (
	CodeServerVariable     = "WEIR_CODE_SERVER"
	CodeServerNodeVariable = "WEIR_CODE_SERVER_NODE"
)

// jupyterConfig is valid for the classic notebook and for jupyter_server, which
// ignore unknown traits. The token is in the environment.
const jupyterConfig = `import sys
sys.path.append("` + JupyterDir + `")
import weir_paths  # noqa
weir_paths.load()
c = get_config()  # noqa
for app in (c.NotebookApp, c.ServerApp):
    app.base_url = "/"
    app.open_browser = False
    app.quit_button = False
    app.allow_remote_access = True
    app.allow_password_change = False
    app.password_required = False
`

const jupyterConfigEnd = `c.PasswordIdentityProvider.allow_password_change = False
c.KernelManager.transport = "ipc"
c.LabApp.news_url = None
c.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
`

// extensions are the modules above that Jupyter's server loads.
const extensions = `{"weir_activity": true, "weir_code": true, "weir_pages": true}`

// JupyterFiles returns Jupyter's configuration files by name. traits are lines of
// the form "name = value" that set where the server listens.
func JupyterFiles(traits ...string) map[string]string {
	config := jupyterConfig
	for _, trait := range traits {
		config += "    app." + trait + "\n"
	}
	files := map[string]string{
		"weir_activity.py": activityExtension,
		"weir_code.py":     codeExtension,
		"weir_pages.py":    pagesExtension,
		"weir_notice.js":   noticeScript,
		"weir_paths.py":    pathsModule,
		// As JSON, lists of extensions are joined with those of the image and the user.
		"jupyter_notebook_config.json": `{"NotebookApp": {"nbserver_extensions": ` + extensions + `}}`,
		"jupyter_server_config.json":   `{"ServerApp": {"jpserver_extensions": ` + extensions + `}}`,
	}
	for _, program := range []string{"notebook", "server", "lab"} {
		files["jupyter_"+program+"_config.py"] = config + jupyterConfigEnd
	}
	return files
}

// MaxLogTail is the maximum size of a log tail in bytes.
const MaxLogTail = 4 << 10

// MaxLog is the maximum length of the log of a workspace, in bytes.
const MaxLog = 64 << 10

// LogTail returns the end of a log with its secrets masked, in whole lines if
// possible.
func LogTail(log string, secrets ...string) string { return LogEnd(MaxLogTail, log, secrets...) }

// LogEnd is LogTail with another maximum length.
func LogEnd(limit int, log string, secrets ...string) string {
	s := strings.ToValidUTF8(log, "\uFFFD")
	for _, secret := range secrets {
		if secret != "" {
			s = strings.ReplaceAll(s, secret, "[token]")
		}
	}
	if len(s) <= limit {
		return s
	}
	s = s[len(s)-limit:]
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[i+1:]
	}
	return strings.ToValidUTF8(s, "")
}

// ExitMessage describes an exit code. As in shells, a code above 128 stands for a
// signal.
func ExitMessage(code int) models.Text {
	const signaled = 128
	if code > signaled && code <= signaled+64 {
		return models.Say("Jupyter was killed by signal %d", code-signaled)
	}
	return models.Say("Jupyter exited with code %d", code)
}
