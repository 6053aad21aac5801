package local

import (
	"os"
	"path/filepath"
	"testing"

	"weir/workspaces/runtime"
)

// A restored copy of a database, with or without a copy of the run directory, takes what
// the original runs for ended, and does not end it.
func TestCopyLeavesTheOriginalAlone(t *testing.T) {
	r := open(t, config(t.TempDir()))
	state := start(t, r, scriptSpec(1, "exec sleep 600"))
	in, err := r.parseState(state)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the sandbox stands", func() bool { return in.sandboxStatus().Child != 0 })
	for name, files := range map[string][]string{"database only": nil, "with the run directory": {"state", "status", "token"}} {
		t.Run(name, func(t *testing.T) {
			twin := open(t, config(t.TempDir()))
			dir := filepath.Join(twin.config.Dir, filepath.Base(in.dir))
			for _, file := range files {
				b, err := os.ReadFile(filepath.Join(in.dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if all, err := twin.List(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("the copy lists %v, %v", all, err)
			}
			if status, err := twin.Poll(t.Context(), state); err != nil || status.Phase != runtime.PhaseExited || status.Endpoint.Address != "" {
				t.Errorf("the copy takes the original's notebook for its own: %v, %v", status, err)
			}
			if err := twin.Stop(t.Context(), state); err != nil || exists(dir) {
				t.Errorf("the copy keeps what it does not run: %v", err)
			}
			if !in.outerAlive() || !in.innerAlive(in.sandboxStatus()) {
				t.Fatal("the copy has ended the original's notebook")
			}
		})
	}
}
