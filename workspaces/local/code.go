package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"weir/models"
	"weir/workspaces/runtime"
)

// codeServer is an installation of code-server, which serves VS Code.
type codeServer struct {
	program     string // the absolute path of its script, without links; empty: there is none
	root        string // the directory of its package
	interpreter string // of the script
	version     string
	editor      string      // the version of VS Code in it
	problem     models.Text // why it cannot be used
	timedOut    bool        // its check did
}

// findCodeServer returns the first installation of this machine, unchecked.
func findCodeServer() codeServer {
	for _, dir := range programDirs() {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, models.CodeServer))
		if err == nil && executable(program) {
			return codeServer{program: program, root: packageRoot(program), interpreter: interpreterOf(program)}
		}
	}
	return codeServer{}
}

// packageRoot returns the directory of the package of npm that contains a file, or the node_modules
// with it, where npm puts what it depends on; the directory of the file if no package does.
func packageRoot(file string) string {
	for dir := filepath.Dir(file); dir != "/"; dir = filepath.Dir(dir) {
		content, err := os.ReadFile(filepath.Join(dir, "package.json"))
		var p struct{ Name string }
		if err == nil && json.Unmarshal(content, &p) == nil && p.Name == models.CodeServer {
			if outer := filepath.Dir(dir); filepath.Base(outer) == "node_modules" {
				return outer
			}
			return dir
		}
	}
	return filepath.Dir(file)
}

// codeServer mounts what an installation needs outside of the system, and sets its variables in
// env. One that contains the run directory is left out.
func (s *sandbox) codeServer(c codeServer, runDir string, env map[string]string) {
	dirs := append(installationDirs(c.interpreter), c.root)
	dirs = slices.DeleteFunc(dirs, inSystem)
	if slices.ContainsFunc(dirs, func(dir string) bool { return contains(dir, runDir) }) {
		return
	}
	for _, dir := range dirs {
		s.bind(dir, dir, true)
	}
	env[runtime.CodeServerVariable] = c.program
	if c.interpreter != "" {
		env["PATH"] += ":" + filepath.Dir(c.interpreter)
	}
}

// codeMemory is the least memory of a workspace that begins with VS Code, in MiB: with a page and a
// terminal open, one used up to 404 MB.
const codeMemory = 512

// codeTrial starts the program, waits until it listens, prints its version and ends it: the
// sandbox lasts until its last process has ended.
const codeTrial = `timeout -k 1 8 "$0" --auth none --config /tmp/code.yaml --user-data-dir /tmp/code \
	--socket /tmp/code.sock >/tmp/code.log 2>&1 &
trap 'kill $! 2>/dev/null; wait' EXIT
for i in $(seq 70); do
	if [ -S /tmp/code.sock ]; then "$0" --config /tmp/code.yaml --version; exit; fi
	kill -0 $! 2>/dev/null || break
	sleep 0.1
done
tail -n 1 /tmp/code.log
exit 1`

// checkCodeServer starts the installation of this machine, if there is one, in a sandbox of the
// user. problem is why there can be no sandbox.
func checkCodeServer(tool bubblewrap, user identity, problem error) codeServer {
	c := findCodeServer()
	if c.program == "" || problem != nil {
		c.timedOut = errors.Is(problem, errTimedOut)
		return c
	}
	out, err := runOnce(tool, user, func(s *sandbox) {
		env := map[string]string{"PATH": "/usr/bin:/bin"}
		s.codeServer(c, "", env)
		s.setenv("PATH", env["PATH"])
	}, "sh", "-c", codeTrial, c.program)
	c.timedOut = errors.Is(err, errTimedOut)
	version := strings.Fields(string(out)) // 4.100.3 409c64e0df with Code 1.100.3
	switch {
	case c.timedOut:
	case err != nil:
		c.problem = models.Say("the user that runs notebooks cannot run %s: %s", c.program, firstLine(out, err))
	case len(version) < 2:
		c.problem = models.Say("%s did not report its version", c.program)
	default:
		c.version, c.editor = version[0], version[len(version)-1]
	}
	return c
}

// describe returns the environment in which a notebook program of an installation opens VS Code.
func (c codeServer) describe(notebook models.Environment, installation string) models.Environment {
	d, id := notebook, installation+":"+models.CodeServer
	d.DiscoveredKey, d.DefaultPath = &id, models.VSCode.Path
	d.Minimum.MemoryMiB = codeMemory
	if d.Unavailable.Empty() {
		d.Unavailable = c.problem
		if c.timedOut {
			d.LanguageVersion = "" // it is unchecked
		}
	}
	d.Name = "VS Code in " + filepath.Dir(notebook.Command[0])
	if c.version != "" && d.LanguageVersion != "" {
		d.Name = fmt.Sprintf("Python %s · VS Code %s", minor(d.LanguageVersion), minor(c.editor))
	}
	return d
}
