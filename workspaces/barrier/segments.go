package barrier

import (
	"cmp"
	"context"
	"slices"

	"weir/models"
)

// plan is a function cut into segments.
type plan struct {
	*flow
	classes []*class
	threads int    // of a block, in whole warps; 0: not known
	strong  []int  // nodes of the strong barriers that cut the function, in their order
	segment []int  // of each node that is an operation
	used    []bool // node is an operation that some warp reaches
	at      []int  // of each of these its barrier in its segment

	low, high []int // by rank, for count
}

// newPlan cuts a function at its strong barriers, unless the context ends before.
func newPlan(ctx context.Context, g *flow, shape [3]int) (*plan, error) {
	threads := shape[0] * shape[1] * shape[2]
	p := &plan{flow: g, classes: g.classes(shape), threads: (threads + warpSize - 1) / warpSize * warpSize,
		used: make([]bool, len(g.nodes)), at: make([]int, len(g.nodes)), low: make([]int, len(g.nodes)), high: make([]int, len(g.nodes))}
	for _, c := range p.classes {
		for _, n := range c.order {
			p.used[n] = p.used[n] || g.nodes[n].op >= 0
		}
	}
	p.findStrong()
	for crossed := true; crossed; crossed = p.joinCrossed() {
		for joined := true; joined; joined = p.number() {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// forAll reports whether an operation waits for all threads of the block.
func (p *plan) forAll(op *operation) bool {
	return op.kind != arrives && (op.threads == allThreads || op.threads == p.threads)
}

// findStrong finds the barriers for all threads that every warp passes before it uses any
// later barrier, once, and in the same order.
func (p *plan) findStrong() {
	var common []int
	first := true
	for _, c := range p.classes {
		own := p.passed(c)
		if own == nil { // these warps use no barrier
			continue
		}
		if first {
			common, first = own, false
			continue
		}
		var both []int
		for at := 0; len(common) > 0; common = common[1:] {
			if i := slices.Index(own[at:], common[0]); i >= 0 {
				at += i + 1
				both = append(both, common[0])
			}
		}
		common = both
	}
	p.strong = common
}

// passed are the nodes that the warps of a class must pass to use any later barrier, of
// those that wait for all threads; nil if the class uses no barrier.
func (p *plan) passed(c *class) []int {
	relevant := p.leadToOperation(c)
	farthest := map[int]int{} // by stage: where its edges lead
	var candidates []int
	for _, n := range c.order {
		for _, to := range c.edges[n] {
			if relevant[to] {
				farthest[c.stage[n]] = max(farthest[c.stage[n]], c.stage[to])
			}
		}
		if op := p.nodes[n].op; op >= 0 && !c.inCycle[n] && p.forAll(p.ops[op]) {
			candidates = append(candidates, n)
		}
	}
	if !relevant[0] {
		return nil
	}
	slices.SortFunc(candidates, func(a, b int) int { return cmp.Compare(c.stage[a], c.stage[b]) })
	list, stage, reach := []int{}, 0, 0
	for _, n := range candidates {
		for ; stage < c.stage[n]; stage++ {
			reach = max(reach, farthest[stage])
		}
		if reach <= c.stage[n] {
			list = append(list, n)
		}
	}
	return list
}

// leadToOperation marks the nodes from which a warp can still use a barrier.
func (p *plan) leadToOperation(c *class) []bool {
	relevant := make([]bool, len(p.nodes))
	for changed := true; changed; {
		changed = false
		for _, n := range slices.Backward(c.order) {
			if !relevant[n] && (p.nodes[n].op >= 0 || slices.ContainsFunc(c.edges[n], func(to int) bool { return relevant[to] })) {
				relevant[n], changed = true, true
			}
		}
	}
	return relevant
}

// number gives each operation the number of strong barriers before it. Where classes
// disagree, the strong barriers between do not cut: it reports that, and the numbers are to be
// given again.
func (p *plan) number() (joined bool) {
	low, high := slices.Repeat([]int{len(p.strong)}, len(p.nodes)), make([]int, len(p.nodes))
	for _, c := range p.classes {
		for _, n := range c.order {
			k := p.strongBefore(c, n)
			low[n], high[n] = min(low[n], k), max(high[n], k)
		}
	}
	cut := slices.Repeat([]bool{true}, len(p.strong))
	for n := range p.nodes {
		if p.used[n] {
			for k := low[n]; k < high[n]; k++ {
				cut[k] = false
			}
		}
	}
	if slices.Contains(cut, false) {
		p.keep(cut)
		return true
	}
	p.segment = low
	return false
}

// strongBefore is the number of strong barriers that a class passes before a node.
func (p *plan) strongBefore(c *class, n int) int {
	k, _ := slices.BinarySearchFunc(p.strong, c.stage[n], func(s, stage int) int { return cmp.Compare(c.stage[s], stage) })
	return k
}

// keep keeps some of the strong barriers.
func (p *plan) keep(cut []bool) {
	var kept []int
	for k, s := range p.strong {
		if cut[k] {
			kept = append(kept, s)
		}
	}
	p.strong = kept
}

// joinCrossed joins segments where arrivals of one can belong to waits in a later one, and
// reports whether it did.
func (p *plan) joinCrossed() bool {
	last := map[string]int{}
	for n := range p.nodes {
		if p.used[n] {
			last[p.operation(n).barrier] = max(last[p.operation(n).barrier], p.segment[n])
		}
	}
	cut := slices.Repeat([]bool{true}, len(p.strong))
	for k, s := range p.segments()[:len(p.strong)] {
		for _, b := range s.barriers {
			if last[b.name] > k && b.remaining() != none {
				for i := k; i < last[b.name]; i++ {
					cut[i] = false
				}
			}
		}
	}
	if !slices.Contains(cut, false) {
		return false
	}
	p.keep(cut)
	return true
}

// operation is the operation of a node.
func (p *plan) operation(n int) *operation { return p.ops[p.nodes[n].op] }

// segment is the part of a function between two strong barriers, with the second.
type segment struct {
	*plan
	number   int
	strong   *operation // that ends it; nil at the end of the function
	parts    [][]int    // for each class its nodes in the segment, in order
	barriers []*logical // in the order of their first lines
	index    map[string]int
}

// logical is a barrier in one segment.
type logical struct {
	name    string
	threads int
	nodes   []int          // its operations, in the order of the source
	users   []bool         // classes that use it
	warps   int            // in these classes
	exact   bool           // all warps of these classes take part in each phase
	signals bool           // some operation does not wait
	phases  []int          // phases by class; -1: not the same by all ways, or not known
	phase   map[[2]int]int // by class and node: phases before
	over    bitset         // barriers that are over before it begins
	index   int
}

// counted reports whether each operation has a known phase.
func (b *logical) counted() bool {
	return !slices.ContainsFunc(b.classPhases(), func(n int) bool { return n < 0 })
}

// classPhases are the phases of the classes that use the barrier.
func (b *logical) classPhases() (list []int) {
	for c, used := range b.users {
		if used {
			list = append(list, b.phases[c])
		}
	}
	return list
}

// level reports whether all classes use the barrier equally often.
func (b *logical) level() bool {
	list := b.classPhases()
	return slices.Max(list) == slices.Min(list)
}

// arrivals are what a segment leaves at a barrier.
type arrivals int

const (
	none arrivals = iota
	mayRemain
	remain
)

// remaining says which arrivals are left when all warps have left the segment: none if every
// operation waits or all warps complete the same number of phases.
func (b *logical) remaining() arrivals {
	switch {
	case b.exact && b.counted() && b.level() || !b.signals:
		return none
	case b.exact && b.counted():
		return remain
	}
	return mayRemain
}

// segments collects the nodes and barriers of all segments.
func (p *plan) segments() []*segment {
	list := make([]*segment, len(p.strong)+1)
	for k := range list {
		list[k] = &segment{plan: p, number: k, index: map[string]int{}, parts: make([][]int, len(p.classes))}
		if k < len(p.strong) {
			list[k].strong = p.operation(p.strong[k])
		}
	}
	for i, c := range p.classes {
		c.part = slices.Repeat([]int{-1}, len(p.nodes))
		for _, n := range c.order {
			k := p.strongBefore(c, n)
			c.part[n] = k
			list[k].parts[i] = append(list[k].parts[i], n)
		}
	}
	for n := range p.nodes {
		if p.used[n] {
			list[p.segment[n]].add(n)
		}
	}
	for _, s := range list {
		s.countPhases()
	}
	return list
}

// add adds an operation to a segment.
func (s *segment) add(n int) {
	op := s.operation(n)
	i, ok := s.index[op.barrier]
	if !ok {
		i = len(s.barriers)
		s.index[op.barrier] = i
		b := &logical{name: op.barrier, index: i, threads: op.threads, users: make([]bool, len(s.classes)), phases: make([]int,
			len(s.classes)), phase: map[[2]int]int{}}
		s.barriers = append(s.barriers, b)
	}
	b := s.barriers[i]
	s.at[n] = i
	b.nodes = append(b.nodes, n)
	b.signals = b.signals || op.kind == arrives
	for c := range s.classes {
		b.users[c] = b.users[c] || s.classes[c].rank[n] >= 0
	}
}

// countPhases finds who takes part in each barrier, and how often.
func (s *segment) countPhases() {
	for _, b := range s.barriers {
		for i, used := range b.users {
			if b.phases[i] = -1; used {
				b.warps += len(s.classes[i].warps)
			}
		}
		b.exact = b.threads == allThreads || b.threads == b.warps*warpSize
	}
	for i := range s.classes {
		if s.straight(i) {
			for _, b := range s.barriers {
				b.phases[i] = 0
			}
			for _, n := range s.parts[i] {
				if s.nodes[n].op >= 0 {
					b := s.barrierOf(n)
					b.phase[[2]int{i, n}] = b.phases[i]
					b.phases[i]++
				}
			}
			continue
		}
		if s.tooLarge() {
			continue // order refuses it
		}
		ends := s.ends(i)
		for _, b := range s.barriers {
			if b.users[i] {
				b.phases[i] = s.count(b, i, ends)
			}
		}
	}
}

// tooLarge reports whether the analysis would take too much memory or time.
func (s *segment) tooLarge() bool { return s.cost() > maxWords }

// maxWords bounds the memory of the analysis of one segment, in words of 8 bytes.
const maxWords = 1 << 22

// cost is the memory of the analysis in words, or more if it takes more time than that much
// memory is filled in.
func (s *segment) cost() int {
	words := (len(s.barriers) + 63) / 64 * (len(s.classes) + 1) // with later
	return max(2*s.size()*words, s.size()*len(s.barriers)/4)
}

// size is the number of operations and branches of the segment, by class.
func (s *segment) size() (n int) {
	for _, part := range s.parts {
		n += len(part)
	}
	return n
}

// straight reports whether the warps of a class have one way through the segment.
func (s *segment) straight(class int) bool {
	c := s.classes[class]
	return !slices.ContainsFunc(s.parts[class], func(n int) bool { return len(c.edges[n]) > 1 || len(c.before[n]) > 1 || c.inCycle[n] })
}

// barrierOf is the barrier of an operation.
func (s *segment) barrierOf(n int) *logical { return s.barriers[s.at[n]] }

// ends marks, among the nodes of a class in the segment, those from which it leaves it.
func (s *segment) ends(class int) []bool {
	c, list := s.classes[class], make([]bool, len(s.parts[class]))
	for i, n := range s.parts[class] {
		list[i] = len(c.edges[n]) == 0 || slices.ContainsFunc(c.edges[n], func(to int) bool { return !s.inside(class, to) })
	}
	return list
}

// count returns how often each warp of a class uses a barrier, -1 if not equally often by
// all ways, and records the phase of each operation.
func (s *segment) count(b *logical, class int, ends []bool) int {
	low, high := s.low, s.high
	c := s.classes[class]
	first, last := len(s.nodes), -1 // of all ways out of the segment
	known := true
	for i, n := range s.parts[class] {
		r := c.rank[n]
		low[r], high[r] = len(s.nodes), 0
		for _, p := range c.before[n] {
			from, to := 0, 0
			if s.inside(class, p) {
				from, to = low[c.rank[p]], high[c.rank[p]]
			}
			low[r], high[r] = min(low[r], from), max(high[r], to)
		}
		if len(c.before[n]) == 0 {
			low[r] = 0
		}
		if s.nodes[n].op >= 0 && s.barrierOf(n) == b {
			known = known && low[r] == high[r] && !c.inCycle[n]
			b.phase[[2]int{class, n}] = low[r]
			low[r], high[r] = low[r]+1, high[r]+1
		}
		known = known && !c.blank[n]
		if ends[i] {
			first, last = min(first, low[r]), max(last, high[r])
		}
	}
	if !known || first != last {
		return -1
	}
	return first
}

// inside reports whether a class has a node in the segment.
func (s *segment) inside(class, n int) bool { return s.classes[class].part[n] == s.number }

// check refuses a segment whose barriers contradict themselves.
func (s *segment) check() error {
	for _, b := range s.barriers {
		first := s.operation(b.nodes[0])
		for _, n := range b.nodes {
			if op := s.operation(n); op.threads != b.threads {
				return refuse(op.line, models.Say("barrier %s has other numbers of threads here and in line %d", b.name, first.line))
			}
		}
		if s.threads > 0 && b.threads > b.warps*warpSize {
			return refuse(first.line, models.Say("barrier %s waits for %d threads, but only %d can reach it", b.name, b.threads, b.warps*warpSize))
		}
	}
	return nil
}

// lines are the first and the last line of the segment's operations.
func (s *segment) lines() [2]int {
	from, to := s.line, s.line
	for i, b := range s.barriers {
		for j, n := range b.nodes {
			line := s.operation(n).line
			if i == 0 && j == 0 {
				from, to = line, line
			}
			from, to = min(from, line), max(to, line)
		}
	}
	return [2]int{from, to}
}

func (s *segment) namesOf(barriers []int) []string {
	names := make([]string, len(barriers))
	for i, b := range barriers {
		names[i] = s.barriers[b].name
	}
	return names
}
