package occupancy

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir/pool/placement"
)

const (
	h100 = "NVIDIA H100 80GB HBM3"
	a100 = "NVIDIA A100-SXM4-40GB"
)

func drawPool(t *rapid.T) (s placement.Snapshot) {
	for i := range rapid.Int64Range(0, 3).Draw(t, "nodes") {
		n := placement.Node{ID: i + 1, Accepting: rapid.IntRange(0, 4).Draw(t, "accepting") > 0}
		for j := range rapid.Int64Range(0, 3).Draw(t, "devices") {
			d := placement.Device{ID: 10*(i+1) + j, Index: int(j), MemoryMiB: 100,
				Model:     rapid.SampledFrom([]string{h100, h100, a100}).Draw(t, "model"),
				Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
				Mixed:     rapid.Bool().Draw(t, "mixed"), Healthy: rapid.IntRange(0, 5).Draw(t, "healthy") > 0}
			for range rapid.IntRange(0, 2).Draw(t, "shares") {
				d.Shares = append(d.Shares, placement.Share{Cores: rapid.Int64Range(0, 60).Draw(t, "in_use"),
					Project: rapid.Int64Range(1, 2).Draw(t, "by"), Holder: rapid.Int64Range(-3, -1).Draw(t, "holder")})
			}
			n.Devices = append(n.Devices, d)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func drawDemand(t *rapid.T) placement.Demand {
	return placement.Demand{GPUs: rapid.IntRange(-1, 3).Draw(t, "gpus"), Cores: rapid.Int64Range(0, 101).Draw(t, "cores"),
		MemoryMiB: rapid.SampledFrom([]int64{0, 0, 10, 80}).Draw(t, "memory"),
		Model:     rapid.SampledFrom([]string{"", "h100", "a100", "b200"}).Draw(t, "requested"),
		Project:   rapid.Int64Range(1, 2).Draw(t, "project")}
}

// Whatever has come and gone, a pool answers as Place does on its nodes.
func TestAnswersAreThoseOfPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		p := New(s)
		var holders []int64
		for holder := range rapid.Int64Range(1, 12).Draw(t, "steps") {
			if len(holders) > 0 && rapid.Bool().Draw(t, "one leaves") {
				p.Leave(holders[0])
				holders = holders[1:]
			}
			d := drawDemand(t)
			barred := rapid.SliceOfN(rapid.Int64Range(10, 33), 0, 3).Draw(t, "barred")
			asked := Clone(placement.Snapshot{Nodes: p.Nodes()})
			for i := range asked.Nodes {
				for j := range asked.Nodes[i].Devices {
					dev := &asked.Nodes[i].Devices[j]
					dev.NotLent = slices.Contains(barred, dev.ID)
				}
			}
			want, refusal := placement.Place(asked, d, placement.BestFit())
			got, ok := p.Find(d, placement.BestFit(), barred...)
			if ok != (refusal == nil) || got.Node != want.Node || !slices.Equal(got.Devices, want.Devices) {
				t.Fatalf("%+v goes to %+v %v, want %+v %v", d, got, ok, want, refusal)
			}
			if nodes := all(p); d.GPUs != 0 && ok && !p.Could(nodes, d) {
				t.Fatalf("%+v goes to %+v, which it could not", d, got)
			}
			if on := got.Node; ok && on != 0 {
				p.Take(got, d.Project, holder)
				holders = append(holders, holder)
			}
		}
	})
}

func all(p *Pool) (nodes []int) {
	for i := range p.Nodes() {
		nodes = append(nodes, i)
	}
	return nodes
}

func TestTakeAndLeave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { takeAndLeave(t, drawPool(t), drawDemand(t)) })
}

// The device that nobody held is behind others that cannot be used, on a
// machine that is not the first.
func TestTakeAndLeaveTheLastDevice(t *testing.T) {
	gpu := func(id int64, healthy bool) placement.Device {
		return placement.Device{ID: id, Index: int(id % 10), MemoryMiB: 100, Model: h100, Healthy: healthy}
	}
	s := placement.Snapshot{Nodes: []placement.Node{{ID: 1},
		{ID: 2, Accepting: true, Devices: []placement.Device{gpu(20, false), gpu(21, false), gpu(22, true)}}}}
	if !takeAndLeave(t, s, placement.Demand{GPUs: 1, Cores: 1, Project: 1}) {
		t.Error("nothing was taken")
	}
}

// takeAndLeave places a demand, if it can be, and takes it back.
func takeAndLeave(t interface{ Fatalf(string, ...any) }, s placement.Snapshot, d placement.Demand) bool {
	p := New(s)
	choice, ok := p.Find(d, placement.BestFit())
	if !ok || d.GPUs == 0 {
		return false
	}
	p.Take(choice, d.Project, 7)
	parts := p.Leave(7)
	if after := fmt.Sprint(p.Nodes()); after != fmt.Sprint(s.Nodes) {
		t.Fatalf("what was taken and given back left a trace: %s", after)
	}
	if len(parts) != d.GPUs || s.Nodes[parts[0].Node].ID != choice.Node {
		t.Fatalf("%+v was given back of %+v", parts, choice)
	}
	if len(p.Leave(7)) > 0 {
		t.Fatalf("left twice")
	}
	return true
}

func TestFindOn(t *testing.T) {
	gpu := func(id int64) placement.Device {
		return placement.Device{ID: id, Model: h100, MemoryMiB: 100, Healthy: true}
	}
	s := placement.Snapshot{Nodes: []placement.Node{{ID: 1, Accepting: true, Devices: []placement.Device{gpu(11)}},
		{ID: 2, Accepting: true, Devices: []placement.Device{gpu(21)}}, {ID: 3, Devices: []placement.Device{gpu(31)}}}}
	d := placement.Demand{GPUs: 1, Cores: 50}
	for _, c := range []struct {
		nodes []int
		node  int64
	}{{[]int{1}, 2}, {[]int{0, 1}, 1}, {[]int{2}, 0}, {nil, 0}} {
		if choice, ok := New(s).FindOn(c.nodes, d, placement.BestFit()); choice.Node != c.node || ok != (c.node != 0) {
			t.Errorf("on %v: node %d, %v", c.nodes, choice.Node, ok)
		}
		if could := New(s).Could(c.nodes, d); could != (c.node != 0) {
			t.Errorf("on %v: could %v", c.nodes, could)
		}
	}
}

func TestEmpty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		before := Clone(s)
		if inUse := placement.Capacity(Empty(s)).CoresInUse; inUse != 0 {
			t.Fatalf("%d cores are in use", inUse)
		}
		if !reflect.DeepEqual(before, Clone(s)) {
			t.Fatal("the snapshot itself has changed")
		}
	})
}

func BenchmarkFind(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	s := placement.Snapshot{Nodes: make([]placement.Node, 200)}
	for i := range s.Nodes {
		s.Nodes[i] = placement.Node{ID: int64(i + 1), Accepting: true}
		for j := range 8 {
			s.Nodes[i].Devices = append(s.Nodes[i].Devices, placement.Device{ID: int64(8*i + j), Index: j, Model: h100, MemoryMiB: 81920,
				Healthy: true, Shares: []placement.Share{{Cores: 20 * r.Int63n(6), Project: r.Int63n(20)}}})
		}
	}
	p := New(s)
	for name, d := range map[string]placement.Demand{"fraction": {GPUs: 1, Cores: 30, Project: 7, Model: "h100"}, "four": {GPUs: 4, Cores: 100, Project: 7}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Find(d, placement.BestFit())
			}
		})
	}
}
