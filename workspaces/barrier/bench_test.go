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

// analyse allocates a kernel in segments, or as a whole, and returns the physical barriers
// that it needs.
func analyse(tb testing.TB, source string, whole bool) (used int) {
	g := flowIn(tb, source)
	p := newPlan(g, g.shape)
	if whole {
		p.strong = nil
		p.number()
	}
	for _, s := range p.segments() {
		if err := s.order(); err != nil {
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
