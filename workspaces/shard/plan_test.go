package shard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

var testPresets = []Preset{
	{ServiceType: "experts", Split: models.SplitExperts, Combine: models.CombineSum, Architectures: []string{"ForCausalLM"}},
	{ServiceType: "text", Split: models.SplitLayers, Combine: models.CombinePassOn, Architectures: []string{"ForCausalLM"}},
	{ServiceType: "heads", Split: models.SplitHeads, Combine: models.CombineSum, OnRequest: true},
	{ServiceType: "sequential", Split: models.SplitLayers, Combine: models.CombinePassOn},
}

// devices are devices of one machine.
func devices(machine string, bytes ...int64) (list []models.ModelDevice) {
	for i, n := range bytes {
		list = append(list, models.ModelDevice{Name: fmt.Sprintf("%s-%d", machine, i), Machine: machine, MemoryBytes: n, TFLOPS: 100, LinkGBps: 25})
	}
	return list
}

func plan(t *testing.T, f models.ModelFacts, r Request) models.ModelPlan {
	t.Helper()
	r.Presets = testPresets
	p, err := Plan(f, r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// saying reports whether one of the reasons contains a text.
func saying(p models.ModelPlan, text string) bool {
	for _, reason := range p.Reasons {
		if strings.Contains(reason.String(), text) {
			return true
		}
	}
	return false
}

func TestPlan(t *testing.T) {
	dense, moe := read(t, llama(t)).Facts, read(t, mixtral(t)).Facts
	load := Load{Batch: 1, Context: 64}
	need := Memory(dense, load).Total
	p := plan(t, dense, Request{Load: load, Devices: devices("a", need*10/9+200, need*3, need)})
	if !p.Possible || p.Split != models.SplitNone || len(p.Parts) != 1 || p.Parts[0].Device.Name != "a-0" || p.Parts[0].Total != need || !saying(p, "one device is enough") {
		t.Errorf("got %+v", p)
	}
	p = plan(t, dense, Request{Load: load, Devices: devices("a", need, need/2)})
	if !p.Possible || p.ServiceType != "text" || p.Combine != models.CombinePassOn || len(p.Parts) != 2 || p.Parts[0].First != "input" || p.Parts[1].Last != "output" || !saying(p, "The model needs") {
		t.Errorf("got %+v", p)
	}
	p = plan(t, moe, Request{Load: load, Devices: devices("a", 260<<10, 260<<10)})
	if !p.Possible || p.ServiceType != "experts" || p.Combine != models.CombineSum || len(p.Parts) != 2 || p.Parts[0].Until-p.Parts[0].From+p.Parts[1].Until-p.Parts[1].From != 4 {
		t.Errorf("got %+v", p)
	}
	p = plan(t, dense, Request{Load: load, ServiceType: "heads", Devices: devices("a", need*4/5, need*4/5)})
	if !p.Possible || p.Split != models.SplitHeads || len(p.Parts) != 2 || p.Parts[0].Weights >= dense.Bytes*3/5 {
		t.Errorf("got %+v", p)
	}
	p = plan(t, dense, Request{Load: load, Devices: devices("a", need/3, need/3)})
	if p.Possible || len(p.Parts) != 0 || !saying(p, "do not have enough memory: the parts share") {
		t.Errorf("got %+v", p)
	}
	if p = plan(t, dense, Request{Load: load}); p.Possible || !saying(p, "no device with available memory") {
		t.Errorf("got %+v", p)
	}
	for service, reason := range map[string]string{"none": "must be one of experts, text, heads, sequential", "experts": "experts does not suit this model: it needs from 2 to 1024 experts"} {
		_, err := Plan(dense, Request{Load: load, ServiceType: service, Presets: testPresets, Devices: devices("a", 1)})
		if models.KindOf(err) != models.KindInvalid || !strings.Contains(err.Error(), "service_type: "+reason) {
			t.Errorf("got %v", err)
		}
	}
}

// Of the pool, a plan uses the fewest devices, of one machine.
func TestFewestDevices(t *testing.T) {
	f, load := read(t, llama(t)).Facts, Load{Batch: 1, Context: 64}
	need := Memory(f, load).Total
	pool := append(append(devices("a", need, need/20), devices("b", need*2/3, need*2/3, need*2/3, need*2/3)...), devices("c", need/2, need/2)...)
	p := plan(t, f, Request{Load: load, Devices: pool, Fewest: true})
	if !p.Possible || len(p.Parts) != 2 || p.Parts[0].Device.Machine != "b" || p.Parts[1].Device.Machine != "b" || !saying(p, "Fewer devices of one machine") {
		t.Errorf("got %+v", p)
	}
	p = plan(t, f, Request{Load: load, Devices: append(devices("a", need*2/3), devices("b", need*2/3)...), Fewest: true})
	if p.Possible || !saying(p, "No machine has GPUs with enough memory") {
		t.Errorf("got %+v", p)
	}
}

// What is deployed takes the same share of each GPU, so the largest part fits on the smallest of them.
func TestEqualShares(t *testing.T) {
	f, load := read(t, llama(t)).Facts, Load{Batch: 1, Context: 64}
	need := Memory(f, load).Total
	unequal := devices("a", need*19/20, need*9/20)
	if p := plan(t, f, Request{Load: load, Devices: unequal}); !p.Possible {
		t.Errorf("it is to be planned on these as they are: %+v", p)
	}
	if p := plan(t, f, Request{Load: load, Devices: unequal, Fewest: true}); p.Possible || !saying(p, "each with the same share") {
		t.Errorf("got %+v", p)
	}
	p := plan(t, f, Request{Load: load, Devices: append(unequal, devices("b", need*19/20, need*7/10)...), Fewest: true})
	if !p.Possible || len(p.Parts) != 2 || p.Parts[0].Device.Machine != "b" || p.Parts[0].Device.MemoryBytes != need*19/20 {
		t.Errorf("got %+v", p)
	}
}

// Where the experts of a model do not fit beside what each part has of it, it is cut between its layers.
func TestNextSplit(t *testing.T) {
	f, load := read(t, mixtral(t)).Facts, Load{Batch: 1, Context: 64}
	fixed := workload{f, load, Memory(f, load)}.byExperts().fixed()
	layers := workload{f, load, Memory(f, load)}.byLayers()
	largest := int64(0)
	for _, item := range layers.items {
		largest = max(largest, item.Bytes)
	}
	each := (layers.fixed()+largest)*10/9 + 200
	p := plan(t, f, Request{Load: load, Devices: devices("a", each, each, each, each, each, each)})
	if !p.Possible || p.ServiceType != "text" || p.Split != models.SplitLayers || !saying(p, "It is not split as the service type experts: ") {
		t.Errorf("got %+v", p)
	}
	p = plan(t, f, Request{Load: load, ServiceType: "experts", Devices: devices("a", fixed, fixed)})
	if p.Possible || p.ServiceType != "experts" || saying(p, "It is not split") {
		t.Errorf("got %+v", p)
	}
	p = plan(t, f, Request{Load: load, Devices: devices("a", fixed/2, fixed/2)})
	if p.Possible || p.ServiceType != "experts" || !saying(p, "It is not split as the service type text: ") {
		t.Errorf("got %+v", p)
	}
}

// What serves demands of one GPU only takes a whole model and no part of one.
func TestSingleDevices(t *testing.T) {
	f, load := read(t, llama(t)).Facts, Load{Batch: 1, Context: 64}
	need := Memory(f, load).Total
	all := devices("a", need*2, need*2/3, need*2/3)
	for i := range all {
		all[i].Single = i < 2
	}
	leftOut := []models.Text{models.Say("%d devices: %s", 3, "exclusive and in use")}
	r := Request{Load: load, Devices: all, LeftOut: leftOut, Fewest: true}
	if p := plan(t, f, r); !p.Possible || len(p.Parts) != 1 || p.Parts[0].Device.Name != "a-0" || saying(p, "exclusive") {
		t.Errorf("got %+v", p)
	}
	r.Devices = all[1:]
	if p := plan(t, f, r); p.Possible || !saying(p, "1 device is a MIG instance or limited by MPS") || !saying(p, "3 devices: exclusive and in use") {
		t.Errorf("got %+v", p)
	}
	r.Devices = append(all[1:], devices("a", need*2/3)...)
	if p := plan(t, f, r); !p.Possible || len(p.Parts) != 2 || p.Parts[0].Device.Single || p.Parts[1].Device.Single {
		t.Errorf("got %+v", p)
	}
	if r.Devices = nil; !saying(plan(t, f, r), "3 devices: exclusive and in use") {
		t.Error("it is not said why there is none")
	}
}

// A part never needs more than its device has without the margin, parts have every item once, and models
// are cut where a preset allows it.
func TestPlansFit(t *testing.T) {
	all := []models.ModelFacts{read(t, llama(t)).Facts, read(t, mixtral(t)).Facts}
	possible := 0
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(all).Draw(t, "facts")
		f.Tied = rapid.Bool().Draw(t, "tied")
		r := Request{Load: Load{rapid.Int64Range(1, 4).Draw(t, "batch"), rapid.Int64Range(1, 500).Draw(t, "context")}, Presets: testPresets,
			ServiceType: rapid.SampledFrom([]string{"", "sequential", "text", "own"}).Draw(t, "service"), Fewest: rapid.Bool().Draw(t, "fewest")}
		own := Preset{ServiceType: "own", Split: models.SplitLayers, Combine: models.CombinePassOn, OnRequest: true}
		for _, l := range f.Layers {
			if rapid.Bool().Draw(t, l.Name) {
				own.Cuts = append(own.Cuts, l.Name)
			}
		}
		r.Presets = append(slices.Clone(testPresets), own)
		for i, share := range rapid.SliceOfN(rapid.Int64Range(1, 120), 1, 12).Draw(t, "shares") {
			r.Devices = append(r.Devices, devices(fmt.Sprint("m", i/3), f.Bytes*share/100)...)
		}
		p, err := Plan(f, r)
		if err != nil {
			t.Fatal(err)
		}
		at, weights, least := 0, int64(0), int64(math.MaxInt64)
		for _, part := range p.Parts {
			least = min(least, part.Device.MemoryBytes)
		}
		for _, part := range p.Parts {
			if part.From != at || part.Until <= part.From || part.Total > usable(part.Device.MemoryBytes) || r.Fewest && part.Total > usable(least) || part.Total != part.Weights+part.KVCache+part.Activations || part.Seconds > p.Seconds {
				t.Fatalf("part %+v of %+v", part, p)
			}
			if p.ServiceType == "own" && len(own.Cuts) > 0 && part.From > 0 && !slices.Contains(own.Cuts, f.Layers[part.From].Name) {
				t.Fatalf("part %+v begins elsewhere than at %v", part, own.Cuts)
			}
			if p.Split == models.SplitLayers && (part.First != f.Layers[part.From].Name || part.Last != f.Layers[part.Until-1].Name) {
				t.Fatalf("part %+v has other layers", part)
			}
			at, weights = part.Until, weights+part.Weights
		}
		if p.Possible != (len(p.Parts) > 0) || p.Possible && weights < f.Bytes || len(p.Reasons) == 0 {
			t.Fatalf("got %+v", p)
		}
		if p.Possible && p.Split != models.SplitNone {
			possible++
		}
	})
	if possible == 0 {
		t.Error("nothing was split")
	}
}
