package local

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// installation mounts read-only the installations of a program outside the system and of its
// interpreter.
func (s *sandbox) installation(program, runDir string) {
	paths, links := installationOf(program)
	for _, path := range paths {
		if contains(path, runDir) {
			s.fail(fmt.Errorf("%s cannot be used: its installation %s contains the run directory", program, path))
			return
		}
		s.bind(path, path, true)
	}
	for _, link := range links {
		s.add("--symlink", link.to, link.path)
	}
}

// link is a symbolic link to a program.
type link struct{ path, to string }

// installationOf returns what a program and its interpreter need outside the system: their
// installations, outer ones first, and the links by which they are called.
func installationOf(program string) (paths []string, links []link) {
	for _, f := range []string{program, interpreterOf(program)} {
		real, err := filepath.EvalSymlinks(f)
		if err != nil || !filepath.IsAbs(f) {
			continue
		}
		paths = append(paths, installationDirs(real)...)
		if leadsOut(f, real) {
			links = append(links, link{f, real})
		} else {
			paths = append(paths, installationDirs(f)...)
		}
	}
	slices.Sort(paths)
	links = slices.DeleteFunc(links, func(l link) bool {
		return inSystem(filepath.Dir(l.path)) || slices.ContainsFunc(paths, func(path string) bool { return contains(path, l.path) })
	})
	return slices.Compact(paths), links
}

// leadsOut reports whether a program is a link into another directory. Those of a virtual
// environment of Python belong to it.
func leadsOut(program, real string) bool {
	info, err := os.Lstat(program)
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		return false
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(program))
	_, notVirtual := os.Stat(filepath.Join(filepath.Dir(dir), "pyvenv.cfg"))
	return err == nil && notVirtual != nil && dir != filepath.Dir(real)
}

// installationDirs returns the directories of the installation that a program is in. In the home of the
// user who runs the server, and in .local there, those are of programs and libraries only: all else
// is that user's own.
func installationDirs(program string) []string {
	dir := filepath.Dir(program)
	if inSystem(dir) {
		return nil
	}
	bin := filepath.Base(dir) == "bin"
	if bin {
		dir = filepath.Dir(dir)
	}
	switch {
	case dir == "/":
		return nil
	case !personal(dir):
		return []string{dir}
	case bin:
		return slices.DeleteFunc([]string{filepath.Join(dir, "bin"), filepath.Join(dir, "lib")}, func(part string) bool {
			_, err := os.Stat(part)
			return err != nil
		})
	default:
		return []string{program}
	}
}

// personal reports whether a directory contains the home of the user who runs the server, or is .local there.
func personal(dir string) bool {
	home, err := os.UserHomeDir()
	return err == nil && contains(dir, home) || filepath.Base(dir) == ".local"
}

// contains reports whether dir is path, unless that is empty, or a directory above it.
func contains(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && path != "" && !strings.HasPrefix(rel, "..")
}

// longShebang matches how pip writes an interpreter that is too long for a shebang.
var longShebang = regexp.MustCompile(`^'''exec' "?([^"']+?)"? "\$0"`)

// interpreterOf returns the interpreter of a script, or "".
func interpreterOf(script string) string {
	f, err := os.Open(script)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Scan()
	shebang, ok := strings.CutPrefix(lines.Text(), "#!")
	fields := strings.Fields(shebang)
	if !ok || len(fields) == 0 {
		return ""
	}
	switch filepath.Base(fields[0]) {
	case "env":
		path, _ := exec.LookPath(fields[len(fields)-1])
		return path
	case "sh":
		lines.Scan()
		if m := longShebang.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	return fields[0]
}

// inSystem reports whether every sandbox contains a directory.
func inSystem(dir string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64"}, func(system string) bool {
		return dir == system || strings.HasPrefix(dir, system+"/")
	})
}

// programDirs returns the distinct directories that may contain programs.
func programDirs() []string {
	patterns := append(filepath.SplitList(os.Getenv("PATH")), "/usr/bin", "/usr/local/bin", "/opt/*/bin", "/opt/*/envs/*/bin")
	if home, err := os.UserHomeDir(); err == nil {
		patterns = append(patterns, home+"/.local/bin")
		for _, conda := range []string{"miniconda3", "anaconda3", "miniforge3", "mambaforge"} {
			patterns = append(patterns, home+"/"+conda+"/bin", home+"/"+conda+"/envs/*/bin")
		}
	}
	var dirs []string
	for _, pattern := range patterns {
		matches, _ := filepath.Glob(pattern)
		for _, dir := range matches {
			real, err := filepath.EvalSymlinks(dir)
			if err == nil && filepath.IsAbs(real) && !slices.Contains(dirs, real) {
				dirs = append(dirs, real)
			}
		}
	}
	return dirs
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
