package estimates

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"weir/pool/placement"
)

// run is one estimate in progress.
type run struct {
	pool    *placement.Engine
	now     time.Time
	ends    ends
	known   map[int64]bool         // holders with a known end
	gone    map[int64][]endedShare // by device
	leaves  int                    // that there have been
	waiting []request
	open    int // requests that can still be placed
	models  []string
}

// request is one that waits, with what is found out about it.
type request struct {
	Waiting
	done     bool // placed, or it can never be
	estimate Estimate
	behind   *request // the last whose reservation blocked it
}

// endedShare is a share that has ended.
type endedShare struct {
	order          int // of the leaving
	holder, device int64
	share          placement.Share
}

func newRun(s placement.Snapshot, list []End, waiting []Waiting, now time.Time, p placement.Policy) *run {
	r := &run{pool: placement.New(s.Nodes, p), now: now, known: map[int64]bool{}, gone: map[int64][]endedShare{},
		waiting: make([]request, len(waiting)), open: len(waiting), models: modelsOf(s)}
	last := map[int64]End{}
	for _, e := range list {
		if old, twice := last[e.Holder]; !twice || e.At.After(old.At) {
			last[e.Holder] = e
		}
	}
	for _, e := range last {
		if e.At.Before(now) {
			e.At = now
		}
		r.ends = append(r.ends, e)
		r.known[e.Holder] = e.Known
	}
	heap.Init(&r.ends)
	r.begin(s, waiting)
	return r
}

// begin takes in the requests and settles those that can never be placed.
func (r *run) begin(s placement.Snapshot, waiting []Waiting) {
	empty := s.Emptied()
	for i := range empty.Nodes {
		for j := range empty.Nodes[i].Devices {
			empty.Nodes[i].Devices[j].Changing = false // it ends
		}
	}
	fits := map[placement.Demand]bool{}
	for i, w := range waiting {
		r.waiting[i] = request{Waiting: w, estimate: Estimate{Holder: w.Holder}}
		ever, known := fits[w.Demand]
		if !known {
			ever = placement.Refuse(empty, w.Demand) == nil
			fits[w.Demand] = ever
		}
		if !ever {
			r.settle(&r.waiting[i], Never)
		}
	}
}

func (r *run) settle(w *request, o Outcome) {
	w.done, w.estimate.Outcome = true, o
	r.open--
}

func modelsOf(s placement.Snapshot) (models []string) {
	for i := range s.Nodes {
		for j := range s.Nodes[i].Devices {
			if m := s.Nodes[i].Devices[j].Model; !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}

// ends is a heap of expected ends, the earliest on top.
type ends []End

func (e ends) Len() int { return len(e) }
func (e ends) Less(i, j int) bool {
	return cmp.Or(e[i].At.Compare(e[j].At), cmp.Compare(e[i].Holder, e[j].Holder)) < 0
}
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)   { *e = append(*e, x.(End)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
