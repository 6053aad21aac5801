package placement

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The oracle knows only the rules: it tries every set of devices, adds the
// shares, and looks whether the rules still hold.

func drawDevice(t *rapid.T, id int64) Device {
	d := Device{
		ID:        id,
		Index:     rapid.IntRange(0, 2).Draw(t, "index"),
		Model:     rapid.SampledFrom([]string{h100, h100, a100}).Draw(t, "model"),
		MemoryMiB: rapid.Int64Range(0, 200).Draw(t, "memory"),
		Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
		Mixed:     rapid.Bool().Draw(t, "mixed"),
		Healthy:   rapid.IntRange(0, 5).Draw(t, "healthy") > 0,
	}
	for range rapid.IntRange(0, 2).Draw(t, "shares") {
		d.Shares = append(d.Shares, Share{
			Cores:     rapid.Int64Range(0, 60).Draw(t, "held cores"),
			MemoryMiB: rapid.Int64Range(0, 120).Draw(t, "held memory"),
			Project:   rapid.Int64Range(1, 2).Draw(t, "held by"),
		})
	}
	return d
}

func drawPool(t *rapid.T) Snapshot {
	var s Snapshot
	for i := range rapid.Int64Range(0, 3).Draw(t, "nodes") {
		n := Node{ID: i + 1, Accepting: rapid.IntRange(0, 4).Draw(t, "accepting") > 0}
		for j := range rapid.Int64Range(0, 4).Draw(t, "devices") {
			n.Devices = append(n.Devices, drawDevice(t, 10*(i+1)+j))
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

func drawDemand(t *rapid.T) Demand {
	return Demand{
		GPUs:      rapid.IntRange(0, 3).Draw(t, "gpus"),
		Cores:     rapid.Int64Range(1, 100).Draw(t, "cores"),
		MemoryMiB: rapid.SampledFrom([]int64{0, 0, 1, 20, 50, 90, 150}).Draw(t, "wanted memory"),
		Model:     rapid.SampledFrom([]string{"", "", "h100", "A100"}).Draw(t, "wanted model"),
		Project:   rapid.Int64Range(1, 2).Draw(t, "project"),
	}
}

// broken rules, in the order of the reasons.
func brokenRules(n Node, dev Device, d Demand) []Reason {
	var projects []int64
	var cores, memory int64
	for _, s := range dev.Shares {
		cores, memory, projects = cores+s.Cores, memory+s.MemoryMiB, append(projects, s.Project)
	}
	need := d.MemoryMiB
	if need == 0 {
		need = dev.MemoryMiB * d.Cores / 100
	}
	var reasons []Reason
	check := func(holds bool, r Reason) {
		if !holds {
			reasons = append(reasons, r)
		}
	}
	check(n.Accepting, NodeNotAccepting)
	check(strings.Contains(strings.ToLower(dev.Model), strings.ToLower(d.Model)), WrongModel)
	check(dev.Healthy, Unhealthy)
	check(!dev.Exclusive || len(dev.Shares)+1 == 1, ExclusiveHeld)
	projects = append(projects, d.Project)
	slices.Sort(projects)
	check(dev.Mixed || len(slices.Compact(projects)) == 1, OtherProject)
	check(cores+d.Cores <= 100, TooFewCores)
	check(memory+need <= dev.MemoryMiB, TooLittleMemory)
	return reasons
}

// cost says what the best-fit policy promises to weigh, for one device.
func cost(dev Device, d Demand) []int64 {
	split, foreign, cores, memory := int64(0), int64(1), 100-d.Cores, dev.MemoryMiB-d.memoryOn(&dev)
	if len(dev.Shares) == 0 && d.Cores < 100 {
		split = 1
		if dev.Exclusive {
			split = 2
		}
	}
	for _, s := range dev.Shares {
		cores, memory = cores-s.Cores, memory-s.MemoryMiB
		if s.Project == d.Project {
			foreign = 0
		}
	}
	return []int64{split, foreign, cores, memory}
}

// bruteForce is the least cost of all possible placements, its node last; nil
// if none is possible.
func bruteForce(s Snapshot, d Demand) []int64 {
	var best []int64
	for _, n := range s.Nodes {
		for set := range 1 << len(n.Devices) {
			total, count, possible := []int64{0, 0, 0, 0, n.ID}, 0, true
			for i, dev := range n.Devices {
				if set>>i&1 == 0 {
					continue
				}
				count++
				possible = possible && len(brokenRules(n, dev, d)) == 0
				for k, c := range cost(dev, d) {
					total[k] += c
				}
			}
			if possible && count == d.GPUs && (best == nil || slices.Compare(total, best) < 0) {
				best = total
			}
		}
	}
	return best
}

func TestPlaceAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		if d.GPUs == 0 {
			d.GPUs = 1
		}
		choice, refusal := Place(s, d, BestFit())
		best := bruteForce(s, d)
		if (refusal == nil) != (best != nil) {
			t.Fatalf("refusal %+v, brute force %v", refusal, best)
		}
		if refusal != nil {
			return
		}
		n := s.Nodes[choice.Node-1]
		total := []int64{0, 0, 0, 0, choice.Node}
		for _, g := range choice.Devices {
			i := slices.IndexFunc(n.Devices, func(dev Device) bool { return dev.ID == g.Device })
			for k, c := range cost(n.Devices[i], d) {
				total[k] += c
			}
		}
		if !slices.Equal(total, best) {
			t.Fatalf("costs %v, brute force %v", total, best)
		}
		e := choice.Explanation
		if e.LeftoverCores != best[2] || e.LeftoverMemoryMiB != best[3] {
			t.Fatalf("explanation %+v, brute force %v", e, best)
		}
	})
}

func TestLargestAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		var wantCores, wantMemory int64
		for c := d.Cores; c > 0 && wantCores == 0; c-- {
			smaller := d
			smaller.Cores = c
			if d.MemoryMiB > 0 {
				smaller.MemoryMiB = max(d.MemoryMiB*c/d.Cores, 1)
			}
			if d.GPUs == 0 || bruteForce(s, smaller) != nil {
				wantCores, wantMemory = c, smaller.MemoryMiB
			}
		}
		cores, memory := Largest(s, d)
		if cores != wantCores || memory != wantMemory {
			t.Fatalf("%d cores %d MiB, brute force %d and %d", cores, memory, wantCores, wantMemory)
		}
	})
}

func TestFiltersAgreeWithRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		d.GPUs = 1
		for _, n := range s.Nodes {
			for _, dev := range n.Devices {
				alone := n
				alone.Devices = []Device{dev}
				got := Fits
				if _, refusal := Place(pool(alone), d, Policy{}); refusal != nil {
					got = refusal.Reason
				}
				want := append(brokenRules(n, dev, d), Fits)[0]
				if got != want {
					t.Fatalf("%+v: %v, want %v", dev, got, want)
				}
			}
		}
	})
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		whole := rapid.Int64Range(1, 100).Draw(t, "whole")
		part := rapid.Int64Range(0, whole).Draw(t, "part")
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(part))
		want.Div(want, big.NewInt(whole))
		if got := scale(n, part, whole); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("%d·%d/%d = %d, want %v", n, part, whole, got, want)
		}
	})
}
