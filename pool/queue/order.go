package queue

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// Order returns the requests in their order at now. A request is overdue when
// it has waited for overdueAfter or longer; with 0 or less, all are. The order
// of the argument, which is not changed, does not matter.
func Order(requests []Request, now time.Time, overdueAfter time.Duration) []Ranked {
	waiting := slices.Clone(requests)
	slices.SortFunc(waiting, func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), byAge(&a, &b))
	})
	w := servingOrder{ranked: make([]Ranked, 0, len(waiting)), projects: projectsOf(waiting)}
	for len(waiting) > 0 {
		n := prefixLength(waiting, func(r Request) bool { return r.Priority == waiting[0].Priority })
		w.serve(waiting[:n], now, overdueAfter)
		waiting = waiting[n:]
	}
	return w.ranked
}

// prefixLength is how many of the first requests satisfy is.
func prefixLength(requests []Request, is func(Request) bool) int {
	if n := slices.IndexFunc(requests, func(r Request) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(requests)
}

// servingOrder serves one request after the other and counts what each is granted.
type servingOrder struct {
	ranked   []Ranked
	projects map[int64]*project
}

// serve appends requests of one priority, which come sorted by age.
func (w *servingOrder) serve(requests []Request, now time.Time, overdueAfter time.Duration) {
	why := Priority
	if len(w.ranked) == 0 {
		why = First
	}
	n := prefixLength(requests, func(r Request) bool { return now.Sub(r.Since) >= overdueAfter })
	for _, r := range requests[:n] {
		w.grant(r, why)
		why = Age
	}
	if n > 0 {
		why = Overdue
	}
	next := w.projectsOf(requests[n:])
	for len(next) > 0 {
		p := next[0]
		r := p.waiting[0]
		p.waiting = p.waiting[1:]
		before := p.part
		w.grant(r, why)
		if len(p.waiting) == 0 {
			heap.Pop(&next)
		} else {
			heap.Fix(&next, 0)
		}
		why = Age
		// The next one's part as it was when this one was chosen: its own
		// project's has grown since.
		if len(next) > 0 && next[0] != p && before.compare(next[0].part) < 0 {
			why = Fairness
		}
	}
}

// projectsOf is the projects of the requests, the next to be served on top.
func (w *servingOrder) projectsOf(requests []Request) projectHeap {
	var h projectHeap
	for _, r := range requests {
		p := w.projects[r.Project]
		if len(p.waiting) == 0 {
			h = append(h, p)
		}
		p.waiting = append(p.waiting, r)
	}
	heap.Init(&h)
	return h
}

func (w *servingOrder) grant(r Request, why Criterion) {
	w.ranked = append(w.ranked, Ranked{Request: r, Position: len(w.ranked) + 1, Behind: why})
	p := w.projects[r.Project]
	p.part.inUse = add(p.part.inUse, coresOf(r.Demand))
}
