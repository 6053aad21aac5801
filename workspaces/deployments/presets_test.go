package deployments

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/workspaces/shard"
)

// ofProgram are the presets of the program.
func ofProgram(t *testing.T) []shard.Preset {
	t.Helper()
	f, err := OpenPresets("", nil)
	if err != nil {
		t.Fatal(err)
	}
	return f.Current()
}

// Presets of a file are added, replaced and removed while it is used; one that is not valid changes
// nothing and is said once.
func TestPresetFile(t *testing.T) {
	path, log := filepath.Join(t.TempDir(), "presets.yaml"), &bytes.Buffer{}
	if _, err := OpenPresets(path, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	at := time.Now()
	write := func(text string) {
		t.Helper()
		at = at.Add(time.Second)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	write("- {service_type: a, split: rows, combine: sum}")
	if _, err := OpenPresets(path, nil); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "split is not known") {
		t.Errorf("got %v", err)
	}
	write("- {service_type: a, split: layers, combine: pass_on}")
	f, err := OpenPresets(path, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	is := func(want string, lines int) {
		t.Helper()
		for range 3 {
			got := ""
			for _, p := range f.Current() {
				got += p.ServiceType + ":" + string(p.Split) + " "
			}
			if n := strings.Count(log.String(), "\n"); got != want || n != lines {
				t.Errorf("they are %q, not %q; %d lines: %s", got, want, n, log)
			}
		}
	}
	is("a:layers ", 0)
	write("- {service_type: b, split: heads, combine: sum}\n- {service_type: a, split: heads, combine: sum}")
	is("b:heads a:heads ", 0)
	write("- {service_type: b, split: heads, combine: sum}\n- {service_type: b, split: layers, combine: pass_on}")
	is("b:heads a:heads ", 1)
	write("- {service_type: b, spl")
	is("b:heads a:heads ", 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	is("b:heads a:heads ", 3)
	write("- {service_type: b, split: layers, combine: pass_on}")
	is("b:layers ", 3)
	write("#" + strings.Repeat(" ", maxPresets))
	is("b:layers ", 4)
	for i, text := range []string{"[]", "- {service_type: b, split: heads, combine: sum}\n---\n- {service_type: c, split: heads, combine: sum}"} {
		write(text)
		is("b:layers ", 5+i)
	}
	if _, err := OpenPresets(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

// Each service type of the program has its split, and what is not known is refused.
func TestPresets(t *testing.T) {
	list := ofProgram(t)
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
		"- {service_type: x, split: rows, combine: sum}":                                                    "entry 1: split is not known",
		"- {service_type: x, split: layers, combine: multiply}":                                             "entry 1: combine is not known",
		"- {split: layers, combine: sum}":                                                                   "entry 1: service_type is missing",
		"- {service_type: x, split: layers, combine: sum, other: 1}":                                        "field other not found",
		"- {service_type: x, split: layers, combine: sum}\n- {service_type: x, split: heads, combine: sum}": "entry 2: service_type occurs twice",
		"x": "cannot unmarshal",
	} {
		if _, err := parsePresets([]byte(text)); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// A model without experts is not split by experts by itself, nor one of another kind as text.
func TestPresetsByArchitecture(t *testing.T) {
	list := ofProgram(t)
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
