package shard

import (
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

// TestUseAll has equal devices all be used, as far as there are items, and the slowest stage
// be no slower for it.
func TestUseAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := work{items: drawItems(t, 8)}
		for range v.items {
			v.pieces = append(v.pieces, piece{})
		}
		n := rapid.IntRange(1, 10).Draw(t, "devices")
		devices := devicesLike(models.ModelDevice{MemoryBytes: rapid.Int64Range(20, 200).Draw(t, "memory"), TFLOPS: 1}, n)
		stages, ok := Stages(v.items, v.targets(devices), InOrder)
		if !ok {
			t.Skip("the memory is too little")
		}
		all := v.useAll(stages, devices)
		if !feasible(all, v.items, v.targets(devices), AnyOrder) {
			t.Fatalf("%v is not a division of %v", all, v.items)
		}
		if got, want := v.bottleneck(all, devices), v.bottleneck(stages, devices); got > want {
			t.Fatalf("the slowest of %v takes %g, and of %v %g", all, got, stages, want)
		}
		if len(all) != min(len(devices), len(v.items)) {
			t.Fatalf("%d devices are used of %d for %d items", len(all), len(devices), len(v.items))
		}
	})
}

func devicesLike(d models.ModelDevice, n int) (list []models.ModelDevice) {
	for range n {
		list = append(list, d)
	}
	return list
}
