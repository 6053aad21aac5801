package placement

import (
	"cmp"
	"slices"
)

// maxSets bounds the search for the devices of one node.
const maxSets = 5000

// choose picks the devices of a machine that fits for a demand, and tells
// what they cost. Of several devices it takes the set that is best by
// [bestFit].
func (e *Engine) choose(m *machine, n *demandInfo) ([]int, cost) {
	if n.GPUs == 1 {
		device, c := e.scorer.bestDevice(m, n)
		e.chosen = append(e.chosen[:0], device)
		return e.chosen, c
	}
	e.chosen = m.tightest(n, e.chosen[:0])
	if m.linked && n.GPUs < len(e.chosen) {
		s := search{machine: m, demand: n, fitting: slices.Clone(e.chosen)}
		e.chosen = s.run()
	}
	e.chosen = e.chosen[:n.GPUs]
	return e.chosen, e.scorer.costOf(m, n, e.chosen)
}

// tightest appends the devices of a machine that can take a demand, those
// first that best-fit likes best.
func (m *machine) tightest(n *demandInfo, devices []int) []int {
	for i := range m.left {
		if n.GPUs > 0 && m.fitsDevice(n, i) {
			devices = append(devices, i)
		}
	}
	if n.milli == Whole*milli && n.Project == 0 && n.MemoryMiB == 0 {
		return devices // idle ones, all alike
	}
	slices.SortStableFunc(devices, func(a, b int) int {
		if a == b {
			return 0
		}
		return cmp.Compare(bestFit{}.costOf(m, n, []int{a}), bestFit{}.costOf(m, n, []int{b}))
	})
	return devices
}

// search compares sets of linked devices of one machine.
type search struct {
	machine *machine
	demand  *demandInfo
	fitting []int
	set     []int // being built
	tried   int
	best    []int
	least   cost // of best
}

// run compares all sets, so the answer is the best there is. Where those are
// more than [maxSets], sets grow instead from each device by the one that then
// costs least, and the best of these is taken, which may miss the best.
func (s *search) run() []int {
	if !s.all(0) {
		s.best = nil
		s.grow()
	}
	return s.best
}

// all compares every set that goes on from the one being built with devices
// from the i-th on. It gives up, false, when the sets become too many.
func (s *search) all(from int) bool {
	missing := s.demand.GPUs - len(s.set)
	if missing == 0 {
		s.tried++
		s.compare()
		return s.tried < maxSets
	}
	for i := from; i+missing <= len(s.fitting); i++ {
		s.set = append(s.set, s.fitting[i])
		within := s.all(i + 1)
		s.set = s.set[:len(s.set)-1]
		if !within {
			return false
		}
	}
	return true
}

// grow compares one set for each device to begin with.
func (s *search) grow() {
	for _, first := range s.fitting {
		s.set = append(s.set[:0], first)
		for len(s.set) < s.demand.GPUs {
			s.set = append(s.set, s.next())
		}
		s.compare()
	}
}

// next is the device that costs the set being built least, the first among
// equals.
func (s *search) next() (next int) {
	least := unfit
	for _, i := range s.fitting {
		if slices.Contains(s.set, i) {
			continue
		}
		if c := s.cost(append(s.set, i)); c < least {
			next, least = i, c
		}
	}
	return next
}

// compare keeps the set being built if it is the best so far.
func (s *search) compare() {
	if c := s.cost(s.set); s.best == nil || c < s.least {
		s.best, s.least = append(s.best[:0], s.set...), c
	}
}

func (s *search) cost(set []int) cost { return bestFit{}.costOf(s.machine, s.demand, set) }
