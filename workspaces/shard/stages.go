package shard

import (
	"math"
	"math/bits"
	"slices"
)

// Item is a part of a model that is not cut further: a layer, a group of attention heads or
// an expert.
type Item struct {
	Bytes    int64   // memory that it needs
	FLOPs    float64 // of a pass
	Received int64   // bytes that a stage receives for a pass if this is its first item
}

// Target is a device for stages.
type Target struct {
	Memory int64   // bytes that a stage can use
	Speed  float64 // floating-point operations per second; above 0
	Link   float64 // bytes per second that it receives; 0: without limit
	Fixed  float64 // operations of a pass that each stage has, whatever its items
}

// Stage is consecutive items on one device.
type Stage struct {
	Target      int // index of the device
	From, Until int // items, [From, Until)
}

// Time is how long the stage takes for a pass: it computes one while it receives the next.
func (s Stage) Time(items []Item, targets []Target) float64 {
	flops := 0.0
	for _, item := range items[s.From:s.Until] {
		flops += item.FLOPs
	}
	return targets[s.Target].time(flops, items[s.From].Received)
}

func (t Target) time(flops float64, received int64) float64 {
	compute := (t.Fixed + flops) / t.Speed
	if t.Link > 0 {
		return max(compute, float64(received)/t.Link)
	}
	return compute
}

// Bottleneck is the time of the slowest stage, which is that between two results.
func Bottleneck(stages []Stage, items []Item, targets []Target) (slowest float64) {
	for _, s := range stages {
		slowest = max(slowest, s.Time(items, targets))
	}
	return slowest
}

// MaxReordered is the most devices that can be used in any order.
const MaxReordered = 8

// Order is in which order stages use devices.
type Order int

const (
	InOrder  Order = iota // as they are given; devices can be left out
	AnyOrder              // at most MaxReordered devices, in any order
)

// Stages divides the items among devices so that the slowest stage takes the least time, and
// no stage needs more memory than its device has; false if that is impossible. Devices can be
// left out.
//
// It is dynamic programming over the items that are already placed and the devices that are
// already used: of O(devices · items²) steps in order, and of O(2^devices · devices · items²)
// in any order.
func Stages(items []Item, targets []Target, order Order) ([]Stage, bool) {
	if len(items) == 0 || order == AnyOrder && len(targets) > MaxReordered {
		return nil, false
	}
	p := newPlanner(items, targets, order)
	for state := range p.best {
		for target := range targets {
			if next, ok := p.next(state, target); ok {
				p.extend(state, next, target)
			}
		}
	}
	return p.stages()
}

// step is the last stage of a way to place items.
type step struct{ state, from, target int }

// planner has the best way to place a number of items for each state. A state is how many
// devices were considered, or in any order the set of those that were used.
type planner struct {
	items   []Item
	targets []Target
	order   Order
	flops   []float64   // of the items before each
	best    [][]float64 // by state and number of items: time of the slowest stage
	steps   [][]step
}

func newPlanner(items []Item, targets []Target, order Order) *planner {
	p := &planner{items: items, targets: targets, order: order, flops: make([]float64, len(items)+1)}
	for i, item := range items {
		p.flops[i+1] = p.flops[i] + item.FLOPs
	}
	states := len(targets) + 1
	if order == AnyOrder {
		states = 1 << len(targets)
	}
	for range states {
		p.best = append(p.best, slices.Repeat([]float64{math.Inf(1)}, len(items)+1))
		p.steps = append(p.steps, make([]step, len(items)+1))
	}
	p.best[0][0] = 0
	return p
}

// next is the state after a device, if it can follow.
func (p *planner) next(state, target int) (int, bool) {
	if p.order == AnyOrder {
		return state | 1<<target, state&(1<<target) == 0
	}
	return state + 1, state == target
}

// extend adds a stage on a device to all ways of a state. In order, the device may be left
// out, too.
func (p *planner) extend(state, next, target int) {
	t, from, to, steps := p.targets[target], p.best[state], p.best[next], p.steps[next]
	for i, before := range from {
		if math.IsInf(before, 1) {
			continue
		}
		if p.order == InOrder && before < to[i] {
			to[i], steps[i] = before, step{state, i, target}
		}
		memory := t.Memory
		for j := i + 1; j <= len(p.items); j++ {
			if memory -= p.items[j-1].Bytes; memory < 0 {
				break
			}
			if slowest := max(before, t.time(p.flops[j]-p.flops[i], p.items[i].Received)); slowest < to[j] {
				to[j], steps[j] = slowest, step{state, i, target}
			}
		}
	}
}

// stages follows the steps of the best way back.
func (p *planner) stages() (list []Stage, ok bool) {
	at, state := len(p.items), -1
	for s, best := range p.best {
		if !math.IsInf(best[at], 1) && (state < 0 || best[at] < p.best[state][at] ||
			best[at] == p.best[state][at] && bits.OnesCount(uint(s)) < bits.OnesCount(uint(state)) && p.order == AnyOrder) {
			state = s
		}
	}
	if state < 0 {
		return nil, false
	}
	for state > 0 {
		last := p.steps[state][at]
		if last.from < at {
			list = append(list, Stage{last.target, last.from, at})
		}
		state, at = last.state, last.from
	}
	slices.Reverse(list)
	return list, true
}
