//go:build cluster

package clustertest

import (
	"fmt"
	"testing"

	"weir/models"
	"weir/workspaces/kube"
	"weir/workspaces/runtime"
	"weir/workspaces/runtimetest"
)

func openRuns(t *testing.T, c kube.Config, dir string) *kube.Runs {
	t.Helper()
	r, err := kube.NewRuns(open(t, c), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestConformanceOfRuns(t *testing.T) {
	c, dir := config(t), t.TempDir()
	runtimetest.RunRuns(t, runtimetest.RunsHarness{
		Runs:        openRuns(t, c, dir),
		Reopen:      func(t *testing.T) runtime.Runs { return openRuns(t, c, dir) },
		Spec:        func(*testing.T) runtime.Spec { return script("") },
		Share:       share,
		StepTimeout: patience,
	})
}

// Why a run does not start, or was killed, is told as of workspaces.
func TestWhatTheNodeSaysOfARun(t *testing.T) {
	c := config(t)
	r := openRuns(t, c, t.TempDir())
	missing, greedy, stray := script(""), script(""), script("")
	missing.Image, greedy.Memory, stray.Node = "weir.invalid/no-such-image:1", 128, "no-such-node"
	var states []runtime.State
	for i, s := range []runtime.Spec{missing, stray, greedy} {
		state, err := r.Start(t.Context(), int64(i+1), s, []string{"python3", "-c", "x = b'x' * (1 << 30)"})
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, state)
	}
	await := func(state runtime.State, want string, ok func(runtime.RunStatus) bool) {
		t.Helper()
		var s runtime.RunStatus
		eventually(t, func() string { return fmt.Sprintf("%s: %+v", want, s) }, func() bool {
			var err error
			if s, err = r.Poll(t.Context(), state); err != nil {
				t.Fatal(err)
			}
			return ok(s)
		})
	}
	await(states[0], "no image", func(s runtime.RunStatus) bool {
		return s.Stage == runtime.StageImageFailed && s.Message.String() == models.Say("The node does not have the image %s, and the configuration does not allow pulling it", missing.Image).String()
	})
	await(states[1], "no node", func(s runtime.RunStatus) bool { return s.Stage == runtime.StageScheduling && s.Message.String() != "" })
	await(states[2], "out of memory", func(s runtime.RunStatus) bool { return s.Ended && s.ExitCode == 137 && s.OutOfMemory })
	for _, state := range states[:2] { // what has not started ends without an exit code
		if err := r.Stop(t.Context(), state); err != nil {
			t.Error(err)
		}
		await(state, "stopped", func(s runtime.RunStatus) bool { return s.Ended && s.ExitCode == -1 })
	}
}
