package graph

import (
	"cmp"
	"slices"
)

// slot is a branch in a schedule. Those of one batch begin together.
type slot struct {
	branch, cpus, batch int
	from, until         float64
}

// scheduler is what schedules are made of.
type scheduler struct {
	times  []float64 // of each branch on one CPU
	before [][]int   // branches that it waits for
	levels [][]int
	cpus   int
}

// shortest is the shortest of some schedules: by levels, and by the longest ways to the end.
func (s *scheduler) shortest(size int) []slot {
	order := s.inOrder(s.byLevel(size))
	if size < s.cpus { // one after another
		return order
	}
	for _, weights := range [][]float64{s.times, s.ways()} {
		if other := s.byWay(weights); makespan(other) < makespan(order) {
			order = other
		}
	}
	return order
}

func makespan(order []slot) (last float64) {
	for _, o := range order {
		last = max(last, o.until)
	}
	return last
}

// byLevel is the branches level by level, in waves of at most size, each wave on all CPUs.
func (s *scheduler) byLevel(size int) (order []slot) {
	for _, level := range s.levels {
		for _, wave := range waves(level, s.times, size) {
			for i, cpus := range split(pick(s.times, wave), s.cpus) {
				order = append(order, slot{branch: wave[i], cpus: cpus})
			}
		}
	}
	return order
}

// inOrder starts branches in an order, each when those that it waits for have ended and its CPUs
// are free: none later than if the waves waited for one another.
func (s *scheduler) inOrder(order []slot) []slot {
	free, batch, now, ends := s.cpus, 0, 0.0, make([]float64, len(s.times))
	var running []slot
	for i := range order {
		o := &order[i]
		for _, b := range s.before[o.branch] {
			now = max(now, ends[b])
		}
		for len(running) > 0 && (running[0].until <= now || free < o.cpus) {
			now, free, running, batch = max(now, running[0].until), free+running[0].cpus, running[1:], i
		}
		o.from, o.until, o.batch = now, now+s.times[o.branch]/float64(o.cpus), batch
		free, ends[o.branch], running = free-o.cpus, o.until, byEnd(running, *o)
	}
	return order
}

// byEnd adds a slot to those that run, of which the first to end is the first.
func byEnd(running []slot, o slot) []slot {
	at, _ := slices.BinarySearchFunc(running, o.until, func(r slot, until float64) int { return cmp.Compare(r.until, until) })
	return slices.Insert(running, at, o)
}

// byWay is a list schedule: whenever CPUs are free, the branches that can start share them by
// their weights, those with the longest way to the end first.
func (s *scheduler) byWay(weights []float64) (order []slot) {
	ways, after, missing := s.ways(), make([][]int, len(s.times)), make([]int, len(s.times))
	var ready []int
	add := func(b int) {
		at, _ := slices.BinarySearchFunc(ready, b, func(a, b int) int { return cmp.Or(cmp.Compare(ways[b], ways[a]), cmp.Compare(a, b)) })
		ready = slices.Insert(ready, at, b)
	}
	for b, list := range s.before {
		for _, a := range list {
			after[a] = append(after[a], b)
		}
		if missing[b] = len(list); missing[b] == 0 {
			add(b)
		}
	}
	now, free := 0.0, s.cpus
	for running := []slot{}; len(order) < len(s.times); {
		if free > 0 && len(ready) > 0 {
			group := slices.Clone(ready[:min(len(ready), free)])
			ready = slices.Delete(ready, 0, len(group))
			batch := len(order)
			for i, cpus := range split(pick(weights, group), free) {
				o := slot{group[i], cpus, batch, now, now + s.times[group[i]]/float64(cpus)}
				order, running = append(order, o), byEnd(running, o)
			}
			free = 0
			continue
		}
		now = running[0].until
		for len(running) > 0 && running[0].until <= now {
			free += running[0].cpus
			for _, b := range after[running[0].branch] {
				if missing[b]--; missing[b] == 0 {
					add(b)
				}
			}
			running = running[1:]
		}
	}
	return order
}

// ways are the times from the beginning of each branch to the end of the graph, on one CPU.
func (s *scheduler) ways() []float64 {
	ways := slices.Clone(s.times)
	for _, level := range slices.Backward(s.levels) {
		for _, b := range level { // of which no other one is in the level
			for _, a := range s.before[b] {
				ways[a] = max(ways[a], s.times[a]+ways[b])
			}
		}
	}
	return ways
}

// pick is some of a list.
func pick(list []float64, indexes []int) []float64 {
	picked := make([]float64, len(indexes))
	for i, at := range indexes {
		picked[i] = list[at]
	}
	return picked
}
