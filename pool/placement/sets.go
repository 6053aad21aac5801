package placement

import "slices"

// maxSets bounds the search for the best devices of one node.
const maxSets = 5000

// pick chooses the devices of a node from those that fit, each of them once,
// sorted by what it costs alone.
//
// Where nothing but that counts, they are the first ones. Where it matters
// what devices are together, all sets of them are compared, alike ones once,
// so the answer is the best there is. Where those are more than [maxSets],
// sets grow instead from each device by the one that then costs least, and
// the best of these is taken, which may miss the best there is.
func (c *contest) pick(fitting []candidate) ([]candidate, score) {
	wanted := c.demand.GPUs
	if wanted == 1 {
		return fitting[:1], fitting[0].score
	}
	c.linked = slices.ContainsFunc(fitting, func(f candidate) bool { return len(f.device.Peers) > 0 })
	if len(fitting) == wanted || !c.linked && c.foresight.expected == nil {
		return fitting[:wanted], c.policy.ofSet(c, fitting[:wanted])
	}
	s := search{contest: c, fitting: fitting, set: c.set[:0], best: c.bestSet[:0]}
	if !s.all(0) {
		s.best = s.best[:0]
		s.grow()
	}
	c.set, c.bestSet = s.set, s.best
	return s.best, s.score
}

// search is the comparison of sets of devices of one node.
type search struct {
	*contest
	fitting []candidate
	set     []candidate // being built
	tried   int
	best    []candidate
	score   score // of best
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
		if i > from && s.alike(&s.fitting[i-1], &s.fitting[i]) {
			continue
		}
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
	for i := range s.fitting {
		s.set = append(s.set[:0], s.fitting[i])
		for len(s.set) < s.demand.GPUs {
			s.set = append(s.set, s.next())
		}
		s.compare()
	}
}

// next is the device that costs the set being built least, the first among
// equals.
func (s *search) next() (next candidate) {
	var least score
	found := false
	for i := range s.fitting {
		id := s.fitting[i].device.ID
		if slices.ContainsFunc(s.set, func(c candidate) bool { return c.device.ID == id }) {
			continue
		}
		cost := s.policy.ofSet(s.contest, append(s.set, s.fitting[i]))
		if !found || cost.compare(&least) < 0 {
			next, least, found = s.fitting[i], cost, true
		}
	}
	return next
}

// compare keeps the set being built if it is the best so far.
func (s *search) compare() {
	cost := s.policy.ofSet(s.contest, s.set)
	if len(s.best) == 0 || cost.compare(&s.score) < 0 {
		s.best, s.score = append(s.best[:0], s.set...), cost
	}
}

// alike tells whether it makes no difference which of two devices is taken.
func (c *contest) alike(a, b *candidate) bool {
	return !c.linked && a.score == b.score &&
		(c.foresight.expected == nil || c.foresight.spots[a.place] == c.foresight.spots[b.place])
}

// unlinked counts the pairs of devices without NVLink between them.
func unlinked(c *contest, chosen []candidate) int64 {
	if !c.linked {
		return int64(len(chosen)) * int64(len(chosen)-1) / 2
	}
	return withoutLink(chosen)
}

func withoutLink(chosen []candidate) (pairs int64) {
	for i := range chosen {
		for j := range i {
			a, b := chosen[i].device, chosen[j].device
			if !slices.Contains(a.Peers, b.ID) && !slices.Contains(b.Peers, a.ID) {
				pairs++
			}
		}
	}
	return pairs
}
