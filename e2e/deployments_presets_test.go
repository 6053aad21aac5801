package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/handlers"
)

// Presets of splits are added, replaced and removed while deployments serve, which go on as they were
// planned. So are those of a project, by which models are cut where somebody has said.
func TestDeploymentPresets(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "presets.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("- {service_type: halves, split: layers, combine: pass_on}\n- {service_type: shared, split: heads, combine: sum}\n")
	s := newServer(t, options{gpus: "h100:4", args: []string{"--split-presets", file}})
	team := s.team("presets", resources{GPUCores: 300, GPUMemoryMiB: 80_000, CPUMilli: 32_000, MemoryMiB: 64_000, StorageMiB: 1000}, "ada")
	ada := team.Members[0]
	dir := ada.writesModel(s, team.Project, "tiny", decoderConfig, decoder(1))
	one, two := ada.deploy(t, team.Project, 2, "halves"), ada.deploy(t, team.Project, 2, "shared")
	want, ok := one.asks()
	if !ok {
		t.Fatalf("%+v", one.get())
	}
	two.same(want)
	refused := func(kind, reason string) {
		t.Helper()
		status, body, err := ada.raw("POST", "/deployments", map[string]any{"project_id": team.Project, "path": dir, "parts": 2, "service_type": kind})
		if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(string(body), reason) {
			t.Errorf("%s: %d %s, %v", kind, status, body, err)
		}
	}
	write("- {service_type: shared, split: layers, combine: pass_on}\n- {service_type: voted, split: layers, combine: vote}\n")
	refused("halves", "must be one of shared, voted")
	refused("voted", "must be split by layers with pass_on")
	three := ada.deploy(t, team.Project, 2, "shared")
	for _, d := range []served{one, two, three} {
		d.same(want)
	}
	ada.must("POST", fmt.Sprintf("/projects/%d/split-presets", team.Project), map[string]any{"service_type": "late", "split": "layers",
		"combine": "pass_on", "cuts": []string{"model.layers.3"}}, nil)
	late := ada.deploy(t, team.Project, 2, "late")
	late.same(want)
	var plans []string
	for _, d := range []served{one, two, three, late} {
		var v handlers.Deployment
		ada.must("GET", fmt.Sprintf("/deployments/%d", d.id), nil, &v)
		plans = append(plans, v.ServiceType+" "+v.Parts[0].First+" "+v.Parts[1].First)
	}
	if !slices.Equal(plans, []string{"halves input model.layers.2", "shared 0 2", "shared input model.layers.2", "late input model.layers.3"}) {
		t.Errorf("%q", plans)
	}
	write("- {service_type: shared, spl")
	ada.deploy(t, team.Project, 2, "shared").same(want)
	ada.stopsDeployments(t, s)
}
