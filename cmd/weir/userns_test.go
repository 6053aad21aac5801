package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"weir/cmd/weir/config"
	"weir/storage/rules"
)

func TestMapOfSubordinateIDs(t *testing.T) {
	cfg := config.Config{SandboxUID: 62_000, IDRange: rules.IDRange{First: 1_000_000, Last: 1_019_999}}
	for content, want := range map[string][]idMap{
		"ann:100000:5000": {{0, 7, 1}, {62_000, 100_000, 1}, {1_000_000, 100_001, 4_999}},
		"ben:1:9000\nann:5:1\n1007:100000:65536\n:::\nx": {{0, 7, 1}, {62_000, 100_000, 1}, {1_000_000, 100_001, 20_000}},
		"ann:100000:999":   nil,
		"ben:100000:65536": nil,
		"":                 nil,
	} {
		file := filepath.Join(t.TempDir(), "subuid")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := namespaceMap(cfg, 7, file, "ann", "1007")
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", content, got, err, want)
		}
	}
	if _, err := namespaceMap(cfg, 7, "/nowhere", "ann"); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("without a file: %v", err)
	}
}

func TestLastMappedID(t *testing.T) {
	maps := []idMap{{0, 5, 1}, {100, 900, 50}}
	for first, want := range map[int64]int64{0: 0, 1: 0, 100: 149, 149: 149, 150: 149, 99: 98} {
		if got := lastMapped(maps, first); got != want {
			t.Errorf("%d: %d, want %d", first, got, want)
		}
	}
}

// TestNamespaceChild is a command of TestConcurrentCommandsShareOneNamespace.
func TestNamespaceChild(t *testing.T) {
	if os.Getenv("WEIR_TEST_NAMESPACE") == "" {
		return
	}
	subordinate := idMap{62_000, 720_000, 1000}
	pid, err := sharedNamespace([]idMap{{0, int64(os.Getuid()), 1}, subordinate}, []idMap{{0, int64(os.Getgid()), 1}, subordinate})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("namespace", pid)
}

// Commands that an ordinary user starts at once get into one user namespace, as do later ones.
func TestConcurrentCommandsShareOneNamespace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start commands as another user")
	}
	file := filepath.Join(t.TempDir(), "subordinate")
	if err := os.WriteFile(file, []byte("games:720000:1000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	const script = `mount --bind "$1" /etc/subuid && mount --bind "$1" /etc/subgid || exit
run() { setpriv --reuid games --regid games --clear-groups /proc/self/fd/3 -test.run '^TestNamespaceChild$'; }
for n in 1 2 3 4 5 6 7 8; do run & done; wait; run`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", file)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", append(os.Environ(), "WEIR_TEST_NAMESPACE=1"), []*os.File{program}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if pid, ok := strings.CutPrefix(line, "namespace "); ok {
			found = append(found, strings.TrimSpace(pid))
		}
	}
	commands := len(found)
	slices.Sort(found)
	found = slices.Compact(found)
	for _, name := range found {
		if pid, err := strconv.Atoi(name); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if commands != 9 || len(found) != 1 {
		t.Errorf("%d commands got into the namespaces %v: %s", commands, found, out)
	}
}
