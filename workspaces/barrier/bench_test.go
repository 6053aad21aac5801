package barrier

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// One core assigns lifetimes to rows; intervals/s is the figure.
func BenchmarkAssignIntervals(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	lifetimes := make([]Interval, 1<<20)
	for i := range lifetimes {
		from := r.IntN(len(lifetimes))
		lifetimes[i] = Interval{from, from + r.IntN(16)}
	}
	slices.SortFunc(lifetimes, func(a, b Interval) int { return cmp.Compare(a.From, b.From) })
	b.ReportAllocs()
	for b.Loop() {
		AssignIntervals(lifetimes)
	}
	b.ReportMetric(float64(len(lifetimes))*float64(b.N)/b.Elapsed().Seconds(), "intervals/s")
}

// nested is a kernel of n barriers in n parts between strong barriers: part k uses barriers k
// and n-1-k, so that lifetimes in the whole kernel contain one another.
func nested(n int) string {
	first, second := make([]string, n), make([]string, n)
	for k := range n {
		first[k] = fmt.Sprintf("a%d s%d ", 100+k, 100+n+n-1-k)
		second[k] = fmt.Sprintf("s%d a%d ", 100+k, 100+n+n-1-k)
		if k >= n/2 {
			first[k] = fmt.Sprintf("a%d s%d ", 100+n-1-k, 100+n+k)
			second[k] = fmt.Sprintf("s%d a%d ", 100+n-1-k, 100+n+k)
		}
	}
	return twoThreads(strings.Join(first, "|"), strings.Join(second, "|"))
}

// chain is a kernel in which each warp waits for the one before it and lets the next go on,
// round after round, by n barriers. If guarded, a branch that is not known is before each.
func chain(warps, n int, guarded bool) string {
	var s strings.Builder
	fmt.Fprintf(&s, ".visible .entry chain()\n.reqntid %d\n{\nmov.u32 %%r1, %%tid.x;\nshr.u32 %%r2, %%r1, 5;\n", 32*warps)
	link := func(k, warp int, kind string) {
		fmt.Fprintf(&s, "setp.ne.u32 %%p%d%s, %%r2, %d;\n@%%p%d%s bra X%d%s;\n", k, kind, warp, k, kind, k, kind)
		if guarded {
			fmt.Fprintf(&s, "@%%q bra Q%d%s;\nQ%d%s:\n", k, kind, k, kind)
		}
		fmt.Fprintf(&s, "barrier.%s %d, 64;\nX%d%s:\n", kind, 100+k, k, kind)
	}
	for k := range n {
		link(k, k%warps, "arrive")
		link(k, (k+1)%warps, "sync")
	}
	s.WriteString("ret;\n}\n")
	return s.String()
}

// A chain needs no more barriers than it has warps, however long it is.
func TestChains(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		a, err := Allocate(t.Context(), chain(4, 800, guarded), Options{})
		if err != nil || a.Report.Kernels[0].Logical != 800 || a.Report.Kernels[0].Used > 4 {
			t.Errorf("guarded: %v: %+v, %v", guarded, a.Report.Kernels, err)
		}
	}
}

// Chains by all warps of a block, as they grow: the time should grow with them.
func BenchmarkChain(b *testing.B) {
	for _, guarded := range []bool{false, true} {
		for _, n := range []int{100, 200, 400, 800} {
			b.Run(fmt.Sprintf("n=%d/guarded=%t", n, guarded), func(b *testing.B) {
				source := chain(32, n, guarded)
				for b.Loop() {
					_, _ = Allocate(b.Context(), source, Options{}) // which may refuse it: there are 16
				}
			})
		}
	}
}

// analyse allocates a kernel in segments, or as a whole, and returns the physical barriers
// that it needs.
func analyse(tb testing.TB, source string, whole bool) (used int) {
	g := flowIn(tb, source)
	p, err := newPlan(tb.Context(), g, g.shape)
	if err != nil {
		tb.Fatal(err)
	}
	if whole {
		p.strong = nil
		p.number()
	}
	for _, s := range p.segments() {
		if err := s.order(tb.Context()); err != nil {
			tb.Fatal(err)
		}
		used = max(used, assign(s.overs()).used)
	}
	return used
}

// In segments a kernel needs no more barriers than as a whole, and fewer if its barriers
// come again.
func TestSegmentsNeedFewerBarriers(t *testing.T) {
	for _, n := range []int{4, 16, 64} {
		if inSegments, whole := analyse(t, nested(n), false), analyse(t, nested(n), true); inSegments != 2 || whole < n/2 {
			t.Errorf("n=%d: %d in segments, %d as a whole", n, inSegments, whole)
		}
	}
}

// Allocation in segments against that of a whole kernel: the time, and the physical barriers
// needed, as n grows.
func BenchmarkSegments(b *testing.B) {
	for _, n := range []int{16, 64, 256} {
		source := nested(n)
		for _, whole := range []bool{false, true} {
			b.Run(fmt.Sprintf("n=%d/whole=%t", n, whole), func(b *testing.B) {
				used := 0
				for b.Loop() {
					used = analyse(b, source, whole)
				}
				b.ReportMetric(float64(used), "barriers")
			})
		}
	}
}
