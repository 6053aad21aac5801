package queue

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"weir/pool/placement"
)

// DefaultPriority is that of a project for which nobody has chosen another;
// priorities go from 0 to 100.
const DefaultPriority = 50

// Request is one request that waits.
type Request struct {
	ID, Project, Member int64 // the ID is unique in a queue
	Priority            int   // 0..100, the project's; a higher one goes first
	Demand              placement.Demand
	// InUse and Quota are the GPU cores that the project holds now, and may
	// hold. They are the project's: where its requests disagree, the most held
	// and the least quota count.
	InUse, Quota int64
	Since        time.Time // waiting since
}

// Criterion is what puts a request behind its predecessor.
type Criterion int

const (
	// First is for the request that has no predecessor.
	First Criterion = iota
	// Priority: the predecessor's is higher.
	Priority
	// Patience: the predecessor has waited for longer than patience, this one
	// has not.
	Patience
	// Fairness: the predecessor's project holds a smaller part of its quota,
	// counting what is granted before both.
	Fairness
	// Age: the predecessor asked earlier or, at the same instant, has the
	// smaller ID.
	Age
	criterionCount
)

var criterionNames = [criterionCount]string{"first", "priority", "patience", "fairness", "age"}

// String is the criterion's stable name, for logs and programs.
func (c Criterion) String() string {
	if c < 0 || c >= criterionCount {
		return "unknown"
	}
	return criterionNames[c]
}

// Ranked is a request with its place in the order.
type Ranked struct {
	Request
	Place  int       // from 1
	Behind Criterion // why it does not stand before the request at Place-1
}

// Order puts requests in the order in which they are served at now. Equal
// requests in any order give the same answer; the argument stays as it is.
// With a patience of 0 or less it is by priority, then by age.
func Order(requests []Request, now time.Time, patience time.Duration) []Ranked {
	waiting := slices.Clone(requests)
	slices.SortFunc(waiting, func(a, b Request) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), byAge(&a, &b))
	})
	w := walk{ranked: make([]Ranked, 0, len(waiting)), projects: projectsOf(waiting)}
	for len(waiting) > 0 {
		n := runOf(waiting, func(r Request) bool { return r.Priority == waiting[0].Priority })
		w.serve(waiting[:n], now, patience)
		waiting = waiting[n:]
	}
	return w.ranked
}

func byAge(a, b *Request) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
}

// runOf is how many of the first requests satisfy is.
func runOf(requests []Request, is func(Request) bool) int {
	if n := slices.IndexFunc(requests, func(r Request) bool { return !is(r) }); n >= 0 {
		return n
	}
	return len(requests)
}

// walk serves one request after the other and counts what each is granted.
type walk struct {
	ranked   []Ranked
	projects map[int64]*project
}

// serve appends requests of one priority, which come sorted by age.
func (w *walk) serve(requests []Request, now time.Time, patience time.Duration) {
	why := Priority
	if len(w.ranked) == 0 {
		why = First
	}
	n := runOf(requests, func(r Request) bool { return now.Sub(r.Since) >= patience })
	for _, r := range requests[:n] {
		w.grant(r, why)
		why = Age
	}
	if n > 0 {
		why = Patience
	}
	turn := w.turns(requests[n:])
	for len(turn) > 0 {
		p := turn[0]
		r := p.waiting[0]
		p.waiting = p.waiting[1:]
		before := p.part
		w.grant(r, why)
		if len(p.waiting) == 0 {
			heap.Pop(&turn)
		} else {
			heap.Fix(&turn, 0)
		}
		why = Age
		// The next one's part as it was when this one was chosen: its own
		// project's has grown since.
		if len(turn) > 0 && turn[0] != p && before.compare(turn[0].part) < 0 {
			why = Fairness
		}
	}
}

// turns is the projects of the requests, the one whose turn it is on top.
func (w *walk) turns(requests []Request) turns {
	var t turns
	for _, r := range requests {
		p := w.projects[r.Project]
		if len(p.waiting) == 0 {
			t = append(t, p)
		}
		p.waiting = append(p.waiting, r)
	}
	heap.Init(&t)
	return t
}

func (w *walk) grant(r Request, why Criterion) {
	w.ranked = append(w.ranked, Ranked{Request: r, Place: len(w.ranked) + 1, Behind: why})
	p := w.projects[r.Project]
	p.part.inUse = add(p.part.inUse, coresOf(r.Demand))
}
