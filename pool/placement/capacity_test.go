package placement

import (
	"math"
	"testing"
)

func TestCapacity(t *testing.T) {
	got := Capacity(pool(
		node(1, gpu(11), gpu(12, inUse(7, 30), inUse(8, 20)), exclusive(gpu(13, inUse(7, 40)))),
		node(2, broken(gpu(21))),
		closed(node(3, gpu(31, inUse(7, 10)))),
		unreachable(node(4, limited(50, gpu(41)))),
	))
	want := Totals{
		GPUs: 6, Cores: 550, FreeCores: 150, CoresInUse: 100,
		MemoryMiB: 480_000, FreeMemoryMiB: 120_000, MemoryMiBInUse: 80_000,
		LargestFreeCores: 100,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFree(t *testing.T) {
	for name, c := range map[string]struct {
		device        Device
		cores, memory int64
	}{
		"idle":             {gpu(1), 100, 80_000},
		"used":             {gpu(1, inUse(7, 30)), 70, 56_000},
		"exclusive idle":   {exclusive(gpu(1)), 100, 80_000},
		"exclusive in use": {exclusive(gpu(1, inUse(7, 30))), 0, 0},
		"unhealthy":        {broken(gpu(1)), 0, 0},
		"overcommitted":    {gpu(1, inUse(7, 80), inUse(7, 80)), 0, 0},
		"negative share":   {gpu(1, Share{Cores: -50, MemoryMiB: -50}), 100, 80_000},
		"overflowing":      {gpu(1, Share{Cores: math.MaxInt64, MemoryMiB: math.MaxInt64}, inUse(7, 1)), 0, 0},
		"changing":         {changing(gpu(1)), 0, 0},
		"not lent":         {notLent(gpu(1)), 0, 0},
		"limited":          {limited(40, gpu(1, inUse(7, 30))), 10, 56_000},
		"less than none":   {Device{Healthy: true, MemoryMiB: -9}, 100, 0},
	} {
		if cores, memory := Free(c.device); cores != c.cores || memory != c.memory {
			t.Errorf("%s: %d cores %d MiB, want %d and %d", name, cores, memory, c.cores, c.memory)
		}
	}
}

func TestLargest(t *testing.T) {
	crowded := pool(node(1, gpu(11, inUse(7, 60)), gpu(12, inUse(7, 75))), node(2, gpu(21, inUse(8, 1))))
	for name, c := range map[string]struct {
		pool          Snapshot
		demand        Demand
		cores, memory int64
	}{
		"all of it":           {pool(node(1, gpu(11))), want(nil), 30, 0},
		"what one device has": {crowded, want(cores(50)), 40, 0},
		"what two have":       {crowded, want(gpus(2, 50)), 25, 0},
		"three there are not": {crowded, want(gpus(3, 50)), 0, 0},
		"memory shrinks along": {crowded,
			Demand{GPUs: 1, Cores: 50, MemoryMiB: 1001, Project: 7}, 40, 800},
		"memory is the limit": {crowded,
			Demand{GPUs: 1, Cores: 50, MemoryMiB: 50_000, Project: 7}, 32, 32_000},
		"memory never vanishes": {crowded,
			Demand{GPUs: 1, Cores: 50, MemoryMiB: 1, Project: 7}, 40, 1},
		"proportion is the limit": {pool(node(1, gpu(11, Share{Cores: 1, MemoryMiB: 40_000, Project: 7}))),
			want(cores(90)), 50, 0},
		"no GPU":  {pool(), want(gpus(0, 20)), 20, 0},
		"invalid": {pool(node(1, gpu(11))), want(cores(101)), 0, 0},
	} {
		if cores, memory := Largest(c.pool, c.demand); cores != c.cores || memory != c.memory {
			t.Errorf("%s: %d cores %d MiB, want %d and %d", name, cores, memory, c.cores, c.memory)
		}
	}
}
