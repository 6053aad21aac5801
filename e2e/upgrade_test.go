package e2e

import (
	"reflect"
	"strings"
	"testing"

	"weir/handlers"
)

// A server that opens the database of an earlier version goes on with what runs: the notebook and what is
// in its memory, the workspace that waits, and the history. Version 38 is the first whose workspaces say
// whose they are.
func TestOldDatabase(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		t.Parallel()
		o.gpus = "h100:1"
		s := newServer(t, o)
		team := s.team("old", share.times(4), "ada")
		ada := team.Members[0]
		past := ada.running(team.Project, "past")
		ada.must("POST", workspacePath(past.ID)+"/stop", nil, nil)
		past = ada.await(past.ID, "stopped", gone)
		first, second := ada.running(team.Project, "first"), ada.running(team.Project, "second")
		waiting := launchBody(team.Project, "waits")
		waiting["when_insufficient"] = "wait"
		var waits id
		ada.must("POST", "/workspaces", waiting, &waits)
		ada.await(waits.ID, "queued", gone)
		if out := ada.open(first.ID).execute("x = 42"); out != "" {
			t.Fatalf("the cell printed %q", out)
		}
		before := list[handlers.Workspace](ada.api, "/workspaces?state=all")
		s.kill()
		if code, out, errOut := weir(t, "", s.settings(), "migrate", "--down-to", "38"); code != 0 || !strings.Contains(out, "version 38 of") {
			t.Fatalf("exit code %d: %s%s", code, out, errOut)
		}
		s.start()
		for _, w := range []workspace{first, second} {
			if got := ada.workspace(w.ID); got.State != "running" || got.Name != w.Name {
				t.Errorf("after the upgrade: %+v", got)
			}
		}
		if out := ada.open(first.ID).execute("print(x)"); out != "42\n" {
			t.Errorf("after the upgrade, a cell printed %q", out)
		}
		if got := ada.workspace(waits.ID); got.State != "queued" {
			t.Errorf("what waited is %s", got.State)
		}
		if got := ada.workspace(past.ID); got.State != "stopped" || !got.EndedAt.Equal(past.EndedAt) {
			t.Errorf("what had ended is %+v", got)
		}
		after := list[handlers.Workspace](ada.api, "/workspaces?state=all")
		if len(after) != 4 || len(before) != 4 || !reflect.DeepEqual(after[1].Shares, before[1].Shares) || len(after[1].Shares) != 1 {
			t.Errorf("the workspaces are %+v, and were %+v", after, before)
		}
		ada.must("POST", workspacePath(second.ID)+"/stop", nil, nil)
		ada.await(second.ID, "stopped", gone)
		ada.await(waits.ID, "running", starting) // in the place of the second
	})
}
