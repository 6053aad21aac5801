package shard

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weir/models"
)

// MaxDevices is the most devices of a plan.
const MaxDevices = 64

// DefaultTFLOPS and DefaultLinkGBps are assumed of devices that nothing else is stated of:
// with one speed for all, only the ratio of work to transfers depends on it. The link is
// PCIe 4.0 with 16 lanes, at four fifths of its 31.5 GB/s.
const (
	DefaultTFLOPS   = 100
	DefaultLinkGBps = 25
)

// equal is devices, those with most memory first, as if each had what the last one has: of each of them, a
// deployment takes the same share.
func equal(devices []models.ModelDevice) []models.ModelDevice {
	alike := slices.Clone(devices)
	for i := range alike {
		alike[i].MemoryBytes = devices[len(devices)-1].MemoryBytes
	}
	return alike
}

// choose divides the items among all devices, or among equal shares of the fewest, of one machine.
func (v work) choose(devices []models.ModelDevice, fewest bool) ([]Stage, []models.ModelDevice) {
	if !fewest {
		return v.divide(devices), devices
	}
	machines := machinesOf(devices)
	for n := 1; n <= min(len(devices), MaxDevices); n++ {
		var best []Stage
		var of []models.ModelDevice
		for _, machine := range machines {
			if len(machine) < n {
				continue
			}
			stages, chosen := v.divide(equal(machine[:n])), machine[:n]
			if stages != nil && (best == nil || v.bottleneck(stages, chosen) < v.bottleneck(best, of)) {
				best, of = stages, chosen
			}
		}
		if best != nil {
			return best, of
		}
	}
	return nil, nil
}

// useAll cuts the slowest stages further until each device has one, as far as their items and
// the memory allow. The slowest stage of a plan is no faster for it where links take no time.
func (v work) useAll(stages []Stage, devices []models.ModelDevice) []Stage {
	targets := v.targets(devices)
	for target := range targets {
		if slices.ContainsFunc(stages, func(s Stage) bool { return s.Target == target }) {
			continue
		}
		best, slowest := Stage{}, -1.0
		for _, s := range stages {
			if t := s.Time(v.items, targets); s.Until-s.From > 1 && t > slowest {
				best, slowest = s, t
			}
		}
		stages = v.cutFor(target, best, stages, targets)
	}
	return stages
}

// cutFor cuts a stage in two, of which the second one is on a target, so that the slower one
// takes the least time.
func (v work) cutFor(target int, s Stage, stages []Stage, targets []Target) []Stage {
	best, fastest := stages, math.Inf(1)
	at := slices.Index(stages, s)
	for cut := s.From + 1; cut < s.Until; cut++ {
		both := []Stage{{s.Target, s.From, cut}, {target, cut, s.Until}}
		memory := int64(0)
		for _, item := range v.items[cut:s.Until] {
			memory = sum(memory, item.Bytes)
		}
		if slowest := Bottleneck(both, v.items, targets); slowest < fastest && memory <= targets[target].Memory {
			best, fastest = slices.Replace(slices.Clone(stages), at, at+1, both...), slowest
		}
	}
	return best
}

func byMemory(a, b models.ModelDevice) int { return cmp.Compare(b.MemoryBytes, a.MemoryBytes) }

// machinesOf are the devices of each machine, those with most memory first, without machines
// that are like another one.
func machinesOf(devices []models.ModelDevice) (machines [][]models.ModelDevice) {
	at, seen := map[string]int{}, map[string]bool{}
	for _, d := range devices {
		i, known := at[d.Machine]
		if !known {
			i, machines = len(machines), append(machines, nil)
			at[d.Machine] = i
		}
		machines[i] = append(machines[i], d)
	}
	return slices.DeleteFunc(machines, func(machine []models.ModelDevice) bool {
		slices.SortStableFunc(machine, byMemory)
		key := ""
		for _, d := range machine {
			key += fmt.Sprintln(d.MemoryBytes, d.TFLOPS, d.LinkGBps)
		}
		known := seen[key]
		seen[key] = true
		return known
	})
}

// divide divides the items among devices, in any order if they are few.
func (v work) divide(devices []models.ModelDevice) []Stage {
	order := InOrder
	if len(devices) <= MaxReordered && len(v.items) <= MaxItems/4 {
		order = AnyOrder
	}
	stages, _ := v.stages(devices, order)
	return stages
}

// stages divides the items, unless the memory of all devices is too little.
func (v work) stages(devices []models.ModelDevice, order Order) ([]Stage, bool) {
	available, needed, targets := int64(0), int64(0), v.targets(devices)
	for _, t := range targets {
		available = sum(available, max(t.Memory, 0))
	}
	for _, item := range v.items {
		needed = sum(needed, item.Bytes)
	}
	if needed > available {
		return nil, false
	}
	return Stages(v.items, targets, order)
}

func (v work) bottleneck(stages []Stage, devices []models.ModelDevice) float64 {
	return Bottleneck(stages, v.items, v.targets(devices))
}
