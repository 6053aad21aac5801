//go:build cluster

package clustertest

import (
	"testing"

	"weir/workspaces/runtime"
)

// A restored installation lists, polls and stops nothing of the generation before it in the
// same namespaces, says what it found, and runs workspaces of the same numbers beside it.
func TestGenerationsInOneCluster(t *testing.T) {
	c := config(t)
	c.Owner = runtime.Owner{Installation: "a1", Generation: 1}
	first := open(t, c)
	state := start(t, first, script("echo up; exec sleep 600"))
	up := func(s runtime.Status) bool { return s.LogTail != "" && s.Phase != runtime.PhaseExited }
	until(t, first, state, "up", up)

	c.Rest, c.Owner.Generation = access(t), 2
	restored := open(t, c)
	if all, err := restored.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("the restored server lists %v, %v", all, err)
	}
	if s, err := restored.Poll(t.Context(), state); err != nil || s.Phase != runtime.PhaseExited {
		t.Errorf("the restored server takes it for its own: %+v, %v", s, err)
	}
	if err := restored.Stop(t.Context(), state); err != nil {
		t.Error(err)
	}
	if found, err := restored.Foreign(); err != nil || len(found) != 1 || found[0].Owner != "a1.1" || found[0].Workspaces != 1 {
		t.Errorf("it finds %+v, %v", found, err)
	}
	own := start(t, restored, script("echo up; exec sleep 600"))
	until(t, restored, own, "up", up)
	if err := restored.Stop(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	until(t, restored, own, "exited", is(runtime.PhaseExited))
	until(t, first, state, "still up", up)
	if all, err := first.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("the original lists %v, %v", all, err)
	}
}
