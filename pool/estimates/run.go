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

// leave goes on to the next end and ends all shares that end then.
func (r *run) leave() {
	r.now = r.ends[0].At
	for r.ends.Len() > 0 && !r.ends[0].At.After(r.now) {
		holder := heap.Pop(&r.ends).(End).Holder
		r.leaves++
		for device, shares := range r.pool.Release(holder) {
			for _, share := range shares {
				r.gone[device] = append(r.gone[device], endedShare{r.leaves, holder, device, share})
			}
		}
	}
}

// serve goes through the queue once, after shares have ended.
func (r *run) serve() {
	var firm []*request
	for i := range r.waiting {
		w := &r.waiting[i]
		if w.done {
			continue
		}
		if ahead := r.blocking(firm, w); ahead != nil {
			w.behind = ahead
		} else {
			r.try(w)
		}
		if !w.done && !w.Firm.IsZero() && !w.Firm.After(r.now) {
			firm = append(firm, w)
		}
	}
}

// blocking is the first request with a reservation that w competes with.
func (r *run) blocking(firm []*request, w *request) *request {
	for _, f := range firm {
		if r.compete(f.Demand, w.Demand) {
			return f
		}
	}
	return nil
}

func (r *run) compete(a, b placement.Demand) bool {
	return a.GPUs > 0 && b.GPUs > 0 && slices.ContainsFunc(r.models, func(m string) bool {
		return placement.MatchesModel(m, a.Model) && placement.MatchesModel(m, b.Model)
	})
}

func (r *run) try(w *request) {
	choice, ok := r.pool.Find(w.Demand)
	if !ok {
		w.behind = nil
		return
	}
	r.settle(w, Placed)
	w.estimate.At = r.now
	w.estimate.After, w.estimate.Known = r.blockers(w, choice)
	r.pool.Allocate(choice, w.Demand, w.Holder)
	if w.Lasts > 0 {
		heap.Push(&r.ends, End{Holder: w.Holder, At: r.now.Add(w.Lasts)})
	}
}

// blockers is the holders that w waited for, and whether the ends of all of
// them were known.
func (r *run) blockers(w *request, c placement.Choice) (after []int64, known bool) {
	known = true
	after = r.clearedHolders(w, c)
	for _, holder := range after {
		known = known && r.known[holder]
	}
	if w.behind != nil {
		known = known && w.behind.estimate.Known
		if len(after) == 0 {
			after = []int64{w.behind.Holder}
		}
	}
	return after, known
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
