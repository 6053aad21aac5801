package local

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wheel is a package of Python with a program jupyter-lab, as an index offers it.
func wheel(t *testing.T, version string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	info := "jupyterlab-" + version + ".dist-info/"
	for name, content := range map[string]string{
		"jupyterlab.py":           "def main():\n    print('started')\n",
		info + "METADATA":         "Metadata-Version: 2.1\nName: jupyterlab\nVersion: " + version + "\n",
		info + "WHEEL":            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "entry_points.txt": "[console_scripts]\njupyter-lab = jupyterlab:main\n",
		info + "RECORD":           "",
	} {
		f, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, content)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The script installs JupyterLab once, and leaves nothing where the index cannot be reached. The index
// is a stand-in: no machine of the tests needs to reach PyPI.
func TestInstallJupyterLab(t *testing.T) {
	script, err := os.ReadFile("../../tools/jupyterlab")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^version=(.*)$`).FindStringSubmatch(string(script))[1]
	file := "/jupyterlab-" + version + "-py3-none-any.whl"
	reachable := false
	index := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case reachable && r.URL.Path == "/jupyterlab/":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, `<!DOCTYPE html><a href="%s">%s</a>`, file, file[1:])
		case reachable && r.URL.Path == file:
			w.Write(wheel(t, version))
		default:
			http.NotFound(w, r)
		}
	}))
	defer index.Close()
	prefix := t.TempDir()
	install := func() (string, error) {
		c := exec.CommandContext(t.Context(), "../../tools/jupyterlab")
		c.Env = append(os.Environ(), "PREFIX="+prefix, "PIP_INDEX_URL="+index.URL, "PIP_CONFIG_FILE=/dev/null", "PIP_NO_CACHE_DIR=1")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := install(); err == nil || !strings.Contains(out, "could not be installed") {
		t.Fatalf("without an index: %v\n%s", err, out)
	}
	for _, dir := range []string{"bin", "lib"} {
		if left, err := os.ReadDir(filepath.Join(prefix, dir)); err != nil || len(left) > 0 {
			t.Fatalf("%s has %v, %v", dir, left, err)
		}
	}
	for reachable = true; ; reachable = false { // the second time there is nothing to fetch
		if out, err := install(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := exec.Command(filepath.Join(prefix, "bin/jupyter-lab")).CombinedOutput(); err != nil || string(out) != "started\n" {
			t.Fatalf("%v\n%s", err, out)
		}
		if !reachable {
			break
		}
	}
}
