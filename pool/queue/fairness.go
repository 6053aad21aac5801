package queue

import (
	"cmp"
	"math"
	"math/bits"

	"weir/pool/placement"
)

// project is the state of a project while the order is made.
type project struct {
	part    usageRatio
	waiting []Request // of the priority being served, by age
}

func projectsOf(requests []Request) map[int64]*project {
	projects := map[int64]*project{}
	for i := range requests {
		r := &requests[i]
		inUse, quota := max(r.InUse, 0), max(r.Quota, 0)
		if p, known := projects[r.Project]; known {
			p.part = usageRatio{max(p.part.inUse, inUse), min(p.part.quota, quota)}
		} else {
			projects[r.Project] = &project{part: usageRatio{inUse, quota}}
		}
	}
	return projects
}

// usageRatio is the GPU cores that a project uses of its quota.
type usageRatio struct{ inUse, quota int64 }

// compare orders parts as the fractions that they are, exactly. Nothing is a
// larger part than any of no quota at all.
func (a usageRatio) compare(b usageRatio) int {
	switch {
	case a.quota == 0 && b.quota == 0:
		return 0
	case a.quota == 0:
		return 1
	case b.quota == 0:
		return -1
	}
	aHi, aLo := bits.Mul64(uint64(a.inUse), uint64(b.quota))
	bHi, bLo := bits.Mul64(uint64(b.inUse), uint64(a.quota))
	return cmp.Or(cmp.Compare(aHi, bHi), cmp.Compare(aLo, bLo))
}

// projectHeap has the project that is served next on top.
type projectHeap []*project

func (h projectHeap) Len() int { return len(h) }
func (h projectHeap) Less(i, j int) bool {
	return cmp.Or(h[i].part.compare(h[j].part), byAge(&h[i].waiting[0], &h[j].waiting[0])) < 0
}
func (h projectHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *projectHeap) Push(x any)   { *h = append(*h, x.(*project)) }
func (h *projectHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// coresOf is the GPU cores that a demand takes of its project's quota.
func coresOf(d placement.Demand) int64 {
	hi, lo := bits.Mul64(uint64(max(d.GPUs, 0)), uint64(max(d.Cores, 0)))
	if hi > 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// add sums two quantities that are not negative and stays at the maximum.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
