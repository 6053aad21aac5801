package deployments

import (
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/shard"
)

// Each service type of the program has its split, and what is not known is refused.
func TestPresets(t *testing.T) {
	list, err := Presets()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]models.ModelSplit{}
	for _, p := range list {
		got[p.ServiceType] = p.Split
	}
	for service, split := range map[string]models.ModelSplit{"text-generation": models.SplitLayers, "mixture-of-experts": models.SplitExperts,
		"tensor-parallel": models.SplitHeads, "sequential": models.SplitLayers} {
		if got[service] != split {
			t.Errorf("%s is split by %q", service, got[service])
		}
	}
	for _, combine := range []string{"pass_on", "concatenate", "sum", "vote"} {
		if _, err := parsePresets([]byte("- {service_type: x, split: layers, combine: " + combine + "}")); err != nil {
			t.Error(err)
		}
	}
	for text, reason := range map[string]string{
		"- {service_type: x, split: rows, combine: sum}":             "entry 1: split is not known",
		"- {service_type: x, split: layers, combine: multiply}":      "entry 1: combine is not known",
		"- {split: layers, combine: sum}":                            "entry 1: service_type is missing",
		"- {service_type: x, split: layers, combine: sum, other: 1}": "field other not found",
		"x": "cannot unmarshal",
	} {
		if _, err := parsePresets([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A model without experts is not split by experts by itself, nor one of another kind as text.
func TestPresetsByArchitecture(t *testing.T) {
	list, err := Presets()
	if err != nil {
		t.Fatal(err)
	}
	layers := []models.ModelLayer{{Kind: models.LayerInner, Bytes: 10, MatrixBytes: 10}, {Kind: models.LayerInner, Bytes: 10, MatrixBytes: 10}}
	for architecture, want := range map[string]string{"LlamaForCausalLM": "text-generation", "GPT2LMHeadModel": "text-generation", "ResNetForImageClassification": "image-classification", "Wav2Vec2Model": "sequential", "": "sequential"} {
		plan, err := shard.Plan(models.ModelFacts{Architecture: architecture, Layers: layers, Bytes: 20}, shard.Request{Load: shard.Load{Batch: 1, Context: 1}, Presets: list,
			Devices: []models.ModelDevice{{MemoryBytes: 1, TFLOPS: 1}}})
		if err != nil || plan.ServiceType != want {
			t.Errorf("%s: %+v, %v", architecture, plan, err)
		}
	}
	plan, err := shard.Plan(models.ModelFacts{Architecture: "MixtralForCausalLM", Experts: 8, Layers: layers, Bytes: 20}, shard.Request{Load: shard.Load{Batch: 1, Context: 1}, Presets: list,
		Devices: []models.ModelDevice{{MemoryBytes: 1, TFLOPS: 1}}})
	if err != nil || plan.ServiceType != "mixture-of-experts" {
		t.Errorf("%+v, %v", plan, err)
	}
}
