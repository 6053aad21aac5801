package e2e

import (
	"fmt"
	"testing"
)

// A person lists and stops their own workspaces, also all of them, from the command line.
func TestWorkspacesByCommandLine(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:1"})
	team := s.team("keepers", share.times(4), "ada", "bob")
	ada, bob := team.Members[0], team.Members[1]
	own, other := ada.running(team.Project, "train"), bob.running(team.Project, "other")
	sh := s.shell(ada.token)
	sh.says([]string{"train", "running", "keepers"}, "workspaces")
	sh.fails(2, "set --all", "workspaces", "stop")
	sh.fails(2, "set --all", "workspaces", "stop", "--all", fmt.Sprint(own.ID))
	sh.fails(2, `"x" is not the ID of a workspace`, "workspaces", "stop", "x")
	sh.says([]string{fmt.Sprintf("workspace %d is stopping", own.ID)}, "workspaces", "stop", "--all")
	eventually(t, gone, func() string {
		if w := ada.workspace(own.ID); !w.ended() {
			return "it is " + w.State
		}
		return ""
	})
	sh.says([]string{"no workspace to stop"}, "workspaces", "stop", "--all")
	if w := bob.workspace(other.ID); w.State != "running" {
		t.Errorf("somebody else's workspace is %s", w.State)
	}
}
