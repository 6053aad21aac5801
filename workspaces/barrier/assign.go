package barrier

import (
	"cmp"
	"math/bits"
	"slices"
)

// Method is how the barriers of a segment were allocated.
type Method string

// The methods of allocation. The first two use the fewest physical barriers.
const (
	Sweep    Method = "intervals" // the lifetimes are intervals
	Matching Method = "matching"  // what is over before what is an order, but not of intervals
	FirstFit Method = "first_fit" // no order, because branches exclude one another; at most one more than overlap with one
)

// Interval is a lifetime in steps, with both ends.
type Interval struct{ From, Until int }

// AssignIntervals gives each lifetime a row, so that those in a row do not overlap: of the
// free rows the one that is free for the longest. Lifetimes must be sorted by From. It uses
// as many rows as overlap at most.
func AssignIntervals(lifetimes []Interval) (rows []int, used int) {
	rows = make([]int, len(lifetimes))
	last := 0
	for _, l := range lifetimes {
		last = max(last, l.Until)
	}
	ending := make([]int, last+2) // by step: 1 + the first lifetime that ended before it
	next := make([]int, len(lifetimes))
	free, head, step := make([]int, 0, len(lifetimes)), 0, 0
	for i, l := range lifetimes {
		for ; step <= l.From; step++ {
			for e := ending[step]; e > 0; e = next[e-1] {
				free = append(free, rows[e-1])
			}
		}
		if head < len(free) {
			rows[i] = free[head]
			head++
		} else {
			rows[i] = used
			used++
		}
		next[i], ending[l.Until+1] = ending[l.Until+1], i+1
	}
	return rows, used
}

// assignment is the rows of a segment's barriers, which become physical barriers.
type assignment struct {
	method  Method
	rows    []int // by barrier
	used    int
	overlap []int // barriers of which none is over before another, as many as are known
	crowd   []int // of first fit: the first barrier of the last row, and of each other row one that it overlaps with
	spans   []Interval
	before  []bitset // by barrier: those that are over before it
}

// assign allocates rows. before are, for each barrier, those that are over before it: of
// two that exclude each other the first counts as earlier.
func assign(over []bitset) assignment {
	n := len(over)
	before := make([]bitset, n)
	for b := range over {
		before[b] = slices.Clone(over[b])
		for a := range n {
			if over[b].contains(a) && over[a].contains(b) && a > b {
				before[b].clear(a)
			}
		}
	}
	order, nested := byStart(before)
	a := assignment{before: before, spans: spansOf(before, order), rows: make([]int, n)}
	switch {
	case nested:
		a.sweep(order)
	case transitive(before):
		a.match(before)
	default:
		a.firstFit(over, order)
	}
	return a
}

// byStart sorts barriers by how many are over before them, and reports whether these sets
// contain one another: then, and only then, the lifetimes are intervals.
func byStart(before []bitset) (order []int, nested bool) {
	counts := make([]int, len(before))
	for b := range before {
		order, counts[b] = append(order, b), before[b].count()
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(counts[a], counts[b]) })
	for i := range max(0, len(order)-1) {
		if !before[order[i]].subset(before[order[i+1]]) {
			return order, false
		}
	}
	return order, true
}

// spansOf are lifetimes in steps: a barrier begins at a step of its own or together with
// those that have as many before them, and ends before the first that it is over before.
func spansOf(before []bitset, order []int) []Interval {
	spans := make([]Interval, len(before))
	step := 0
	for i, b := range order {
		if i > 0 && before[b].count() != before[order[i-1]].count() {
			step++
		}
		spans[b] = Interval{step, -1}
	}
	for _, b := range order {
		for a := range before {
			if before[b].contains(a) && spans[a].Until < 0 {
				spans[a].Until = spans[b].From - 1
			}
		}
	}
	for b := range spans {
		if spans[b].Until < 0 {
			spans[b].Until = step
		}
	}
	return spans
}

func (a *assignment) sweep(order []int) {
	a.method = Sweep
	sorted := make([]Interval, len(order))
	for i, b := range order {
		sorted[i] = a.spans[b]
	}
	rows, used := AssignIntervals(sorted)
	a.used = used
	for i, b := range order {
		a.rows[b] = rows[i]
	}
	alive := make([]int, len(order)+1)
	for _, s := range sorted {
		for step := s.From; step <= s.Until; step++ {
			alive[step]++
		}
	}
	peak := slices.Index(alive, slices.Max(alive))
	for b, s := range a.spans {
		if s.From <= peak && peak <= s.Until {
			a.overlap = append(a.overlap, b)
		}
	}
}

func transitive(before []bitset) bool {
	for b := range before {
		for a := range before {
			if before[b].contains(a) && !before[a].subset(before[b]) {
				return false
			}
		}
	}
	return true
}

// matching is a matching between barriers and their successors in a row.
type matching struct {
	before    []bitset
	successor []int // by barrier; -1: the last of its row
	previous  []int // by barrier; -1: the first of its row
}

// match finds the fewest rows of an order: barriers less the most that can follow another
// one (Dilworth's theorem, by a maximum bipartite matching with augmenting paths).
func (a *assignment) match(before []bitset) {
	n := len(before)
	m := &matching{before, slices.Repeat([]int{-1}, n), slices.Repeat([]int{-1}, n)}
	for b := range n {
		m.augment(b, newBitset(n))
	}
	a.method = Matching
	for b := range n {
		if m.previous[b] < 0 {
			for at := b; at >= 0; at = m.successor[at] {
				a.rows[at] = a.used
			}
			a.used++
		}
	}
	a.overlap = m.antichain()
}

// augment finds a barrier that b can follow, moving others if it must.
func (m *matching) augment(b int, tried bitset) bool {
	for i := range tried {
		for w := m.before[b][i] &^ tried[i]; w != 0; w = m.before[b][i] &^ tried[i] { // which the search changes
			p := 64*i + bits.TrailingZeros64(w)
			tried.set(p)
			if m.successor[p] < 0 || m.augment(m.successor[p], tried) {
				m.successor[p], m.previous[b] = b, p
				return true
			}
		}
	}
	return false
}

// antichain finds as many barriers as there are rows, none over before another (König's
// theorem: those that are in no minimum vertex cover).
func (m *matching) antichain() (list []int) {
	n := len(m.before)
	follower, followed := newBitset(n), newBitset(n) // reached from the firsts of rows by alternating paths
	var reach func(b int)
	reach = func(b int) {
		if follower.contains(b) {
			return
		}
		follower.set(b)
		for p := range n {
			if m.before[b].contains(p) && !followed.contains(p) {
				followed.set(p)
				if m.successor[p] >= 0 {
					reach(m.successor[p])
				}
			}
		}
	}
	for b := range n {
		if m.previous[b] < 0 {
			reach(b)
		}
	}
	for b := range n {
		if follower.contains(b) && !followed.contains(b) {
			list = append(list, b)
		}
	}
	return list
}

// firstFit puts each barrier into the first row all of whose barriers can share with it. As
// there is no common order, a step is a place in a row.
func (a *assignment) firstFit(over []bitset, order []int) {
	a.method = FirstFit
	shares := func(x, y int) bool { return over[x].contains(y) || over[y].contains(x) }
	var rows [][]int
	for _, b := range order {
		fits := func(row []int) bool { return !slices.ContainsFunc(row, func(o int) bool { return !shares(o, b) }) }
		row := slices.IndexFunc(rows, fits)
		if row < 0 {
			a.crowd = []int{b}
			for _, other := range rows {
				a.crowd = append(a.crowd, other[slices.IndexFunc(other, func(o int) bool { return !shares(o, b) })])
			}
			row, rows = len(rows), append(rows, nil)
		}
		a.rows[b], a.spans[b] = row, Interval{len(rows[row]), len(rows[row])}
		rows[row] = append(rows[row], b)
		if !slices.ContainsFunc(a.overlap, func(o int) bool { return shares(o, b) }) {
			a.overlap = append(a.overlap, b)
		}
	}
	a.used = len(rows)
}
