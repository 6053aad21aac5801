package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// systemPath is the PATH of system programs, also for a user whose own PATH
// lacks sbin.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// CacheDir is the environment variable for the directory of compiled programs
// and images. The default is weir in the user's cache directory.
const CacheDir = "WEIR_CLUSTER_CACHE"

// cacheDir returns a directory below the cache.
func cacheDir(parts ...string) (string, error) {
	base := os.Getenv(CacheDir)
	if base == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("%w; set %s", err, CacheDir)
		}
		base = filepath.Join(user, "weir")
	}
	return filepath.Join(append([]string{base}, parts...)...), nil
}

// findProgram returns the path of a system program, or "".
func findProgram(name string) string {
	if filepath.IsAbs(name) {
		if _, err := os.Stat(name); err == nil {
			return name
		}
		return ""
	}
	for _, dir := range filepath.SplitList(systemPath) {
		if path := findProgram(filepath.Join(dir, name)); path != "" {
			return path
		}
	}
	return ""
}

// module is a Go module that only lists programs to compile.
type module struct {
	dir      string // below tools
	version  *regexp.Regexp
	packages []string
}

var (
	kubernetes = module{"kubernetes", regexp.MustCompile(`(?m)k8s\.io/kubernetes (v\S+)`), []string{
		"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/cmd/kube-controller-manager",
		"k8s.io/kubernetes/cmd/kube-scheduler", "k8s.io/kubernetes/cmd/kubelet"}}
	kwok = module{"kwok", regexp.MustCompile(`(?m)sigs\.k8s\.io/kwok (v\S+)`), []string{"sigs.k8s.io/kwok/cmd/kwok"}}
)

// programs returns the directory with the programs of Kubernetes, and of KWOK
// if wanted, and compiles them if needed.
func programs(ctx context.Context, withKwok bool, log func(string, ...any)) (string, error) {
	if withKwok {
		if _, err := kwok.programs(ctx, log); err != nil {
			return "", err
		}
	}
	return kubernetes.programs(ctx, log)
}

// programs compiles what is not in the cache. Concurrent callers wait.
func (m module) programs(ctx context.Context, log func(string, ...any)) (string, error) {
	source, version, err := m.source(ctx)
	if err != nil {
		return "", err
	}
	dir, err := cacheDir(m.dir, version)
	if err != nil || m.complete(dir) {
		return dir, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Open(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for %s: %w", dir, err)
	}
	if m.complete(dir) {
		return dir, nil
	}
	log("compiling %s %s, once; this takes minutes", m.dir, version)
	return dir, m.compile(ctx, source, version, dir)
}

// compile builds the programs into dir, each atomically.
func (m module) compile(ctx context.Context, source, version, dir string) error {
	fresh, err := os.MkdirTemp(dir, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	major, minor, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	const at = "k8s.io/component-base/version."
	flags := fmt.Sprintf("-s -w -X %[1]sgitVersion=%[2]s -X %[1]sgitMajor=%[3]s -X %[1]sgitMinor=%[4]s", at, version, major, minor)
	args := append([]string{"build", "-C", source, "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", fresh + "/"},
		m.packages...)
	build := exec.CommandContext(ctx, "go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("compiling %s: %w\n%s", m.dir, err, out)
	}
	for _, name := range m.names() {
		if err := os.Rename(filepath.Join(fresh, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func (m module) names() (names []string) {
	for _, path := range m.packages {
		names = append(names, filepath.Base(path))
	}
	return names
}

func (m module) complete(dir string) bool {
	return !slices.ContainsFunc(m.names(), func(name string) bool { return findProgram(filepath.Join(dir, name)) == "" })
}

// source finds the module next to this one and the version that it requires.
func (m module) source(ctx context.Context) (dir, version string, err error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "weir").Output()
	if err != nil {
		return "", "", fmt.Errorf("finding Weir's source, in whose directories this must run: %w", err)
	}
	dir = filepath.Join(strings.TrimSpace(string(out)), "tools", m.dir)
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", "", err
	}
	found := m.version.FindSubmatch(text)
	if found == nil {
		return "", "", fmt.Errorf("%s/go.mod names no version", dir)
	}
	return dir, string(found[1]), nil
}
