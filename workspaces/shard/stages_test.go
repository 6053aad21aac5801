package shard

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawItems draws items of a model.
func drawItems(t *rapid.T, most int) []Item {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
		return Item{Bytes: rapid.Int64Range(0, 10).Draw(t, "bytes"), FLOPs: float64(rapid.IntRange(0, 20).Draw(t, "flops")), Received: rapid.Int64Range(0, 30).Draw(t, "received")}
	}), 1, most).Draw(t, "items")
}

// drawTargets draws devices of different memory, speed and links.
func drawTargets(t *rapid.T, most int) []Target {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Target {
		return Target{Memory: rapid.Int64Range(0, 60).Draw(t, "memory"), Speed: float64(rapid.IntRange(1, 4).Draw(t, "speed")),
			Link: float64(rapid.IntRange(0, 4).Draw(t, "link")), Fixed: float64(rapid.IntRange(0, 5).Draw(t, "fixed"))}
	}), 1, most).Draw(t, "targets")
}

// feasible reports whether stages place all items once, in order, within the memory of
// different devices.
func feasible(stages []Stage, items []Item, targets []Target, order Order) bool {
	at, used := 0, []int{}
	for _, s := range stages {
		memory := int64(0)
		for _, item := range items[s.From:s.Until] {
			memory += item.Bytes
		}
		if s.From != at || s.Until <= s.From || memory > targets[s.Target].Memory || slices.Contains(used, s.Target) {
			return false
		}
		at, used = s.Until, append(used, s.Target)
	}
	return at == len(items) && (order == AnyOrder || slices.IsSorted(used))
}

// bruteForce tries all ways: each stage on each device that is left, of each length.
func bruteForce(items []Item, targets []Target, order Order) float64 {
	best := math.Inf(1)
	var try func(stages []Stage, at int)
	try = func(stages []Stage, at int) {
		if at == len(items) {
			best = min(best, Bottleneck(stages, items, targets))
			return
		}
		for target := range targets {
			if slices.ContainsFunc(stages, func(s Stage) bool { return s.Target == target || order == InOrder && s.Target > target }) {
				continue
			}
			memory := int64(0)
			for until := at + 1; until <= len(items); until++ {
				if memory += items[until-1].Bytes; memory > targets[target].Memory {
					break
				}
				try(append(slices.Clip(stages), Stage{target, at, until}), until)
			}
		}
	}
	try(nil, 0)
	return best
}

// Stages are as good as the best of all ways, up to 12 items on 4 devices.
func TestStagesAreOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, targets := drawItems(t, 12), drawTargets(t, 4)
		for _, order := range []Order{InOrder, AnyOrder} {
			stages, ok := Stages(items, targets, order)
			best := bruteForce(items, targets, order)
			if ok != !math.IsInf(best, 1) {
				t.Fatalf("order %d: possible: %t, and the best takes %g", order, ok, best)
			}
			if ok && (!feasible(stages, items, targets, order) || Bottleneck(stages, items, targets) != best) {
				t.Fatalf("order %d: %v takes %g, and the best %g", order, stages, Bottleneck(stages, items, targets), best)
			}
		}
	})
}

// Stages are never worse than the same number of items on each device.
func TestStagesBeatUniformSplits(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		items, targets := drawItems(t, 40), drawTargets(t, 8)
		var uniform []Stage
		for i := range targets {
			if from, until := i*len(items)/len(targets), (i+1)*len(items)/len(targets); from < until {
				uniform = append(uniform, Stage{i, from, until})
			}
		}
		if !feasible(uniform, items, targets, InOrder) {
			return
		}
		compared++
		for _, order := range []Order{InOrder, AnyOrder} {
			stages, ok := Stages(items, targets, order)
			if !ok || !feasible(stages, items, targets, order) || Bottleneck(stages, items, targets) > Bottleneck(uniform, items, targets) {
				t.Fatalf("order %d: %v, %t is worse than %v", order, stages, ok, uniform)
			}
		}
	})
	if compared == 0 {
		t.Error("no uniform split was possible")
	}
}

func BenchmarkStages(b *testing.B) {
	items := make([]Item, 128)
	for i := range items {
		items[i] = Item{Bytes: int64(100 + i%7), FLOPs: float64(50 + i%11), Received: 10}
	}
	targets := make([]Target, 16)
	for i := range targets {
		targets[i] = Target{Memory: int64(1000 + 100*(i%3)), Speed: float64(1 + i%2), Link: 5}
	}
	b.Run("128x16 in order", func(b *testing.B) {
		for b.Loop() {
			if _, ok := Stages(items, targets, InOrder); !ok {
				b.Fatal("impossible")
			}
		}
	})
	for i := range targets {
		targets[i].Memory *= 2
	}
	b.Run("128x8 any order", func(b *testing.B) {
		for b.Loop() {
			if _, ok := Stages(items, targets[:MaxReordered], AnyOrder); !ok {
				b.Fatal("impossible")
			}
		}
	})
}
