package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir/models"
	"weir/workspaces/runtime"
)

// codeServer is an installation of code-server, which serves VS Code.
type codeServer struct {
	program  string // the absolute path of its script, without links; empty: there is none
	root     string // the directory of its package
	node     string // that of the Node that runs the script; empty: the script itself says what does
	version  string
	editor   string      // the version of VS Code in it
	problem  models.Text // why it cannot be used
	timedOut bool        // its check did
}

// findCodeServer returns the first installation of this machine, unchecked.
func findCodeServer() codeServer {
	for _, dir := range programDirs() {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, models.CodeServer))
		if err == nil && executable(program) {
			c := codeServer{program: program, root: packageRoot(program)}
			if node, err := filepath.EvalSymlinks(interpreterOf(program)); err == nil && filepath.Base(node) == "node" {
				c.node = node
			}
			return c
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

// command runs the program by the interpreter with which its modules were compiled.
func (c codeServer) command() []string {
	if c.node == "" {
		return []string{c.program}
	}
	return []string{c.node, c.program}
}

// private reports whether the directory of the package is one that must not be mounted in
// workspaces: with the home of the user who runs the server, or with the run directory.
func (c codeServer) private(runDir string) bool {
	home, err := os.UserHomeDir()
	return contains(c.root, runDir) || err == nil && contains(c.root, home)
}

// codeServer mounts what of an installation is outside of the system, and sets its variables in
// env. A private one is left out.
func (s *sandbox) codeServer(c codeServer, runDir string, env map[string]string) {
	if c.private(runDir) {
		return
	}
	if !inSystem(c.root) {
		s.bind(c.root, c.root, true)
	}
	if c.node != "" && !inSystem(c.node) {
		s.bind(c.node, c.node, true) // the program alone: its directory can be anything
	}
	env[runtime.CodeServerVariable], env[runtime.CodeServerNodeVariable] = c.program, c.node
}

// codeTrial starts the program, waits until it listens, prints its version and ends it: the
// sandbox lasts until its last process has ended.
const codeTrial = `timeout -k 1 9 "$@" --auth none --config /tmp/code.yaml --user-data-dir /tmp/code \
	--socket /tmp/code.sock >/tmp/code.log 2>&1 &
trap 'kill $! 2>/dev/null; wait' EXIT
for i in $(seq 70); do
	if [ -S /tmp/code.sock ]; then "$@" --config /tmp/code.yaml --version; exit; fi
	if ! kill -0 $! 2>/dev/null; then tail -n 1 /tmp/code.log; exit 1; fi
	sleep 0.1
done
exit 124 # as timeout: a busy machine`

// checkCodeServer returns the installation of this machine, if there is one, as it starts in a
// sandbox of the user. problem is why there can be no sandbox.
func checkCodeServer(tool bubblewrap, user identity, problem error) codeServer {
	c := findCodeServer()
	if c.program == "" || problem != nil {
		c.timedOut = errors.Is(problem, errTimedOut)
		return c
	}
	if c.private("") {
		c.problem = models.Say("%s cannot be used: its installation %s contains the home directory", c.program, c.root)
		return c
	}
	of := c.stamp()
	if last := lastCodeCheck(user); last.Of == of {
		c.version, c.editor = last.Version, last.Editor
		return c
	}
	c.try(tool, user)
	if c.version != "" {
		codeCheck{of, c.version, c.editor}.save(user)
	}
	return c
}

// try starts the program in a sandbox of the user.
func (c *codeServer) try(tool bubblewrap, user identity) {
	out, err := runOnce(tool, user, func(s *sandbox) { s.codeServer(*c, "", map[string]string{}) },
		append([]string{"sh", "-c", codeTrial, "sh"}, c.command()...)...)
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
}

// codeCheck is the last check of code-server that succeeded. It takes most of the time in which a
// server starts, so it is not repeated for the same files.
type codeCheck struct{ Of, Version, Editor string }

// stamp identifies the files of an installation.
func (c codeServer) stamp() (stamp string) {
	for _, file := range []string{c.program, c.root, c.node} {
		if info, err := os.Stat(file); err == nil {
			stamp += fmt.Sprintf(" %s %d %d", file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp
}

func codeCheckFile(user identity) (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "weir", fmt.Sprintf("code-server-%d.json", user.uid)), err
}

// lastCodeCheck returns the saved check with a user; empty if there is none.
func lastCodeCheck(user identity) (last codeCheck) {
	if file, err := codeCheckFile(user); err == nil {
		if content, err := os.ReadFile(file); err == nil && json.Unmarshal(content, &last) != nil {
			return codeCheck{}
		}
	}
	return last
}

// save keeps a check, where there is a place for it: it can be repeated.
func (c codeCheck) save(user identity) {
	file, err := codeCheckFile(user)
	if err != nil || os.MkdirAll(filepath.Dir(file), 0o700) != nil {
		return
	}
	content, err := json.Marshal(c)
	if err != nil {
		return
	}
	if f, err := os.CreateTemp(filepath.Dir(file), "code-server"); err == nil {
		_, err = f.Write(content)
		if err = errors.Join(err, f.Close()); err == nil {
			err = os.Rename(f.Name(), file)
		}
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}
}
