package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		module
		version string
	}{{kubernetes, "v1."}, {kwok, "v0."}} {
		dir, version, err := c.source(t.Context())
		if err != nil || !strings.HasPrefix(version, c.version) {
			t.Errorf("%s: %q, %v", c.dir, version, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "go.sum")); err != nil {
			t.Error(err)
		}
	}
}

// Programs are written atomically, and the compiler's errors are reported.
func TestCompile(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module example.org/m\n\ngo 1.26\n",
		"good/main.go":   "package main\n\nfunc main() {}\n",
		"broken/main.go": "package main\n\nfunc main() { nothing() }\n",
	} {
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m := module{dir: "m", packages: []string{"example.org/m/good"}}
	if m.complete(dir) {
		t.Error("nothing is there and counts as complete")
	}
	if err := m.compile(t.Context(), source, "v1.2.3", dir); err != nil {
		t.Fatal(err)
	}
	if !m.complete(dir) {
		t.Error("what was compiled is not there")
	}
	m.packages = append(m.packages, "example.org/m/broken")
	if err := m.compile(t.Context(), source, "v1.2.3", dir); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("a program that does not compile: %v", err)
	}
	if m.complete(dir) {
		t.Error("half of the programs count as complete")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestCacheDir(t *testing.T) {
	t.Setenv(CacheDir, "/somewhere")
	if dir, err := cacheDir("kubernetes", "v1"); err != nil || dir != "/somewhere/kubernetes/v1" {
		t.Errorf("%q, %v", dir, err)
	}
	t.Setenv(CacheDir, "")
	t.Setenv("XDG_CACHE_HOME", "/cache")
	if dir, err := cacheDir("images"); err != nil || dir != "/cache/weir/images" {
		t.Errorf("%q, %v", dir, err)
	}
}
