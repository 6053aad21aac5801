package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"weir/models"
)

// interfaces are the supported notebook programs, best first.
var interfaces = []struct{ program, distribution, name, path string }{
	{"jupyter-lab", "jupyterlab", "JupyterLab", "/lab"},
	{"jupyter-notebook", "notebook", "Jupyter Notebook", "/tree"},
}

// Discover returns the notebook installations of this machine. Their versions are
// determined in a sandbox of the user, as a workspace would run. An installation whose
// check runs out of time is Unchecked.
func Discover(ctx context.Context, uid uint32) []models.Environment {
	user := identity{uid: uid, gid: uid, drop: os.Geteuid() == 0}
	tool, problem := available(user)
	var found []models.Environment
	seen := map[string]bool{}
	reported := map[string]*python{}
	code := checkCodeServer(tool, user, problem)
	for _, kind := range interfaces {
		for _, dir := range programDirs() {
			script := filepath.Join(dir, kind.program)
			if ctx.Err() != nil || !executable(script) {
				continue
			}
			interpreter := interpreterOf(script)
			p := reported[interpreter]
			if p == nil {
				p = queryPython(tool, user, script, interpreter, problem)
				reported[interpreter] = p
			}
			installation := p.installation(dir, interpreter)
			id := installation + ":" + kind.program
			if seen[id] {
				continue
			}
			seen[id] = true
			d := p.describe(id, script, kind.distribution, kind.name, kind.path).With(models.CodeServer, code.version)
			found = append(found, d)
			if code.program != "" && !seen[installation] { // with the best program of an installation
				seen[installation] = true
				found = append(found, code.describe(d, installation))
			}
		}
	}
	return found
}

// python is what an interpreter reported.
type python struct {
	Prefix   string            `json:"prefix"`
	Version  string            `json:"version"`
	Versions map[string]string `json:"versions"`
	problem  models.Text
	timedOut bool // nothing else is known
}

// installation identifies what a program in dir belongs to. Until the interpreter has
// reported it, that is where the interpreter is, as several programs can have the same.
func (p *python) installation(dir, interpreter string) string {
	if p.timedOut {
		dir = filepath.Dir(interpreter)
	}
	return cmp.Or(p.Prefix, filepath.Dir(dir))
}

const versionsScript = `import json, sys
try:
    from importlib import metadata
except ImportError:
    import importlib_metadata as metadata
versions = {}
for name in ("notebook", "jupyterlab", "jupyter_server", "ipykernel", "numpy", "pandas", "scipy",
             "torch", "tensorflow", "jax", "scikit-learn", "matplotlib"):
    try:
        versions[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print("\n" + json.dumps({"prefix": sys.prefix, "version": "%d.%d.%d" % sys.version_info[:3], "versions": versions}))
`

func queryPython(tool bubblewrap, user identity, script, interpreter string, problem error) *python {
	p := &python{timedOut: errors.Is(problem, errTimedOut)}
	if p.timedOut {
		return p
	}
	if problem != nil {
		p.problem = models.Say("%s", problem.Error())
		return p
	}
	if !strings.Contains(filepath.Base(interpreter), "py") {
		p.problem = models.Say("%s does not specify its Python interpreter", script)
		return p
	}
	out, err := runOnce(tool, user, func(s *sandbox) { s.installation(script, "") }, interpreter, "-c", versionsScript)
	if p.timedOut = errors.Is(err, errTimedOut); p.timedOut {
		return p
	}
	if err != nil {
		p.problem = models.Say("the user that runs notebooks cannot run %s: %s", interpreter, firstLine(out, err))
		return p
	}
	last := out[bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1:]
	if err := json.Unmarshal(last, p); err != nil {
		p.problem = models.Say("%s did not report its versions", interpreter)
	}
	return p
}

func (p *python) describe(id, script, distribution, name, path string) models.Environment {
	d := models.Environment{
		DiscoveredKey: &id, Language: "python", LanguageVersion: p.Version, Versions: p.Versions,
		Command: []string{script}, DefaultPath: path, Unavailable: p.problem,
	}
	d.Name = fmt.Sprintf("%s in %s", name, filepath.Dir(script))
	if p.timedOut || !p.problem.Empty() {
		return d
	}
	d.Name = fmt.Sprintf("Python %s · %s %s", minor(p.Version), name, minor(p.Versions[distribution]))
	switch {
	case p.Versions[distribution] == "":
		d.Name = fmt.Sprintf("Python %s · %s", minor(p.Version), name)
		d.Unavailable = models.Say("its Python does not have %s installed", distribution)
	case p.Versions["ipykernel"] == "":
		d.Unavailable = models.Say("it has no Python kernel; install ipykernel")
	}
	return d
}

// describe returns the environment in which a notebook program of an installation opens VS Code.
func (c codeServer) describe(notebook models.Environment, installation string) models.Environment {
	d, id := notebook, installation+":"+models.CodeServer
	d.DiscoveredKey, d.DefaultPath = &id, models.VSCode.Path
	d.Minimum.MemoryMiB, d.Launch.Path = codeMemory, new(models.VSCode.Path) // also where the project has another
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

// codeMemory is the least memory of a workspace that begins with VS Code, in MiB: with a page and a
// terminal open, one used up to 404 MB.
const codeMemory = 512

// minor shortens 3.11.2 to 3.11.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}
