package barrier

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"weir/models"
)

// generator writes random kernels that are right: whatever a warp waits for, others arrive
// at later in one order of all phases.
type generator struct {
	*rand.Rand
	warps   int
	code    []strings.Builder // by warp, of the present region
	out     strings.Builder
	labels  int
	names   int
	branchy bool
	leaving bool             // some arrivals remain
	members map[string][]int // warps by barrier
}

// phase lets some warps use a barrier, of which at least one waits.
func (g *generator) phase(name string, among []int) {
	members := g.members[name]
	if members == nil {
		members = slices.Clone(among)
		g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
		members = members[:2+g.IntN(len(members)-1)]
		g.members[name] = members
	}
	g.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	waiting := 1 + g.IntN(len(members))
	for i, w := range members {
		word := "arrive"
		if i < waiting {
			word = "sync"
		}
		fmt.Fprintf(&g.code[w], "\tbarrier.%s %s, %d;\n", word, name, warpSize*len(members))
	}
}

// name is a new barrier, or one that was used before.
func (g *generator) name(known []string) string {
	if len(known) > 0 && g.IntN(6) == 0 {
		return known[g.IntN(len(known))]
	}
	g.names++
	return fmt.Sprint(100 + g.names)
}

// leave lets a warp arrive at a barrier once more than the other one waits there, when it knows
// that the phase before is over.
func (g *generator) leave() {
	pair, name, answer := g.Perm(g.warps), g.name(nil), g.name(nil)
	fmt.Fprintf(&g.code[pair[0]], "\tbarrier.arrive %s, 64;\n\tbarrier.sync %s, 64;\n\tbarrier.arrive %s, 64;\n", name, answer, name)
	fmt.Fprintf(&g.code[pair[1]], "\tbarrier.sync %s, 64;\n\tbarrier.arrive %s, 64;\n", name, answer)
}

// items writes some phases, branches and loops.
func (g *generator) items(n, depth int, among []int, known *[]string) {
	for range n {
		label := g.labels
		switch choice := g.IntN(8); {
		case !g.branchy || choice < 6 || depth == 0:
			name := g.name(*known)
			*known = append(*known, name)
			g.phase(name, among)
		case choice == 6: // all of these warps take the branch, or none does
			g.labels++
			for _, w := range among {
				fmt.Fprintf(&g.code[w], "\t@%%c%d bra ELSE%d_%d;\n", label, label, w)
			}
			g.items(1+g.IntN(2), depth-1, among, known)
			for _, w := range among {
				fmt.Fprintf(&g.code[w], "\tbra END%d_%d;\nELSE%d_%d:\n", label, w, label, w)
			}
			g.items(1+g.IntN(2), depth-1, among, known)
			for _, w := range among {
				fmt.Fprintf(&g.code[w], "END%d_%d:\n", label, w)
			}
		default: // a loop of two rounds
			g.labels++
			for _, w := range among {
				fmt.Fprintf(&g.code[w], "LOOP%d_%d:\n", label, w)
			}
			g.items(1+g.IntN(2), depth-1, among, known)
			for _, w := range among {
				fmt.Fprintf(&g.code[w], "\t@%%l%d bra LOOP%d_%d;\n", label, label, w)
			}
		}
	}
}

// kernel writes a kernel of 2 to 4 warps, cut by strong barriers.
func (g *generator) kernel() string {
	g.warps, g.members = 2+g.IntN(3), map[string][]int{}
	g.code = make([]strings.Builder, g.warps)
	fmt.Fprintf(&g.out, ".entry k() .reqntid %d\n{\n\tmov.u32 %%r0, %%tid.x;\n\tshr.u32 %%r1, %%r0, 5;\n", g.warps*warpSize)
	for w := range g.warps {
		fmt.Fprintf(&g.out, "\tsetp.eq.u32 %%w%d, %%r1, %d;\n", w, w)
	}
	var known []string
	for region := range 1 + g.IntN(3) {
		if region > 0 {
			fmt.Fprintf(&g.out, "\tbar.sync %d;\n", g.IntN(2)*50)
		}
		var among []int
		for w := range g.warps {
			among = append(among, w)
		}
		g.items(1+g.IntN(4), 2, among, &known)
		if g.leaving {
			g.leave()
		}
		for w := range g.warps {
			fmt.Fprintf(&g.out, "\t@!%%w%d bra NEXT%d_%d;\n%s\tbra.uni JOIN%d;\nNEXT%d_%d:\n", w, region, w, g.code[w].String(), region, region, w)
			g.code[w].Reset()
		}
		fmt.Fprintf(&g.out, "JOIN%d:\n", region)
	}
	g.out.WriteString("\tret;\n}\n")
	return g.out.String()
}

// decisions are the ways through a kernel: all combinations of up to four branches, and
// loops of two rounds.
func (g *generator) decisions() (list []func(string, int) bool) {
	for way := range 1 << min(g.labels, 4) {
		list = append(list, func(guard string, round int) bool {
			var label int
			if _, err := fmt.Sscanf(guard[2:], "%d", &label); err != nil {
				return false
			}
			if guard[1] == 'l' {
				return round%2 == 0
			}
			return way>>(label%4)&1 != 0
		})
	}
	return list
}

var kernels = flag.Int("kernels", 5000, "number of random kernels to test")

// Random kernels behave with physical barriers as they do with one barrier for each name,
// in all interleavings, and each segment uses as many barriers as overlap. Those that leave
// arrivals have few physical barriers, and are refused where these would meet others.
func TestRandomKernels(t *testing.T) {
	t.Parallel()
	n := *kernels
	methods, right, reused, states, refused := map[Method]int{}, 0, 0, 0, 0
	for seed := range uint64(n) {
		g, o := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), branchy: seed%2 == 1, leaving: seed%4 == 2}, Options{}
		source := g.kernel()
		if !strings.Contains(source, "barrier.") {
			continue
		}
		if g.leaving {
			o.Physical = 4 + g.IntN(4)
		}
		a, err := Allocate(t.Context(), source, o)
		if err != nil && g.leaving && strings.Contains(err.Error(), "more than there are") {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, source)
		}
		ill, before, after := false, flowIn(t, source), flowIn(t, a.PTX)
		for _, decide := range g.decisions() {
			v := check(threadsOf(t, before, after, decide))
			states += v.states
			if ill = ill || v.illFormed != ""; v.illFormed == "" && v.broken != "" {
				t.Fatalf("seed %d: %s\n%s\n%s", seed, v.broken, source, a.PTX)
			}
		}
		if ill {
			continue
		}
		right++
		for _, s := range a.Report.Kernels[0].Segments {
			methods[Method(s.Method)]++
			reused += len(s.Barriers) - s.Used
			if s.Method != string(FirstFit) && len(s.Overlap) != s.Used {
				t.Fatalf("seed %d, segment %d: %d barriers are used, %d overlap\n%s", seed, s.Number, s.Used, len(s.Overlap), source)
			}
		}
	}
	t.Logf("%d kernels, of which %d are right; %d states; %d are refused; segments by method: %v; barriers that reuse another: %d", n, right, states, refused, methods, reused)
	if right < n/2 || methods[Sweep] == 0 || n >= 5000 && (methods[Matching] == 0 || refused == 0) || reused == 0 {
		t.Error("the random kernels do not test what they should")
	}
}

// Of small kernels without branches that use each barrier once, no assignment with fewer
// barriers passes the checker. A barrier that is used again has one lifetime for all its
// phases, between which others could use it.
func TestFewestAgainstBruteForce(t *testing.T) {
	t.Parallel()
	tested := 0
	for seed := range uint64(*kernels / 5) {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 2))}
		source := g.kernel()
		a, err := Allocate(t.Context(), source, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Report.Kernels) == 0 || len(a.Report.Kernels[0].Segments) != 1 || len(a.Report.Kernels[0].Segments[0].Barriers) > 5 {
			continue
		}
		threads := threadsOf(t, flowIn(t, source), flowIn(t, a.PTX), nil)
		if check(threads).illFormed != "" || slices.ContainsFunc(threads, usesAgain) {
			continue
		}
		s := a.Report.Kernels[0].Segments[0]
		names := make([]string, len(s.Barriers))
		for i, b := range s.Barriers {
			names[i] = b.Name
		}
		tested++
		if fewest := fewestRows(threads, names); fewest != s.Used {
			t.Fatalf("seed %d: %d barriers suffice, %d are used\n%s", seed, fewest, s.Used, source)
		}
	}
	if tested == 0 {
		t.Error("no kernel was tested")
	}
	t.Logf("%d kernels", tested)
}

func usesAgain(steps []step) bool {
	for i, s := range steps {
		if slices.ContainsFunc(steps[:i], func(o step) bool { return o.logical == s.logical }) {
			return true
		}
	}
	return false
}

// fewestRows tries all assignments.
func fewestRows(threads [][]step, names []string) int {
	fewest := len(names)
	rows := map[string]int{}
	var try func(i, used int)
	try = func(i, used int) {
		if used >= fewest {
			return
		}
		if i == len(names) {
			for _, steps := range threads {
				for j := range steps {
					steps[j].physical = fmt.Sprint(rows[steps[j].logical])
				}
			}
			if check(threads).broken == "" {
				fewest = used
			}
			return
		}
		for row := range used + 1 {
			rows[names[i]] = row
			try(i+1, max(used, row+1))
		}
	}
	try(0, 0)
	return fewest
}

// On random relations every method is valid; sweep and matching use as many rows as
// overlap, first fit at most one more than the barriers that overlap with one.
func TestAssignAgainstBruteForce(t *testing.T) {
	methods := map[Method]int{}
	for seed := range uint64(20_000) {
		r := rand.New(rand.NewPCG(seed, 3))
		over := randomRelation(r, 2+r.IntN(6), seed%3)
		a := assign(over)
		methods[a.method]++
		most := 0
		shares := func(x, y int) bool { return over[x].contains(y) || over[y].contains(x) }
		for x := range over {
			degree := 0
			for y := range over {
				if x != y && !shares(x, y) {
					degree++
					if a.rows[x] == a.rows[y] {
						t.Fatalf("seed %d: %d and %d overlap and share row %d (%s)", seed, x, y, a.rows[x], a.method)
					}
				}
			}
			most = max(most, degree)
		}
		for x, s := range a.spans {
			if s.From < 0 || s.Until < s.From {
				t.Fatalf("seed %d: %d lives from %d to %d (%s)", seed, x, s.From, s.Until, a.method)
			}
			for y, o := range a.spans[:x] {
				if a.rows[x] == a.rows[y] && s.From <= o.Until && o.From <= s.Until {
					t.Fatalf("seed %d: in row %d, %v and %v overlap (%s)", seed, a.rows[x], s, o, a.method)
				}
			}
		}
		for i, x := range a.overlap {
			for _, y := range a.overlap[:i] {
				if shares(x, y) {
					t.Fatalf("seed %d: %d and %d are said to overlap (%s)", seed, x, y, a.method)
				}
			}
		}
		if a.method == FirstFit && (len(a.crowd) != a.used || slices.ContainsFunc(a.crowd[1:], func(o int) bool { return shares(a.crowd[0], o) })) {
			t.Fatalf("seed %d: %d rows are used, %v are said to overlap with the first of them", seed, a.used, a.crowd)
		}
		if a.method != FirstFit && len(a.overlap) != a.used || a.used > most+1 {
			t.Fatalf("seed %d: %s uses %d rows, %d overlap, at most %d with one", seed, a.method, a.used, len(a.overlap), most)
		}
	}
	for _, m := range []Method{Sweep, Matching, FirstFit} {
		if methods[m] == 0 {
			t.Errorf("%s was not tested: %v", m, methods)
		}
	}
}

// An order of many barriers is recognized, too.
func TestLargeOrder(t *testing.T) {
	const n = 4000 // of which each pair overlaps, and is over before the next pair but one
	before := make([]bitset, n)
	for b := range n {
		before[b] = newBitset(n)
		for a := range max(0, b-b%2-2) {
			before[b].set(a)
		}
		if b%4 > 1 { // and of the pair before it the same one
			before[b].set(b - 2)
		}
	}
	if a := assign(before); a.method != Matching || a.used != len(a.overlap) {
		t.Errorf("%s uses %d rows, %d overlap", a.method, a.used, len(a.overlap))
	}
}

// randomRelation is an interval order, another order or no order.
func randomRelation(r *rand.Rand, n int, kind uint64) []bitset {
	over := make([]bitset, n)
	from, until := make([]int, n), make([]int, n)
	for b := range n {
		over[b] = newBitset(n)
		from[b] = r.IntN(8)
		until[b] = from[b] + r.IntN(4)
	}
	for b := range n {
		for a := range n {
			if kind == 0 && until[a] < from[b] || kind > 0 && a < b && r.IntN(3) == 0 || kind == 2 && a != b && r.IntN(6) == 0 {
				over[b].set(a)
			}
		}
	}
	if kind == 1 {
		for b := range n {
			for _, a := range over[b].members() {
				over[b].union(over[a])
			}
		}
	}
	return over
}

// readableAgain reports whether the allocated source states all that Allocate needs: not if
// something about arrivals was assumed, nor if one physical barrier serves, one after the
// other, barriers for different numbers of threads.
func readableAgain(r models.BarrierReport) bool {
	for _, k := range r.Kernels {
		for _, s := range k.Segments {
			threads := map[int]int{}
			for _, b := range s.Barriers {
				n, ok := threads[b.Physical]
				if b.Assumed || b.Unknown || b.Pending || ok && n != b.Threads {
					return false
				}
				threads[b.Physical] = b.Threads
			}
		}
	}
	return true
}

// Arrivals that may be left do not meet the barrier of a later segment while others are
// free.
func TestUnsettledBarriersAreAvoided(t *testing.T) {
	a, err := Allocate(t.Context(), ".entry k() .reqntid 64 { @%p bra S; bar.arrive 101, 64; S: bar.sync 200; bar.sync 300; bar.sync 400; }", Options{Physical: 16})
	if err != nil {
		t.Fatal(err)
	}
	segments := a.Report.Kernels[0].Segments
	left := segments[0].Barriers[0]
	if left.Name != "101" || !left.Assumed {
		t.Fatalf("%+v", left)
	}
	for _, s := range segments[1:] {
		for _, b := range s.Barriers {
			if b.Physical == left.Physical {
				t.Errorf("barrier %s meets the arrivals at %s: %s", b.Name, left.Name, a.PTX)
			}
		}
	}
}

// Any source is refused, or comes back as one that uses physical barriers and is accepted
// where it can be read again.
func FuzzAllocate(f *testing.F) {
	for _, seed := range []string{five(""), five("|"), ".weir.bar a;.entry k(){bar.sync a;}", "L: ts: .branchtargets L; /* */ \"", ".func f(){@!%p brx.idx %r,t;t:.branchtargets t;}"} {
		f.Add(seed, 16, 0)
	}
	f.Fuzz(func(t *testing.T, source string, physical, threads int) {
		a, err := Allocate(t.Context(), source, Options{Physical: physical, Threads: threads})
		if err != nil {
			return
		}
		again, err := Allocate(t.Context(), a.PTX, Options{Physical: physical, Threads: threads})
		if err != nil {
			if !readableAgain(a.Report) {
				return
			}
			t.Fatalf("%v: %q becomes %q", err, source, a.PTX)
		}
		if len(again.Report.Kernels) != len(a.Report.Kernels) {
			t.Errorf("%q becomes %q, with other kernels", source, a.PTX)
		}
		for _, k := range again.Report.Kernels {
			if k.Logical > max(1, physical) && physical > 0 {
				t.Errorf("%q uses %d barriers", a.PTX, k.Logical)
			}
		}
	})
}
