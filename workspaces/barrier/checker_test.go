package barrier

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// step is one operation of a thread, as the kernel has it and as it was rewritten.
type step struct {
	logical, physical string
	kind              kind
	count             int // threads that complete a phase
}

// maxSteps bounds the barriers and the threads of what is checked.
const maxSteps = 64

// machine is the barriers of a thread block (PTX ISA, section 9.7.13.1). Threads are sets.
type machine struct {
	owner            [maxSteps]uint8 // logical barrier whose phase is active
	arrived, waiting [maxSteps]uint8
	blocked          uint8
}

// use lets a thread use a barrier, and returns what is wrong with that.
func (m *machine) use(thread, barrier int, owner uint8, s step) string {
	one := uint8(1) << thread
	switch {
	case m.arrived[barrier] != 0 && m.owner[barrier] != owner:
		return fmt.Sprintf("thread %d uses %s for %s while it is active for another one", thread, s.physical, s.logical)
	case m.arrived[barrier]&one != 0:
		return fmt.Sprintf("thread %d uses %s twice in a phase", thread, s.logical)
	}
	m.owner[barrier] = owner
	m.arrived[barrier] |= one
	if s.kind != arrives {
		m.waiting[barrier] |= one
		m.blocked |= one
	}
	if bits.OnesCount8(m.arrived[barrier]) == s.count/warpSize {
		m.blocked &^= m.waiting[barrier]
		m.arrived[barrier], m.waiting[barrier] = 0, 0
	}
	return ""
}

// verdict is what is found in all interleavings.
type verdict struct {
	illFormed string // the kernel itself is wrong, whatever barriers it gets
	broken    string // the rewritten kernel does something else than the kernel
	states    int
}

// check runs threads in all interleavings, once with a barrier for each logical barrier and
// at the same time with physical barriers, which must behave alike: no mixing, no release
// that the kernel does not have, no thread that waits longer, no deadlock.
func check(threads [][]step) verdict {
	c := &checker{threads: threads, seen: map[string]bool{}, number: map[string]int{}}
	c.explore(make([]byte, len(threads)), machine{}, machine{})
	return verdict{c.illFormed, c.broken, len(c.seen)}
}

type checker struct {
	threads           [][]step
	seen              map[string]bool
	number            map[string]int // of barriers
	illFormed, broken string
}

func (c *checker) numberOf(barrier string) int {
	n, ok := c.number[barrier]
	if !ok {
		n = len(c.number)
		c.number[barrier] = n
	}
	return n
}

func (c *checker) explore(at []byte, logical, physical machine) {
	if c.seen[string(at)] || c.illFormed != "" {
		return
	}
	c.seen[string(at)] = true
	moved, finished := false, true
	for t, steps := range c.threads {
		left := int(at[t]) < len(steps)
		blocked := logical.blocked&(1<<t) != 0
		finished = finished && !left && !blocked
		if !left || blocked {
			continue
		}
		moved = true
		s, l, p := steps[at[t]], logical, physical
		owner := c.numberOf("logical " + s.logical)
		if c.illFormed = l.use(t, owner, uint8(owner), s); c.illFormed != "" {
			return
		}
		if c.broken == "" {
			if c.broken = p.use(t, c.numberOf("physical "+s.physical), uint8(owner), s); c.broken == "" && l.blocked != p.blocked {
				c.broken = fmt.Sprintf("after %v of thread %d others wait: %b, not %b", s, t, p.blocked, l.blocked)
			}
		}
		next := slices.Clone(at)
		next[t]++
		if c.explore(next, l, p); c.illFormed != "" {
			return
		}
	}
	if !moved && !finished {
		c.illFormed = fmt.Sprintf("deadlock at %v", at)
	}
}

// threadsOf runs each warp of a kernel alone, with decide for branches that do not follow
// from the thread, and pairs its operations with those of the rewritten one.
func threadsOf(t testing.TB, a, b *flow, decide func(label string, round int) bool) (threads [][]step) {
	t.Helper()
	all := a.threads()
	for w := range (all + warpSize - 1) / warpSize {
		logical, physical := a.trace(w, decide), b.trace(w, decide)
		if len(logical) != len(physical) {
			t.Fatalf("warp %d has other operations in the rewritten kernel", w)
		}
		var steps []step
		for i, l := range logical {
			p := physical[i]
			if l.kind != p.kind || l.threads != p.threads {
				t.Fatalf("line %d has become another operation: %+v, %+v", l.line, l, p)
			}
			count := l.threads
			if count == allThreads {
				count = all
			}
			steps = append(steps, step{l.barrier, p.barrier, l.kind, count})
		}
		threads = append(threads, steps)
	}
	return threads
}

func flowIn(t testing.TB, source string) *flow {
	t.Helper()
	m, err := parse(source)
	if err != nil {
		t.Fatal(err)
	}
	g, err := flowOf(m.functions[0], m.named)
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	return g
}

// trace is the operations of a warp, in the order in which it executes them.
func (g *flow) trace(w int, decide func(string, int) bool) (list []*operation) {
	e := evaluator{code: g.code, defined: definitions(g.code), shape: g.shape, first: w * warpSize, lanes: warpSize, known: map[string]*value{}}
	rounds := map[int]int{}
	for n := 0; n != len(g.nodes)-1; {
		node := g.nodes[n]
		if node.op >= 0 {
			list = append(list, g.ops[node.op])
			n = node.next
			continue
		}
		taken := node.guard == ""
		if !taken {
			decision := e.decide(node)
			if taken = decision == 1; decision < 0 {
				taken = decide(node.guard, rounds[n]) != node.negated
				rounds[n]++
			}
		}
		if n = node.next; taken {
			n = node.taken[0]
		}
	}
	return list
}

func TestCheckerFindsWhatIsWrong(t *testing.T) {
	arrive := func(l, p string) step { return step{l, p, arrives, 64} }
	wait := func(l, p string) step { return step{l, p, waits, 64} }
	for name, c := range map[string]struct {
		threads    [][]step
		ill, wrong bool
	}{
		"right":             {[][]step{{arrive("A", "0"), wait("B", "1")}, {wait("A", "0"), arrive("B", "1")}}, false, false},
		"reuse when over":   {[][]step{{arrive("A", "0"), wait("B", "1"), wait("C", "0")}, {wait("A", "0"), arrive("B", "1"), wait("C", "0")}}, false, false},
		"mixing":            {[][]step{{arrive("A", "0"), wait("B", "0")}, {wait("A", "0"), arrive("B", "0")}}, false, true},
		"deadlock":          {[][]step{{wait("A", "0"), wait("B", "1")}, {wait("B", "1"), wait("A", "0")}}, true, false},
		"used twice":        {[][]step{{arrive("A", "0"), arrive("A", "0")}, {wait("A", "0"), wait("A", "0")}}, true, false},
		"separated":         {[][]step{{arrive("A", "0")}, {wait("A", "1")}}, false, true},
		"waits for nothing": {[][]step{{wait("A", "0")}, {}}, true, false},
	} {
		if v := check(c.threads); (v.illFormed != "") != c.ill || (v.broken != "") != c.wrong {
			t.Errorf("%s: got %+v", name, v)
		}
	}
}
