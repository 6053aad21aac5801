package runtime

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// What stands in for IPython.paths names the same directory without IPython, and gives way to the
// module itself as soon as something else needs more of it.
func TestPathsStandIn(t *testing.T) {
	dir, home := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "weir_paths.py"), []byte(pathsModule), 0o600); err != nil {
		t.Fatal(err)
	}
	python := jupyterPython(t)
	for _, env := range []string{"IPYTHONDIR=" + home + "/of-mine", "LANG=C.UTF-8"} {
		cmd := exec.CommandContext(t.Context(), python, "-c", `
import sys
import weir_paths
weir_paths.load()
from IPython.paths import get_ipython_dir
named = get_ipython_dir()
assert "IPython" not in sys.modules, "all of IPython was imported for a name"
from IPython.core.interactiveshell import InteractiveShell
from IPython.paths import get_ipython_cache_dir, get_ipython_dir as real
assert sys.modules["IPython.paths"].__file__ and real is not get_ipython_dir, "the stand-in is still there"
assert named == real(), (named, real())
weir_paths.load()
assert sys.modules["IPython.paths"].get_ipython_dir is real, "it replaces the module"
`)
		cmd.Env = []string{"PYTHONPATH=" + dir, "HOME=" + home, env}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", env, err, out)
		}
	}
}
