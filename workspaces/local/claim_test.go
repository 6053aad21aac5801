package local

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/runtime"
)

// openFor opens a runtime on a directory for a generation.
func openFor(t *testing.T, dir string, owner runtime.Owner) *Runtime {
	t.Helper()
	c := config(dir)
	c.Owner = owner
	return open(t, c)
}

// A server that was killed while it took a run directory starts again.
func TestKilledWhileItClaims(t *testing.T) {
	dir := t.TempDir()
	openFor(t, dir, runtime.Owner{Installation: "a1", Generation: 1})
	second := runtime.Owner{Installation: "a1", Generation: 2}
	if err := os.Rename(dir, aside(dir, "a1.1")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ownerFile+newSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	openFor(t, dir, second)
	if b, err := os.ReadFile(filepath.Join(dir, ownerFile)); err != nil || strings.TrimSpace(string(b)) != second.String() {
		t.Errorf("the owner is %q, %v", b, err)
	}
	if err := os.RemoveAll(aside(dir, "a1.1")); err != nil {
		t.Error(err)
	}
}

// A restored database with the same data directory lists, polls and stops nothing of the
// generation before it, not even with the same numbers, and says what it found. That
// generation finds everything again.
func TestGenerationsInOneDirectory(t *testing.T) {
	dir := t.TempDir()
	first := runtime.Owner{Installation: "a1", Generation: 1}
	second := runtime.Owner{Installation: "a1", Generation: 2}
	original := openFor(t, dir, first)
	state := start(t, original, scriptSpec(1, "exec sleep 600"))
	in, err := original.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	if in.Owner != "a1.1" {
		t.Errorf("the record names the owner %q", in.Owner)
	}
	eventually(t, "the sandbox stands", func() bool { return in.sandboxStatus().Child != 0 })
	lives := func() {
		t.Helper()
		if !in.outerAlive() || !in.innerAlive(bwrapOf(t, in)) {
			t.Fatal("the original's sandbox was ended")
		}
	}

	restored := openFor(t, dir, second)
	if all, err := restored.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the restored server lists %v, %v", all, err)
	}
	if s, err := restored.Poll(t.Context(), state); err != nil || s.Phase != runtime.PhaseExited {
		t.Errorf("the restored server takes it for its own: %+v, %v", s, err)
	}
	if err := restored.Stop(t.Context(), state); err != nil {
		t.Error(err)
	}
	lives()
	found, err := Foreign(second, restored.config.Dir)
	if err != nil || len(found) != 1 || found[0] != (models.Foreign{Owner: "a1.1", Place: restored.config.Dir, Workspaces: 1}) {
		t.Errorf("it finds %+v, %v", found, err)
	}

	// The same numbers again, for the other generation.
	own := start(t, restored, scriptSpec(1, "exec sleep 600"))
	if all, err := restored.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("of its own it lists %v, %v", all, err)
	}
	stop(t, restored, own)
	lives()

	again := openFor(t, dir, first)
	all, err := again.List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("the original lists %v, %v", all, err)
	}
	if _, err := os.Stat(restored.config.Dir + ".a1.2"); err != nil {
		t.Errorf("the other's directory: %v", err)
	}
	stop(t, again, all[0].State)
	if in.outerAlive() {
		t.Error("the original cannot stop its own")
	}
}

// bwrapOf reads the status of a sandbox, wherever its directory is now.
func bwrapOf(t *testing.T, in *instance) bwrapStatus {
	t.Helper()
	moved, err := filepath.Glob(filepath.Dir(in.dir) + "*/" + filepath.Base(in.dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range moved {
		if b, err := os.ReadFile(filepath.Join(dir, "state")); err == nil && strings.Contains(string(b), `"a1.1"`) {
			at := instance{dir: dir}
			return at.sandboxStatus()
		}
	}
	t.Fatalf("the directory of the sandbox is not in %v", moved)
	return bwrapStatus{}
}

// What was started before there were generations is of the first, and of no other.
func TestGenerationOfWhatHasNone(t *testing.T) {
	dir := t.TempDir()
	before := open(t, config(dir))
	state := start(t, before, scriptSpec(1, "exec sleep 600"))
	in, err := before.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(state), "owner") {
		t.Fatalf("the state of an earlier version has an owner: %s", state)
	}
	later := openFor(t, dir, runtime.Owner{Installation: "a1", Generation: 2})
	if all, err := later.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the second generation lists %v, %v", all, err)
	}
	found, err := Foreign(later.config.Owner, later.config.Dir)
	if err != nil || len(found) != 1 || found[0].Owner != "" || found[0].Workspaces != 1 {
		t.Errorf("it finds %+v, %v", found, err)
	}
	upgraded := openFor(t, dir, runtime.Owner{Installation: "a1", Generation: 1})
	if all, err := upgraded.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("the first generation lists %v, %v", all, err)
	}
	if s := poll(t, upgraded, state); s.Phase == runtime.PhaseExited || !in.outerAlive() {
		t.Errorf("the upgraded server takes it for ended: %+v", s)
	}
	stop(t, upgraded, state)
	if in.outerAlive() {
		t.Error("the upgraded server cannot stop it")
	}
}

// What runs in a directory that was moved since is not another's.
func TestMovedDirectoryIsNotForeign(t *testing.T) {
	from, owner := filepath.Join(t.TempDir(), "from"), runtime.Owner{Installation: "a1", Generation: 1}
	state := start(t, openFor(t, from, owner), scriptSpec(1, "exec sleep 600"))
	to := from + "-to"
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
	moved := openFor(t, to, owner)
	if all, err := moved.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("it lists %v, %v", all, err)
	}
	if found, err := Foreign(owner, moved.config.Dir); err != nil || len(found) != 0 {
		t.Errorf("it finds %+v, %v", found, err)
	}
	stop(t, moved, state)
}
