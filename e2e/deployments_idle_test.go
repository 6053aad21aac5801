package e2e

import (
	"fmt"
	"slices"
	"testing"

	"weir/handlers"
	"weir/models"
)

// A deployment without requests for a minute releases its GPUs, which a run can have then. The
// next request is answered with the same tokens as before, also after the server was killed
// with kill -9.
func TestDeploymentWithoutRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t, options{gpus: "h100:2"})
	team := s.team("servers", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 16_000, MemoryMiB: 32_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	dir := ada.writesModel(s, team.Project, "tiny", decoderConfig, decoder(1))
	sh := s.shell(ada.token)
	sh.says([]string{"tiny", "serving"}, "deploy", "--parts", "2", "--context", "64", "--batch", "2", "--idle-minutes", "1",
		"--project", fmt.Sprint(team.Project), dir)
	d := served{t, ada, 1}
	want, ok := d.asks()
	if !ok {
		t.Fatalf("it is not served: %+v", d.get())
	}
	idle := func() {
		t.Helper()
		eventually(t, starting, func() string {
			if v := d.get(); v.State != models.DeploymentIdle || v.Demand.GPUs != 0 || len(s.workers()) != 0 {
				return fmt.Sprintf("%v, %+v", s.workers(), v)
			}
			return ""
		})
	}
	idle()
	sh.says([]string{"two whole GPUs"}, "run", "--project", fmt.Sprint(team.Project), "--gpus", "2", "--", "echo", "two whole GPUs")
	s.kill()
	s.start()
	var c handlers.Completion
	ada.must("POST", "/deployments/1/v1/completions", completionRequest, &c)
	if !slices.Equal(c.Choices[0].TokenIDs, want.Choices[0].TokenIDs) {
		t.Errorf("it generates %v, not %v", c.Choices[0].TokenIDs, want.Choices[0].TokenIDs)
	}
	if v := d.get(); v.State != models.DeploymentServing || v.Demand.GPUs != 2 || v.Parts[0].Restarts != 0 {
		t.Errorf("%+v", v)
	}
	idle()
	d.ends()
}
