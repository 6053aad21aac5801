package queue

import (
	"cmp"
	"math"
	"math/bits"

	"weir/pool/placement"
)

// project is what an order knows of a project while it is being made.
type project struct {
	part    part
	waiting []Request // of the priority being served, by age
}

func projectsOf(requests []Request) map[int64]*project {
	projects := map[int64]*project{}
	for i := range requests {
		r := &requests[i]
		inUse, quota := max(r.InUse, 0), max(r.Quota, 0)
		if p, known := projects[r.Project]; known {
			p.part = part{max(p.part.inUse, inUse), min(p.part.quota, quota)}
		} else {
			projects[r.Project] = &project{part: part{inUse, quota}}
		}
	}
	return projects
}

// part is the GPU cores that a project holds out of its quota.
type part struct{ inUse, quota int64 }

// compare orders parts as the fractions that they are, exactly. Nothing is a
// larger part than any of no quota at all.
func (a part) compare(b part) int {
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

// turns is a heap of projects: the next to be served is on top.
type turns []*project

func (t turns) Len() int { return len(t) }
func (t turns) Less(i, j int) bool {
	return cmp.Or(t[i].part.compare(t[j].part), byAge(&t[i].waiting[0], &t[j].waiting[0])) < 0
}
func (t turns) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)   { *t = append(*t, x.(*project)) }
func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
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
