package timeline

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"weir/pool/placement"
	"weir/pool/placement/occupancy"
)

// run is one forecast on its way from now on.
type run struct {
	pool    *occupancy.Pool
	policy  placement.Policy
	now     time.Time
	ends    ends
	known   map[int64]bool   // holders that leave by a rule
	gone    map[int64][]left // by device
	leaves  int              // that there have been
	waiting []request
	open    int // requests that can still be placed
	models  []string
}

// state is how far a request has come.
type state int

const (
	waits state = iota
	done        // placed, or it can never be
)

// request is one that waits, with what is found out about it.
type request struct {
	Waiting
	state    state
	estimate Estimate
	seen     bool     // refused by every node; from then on only what leaves can help
	behind   *request // the last that kept room from it
}

// left is a share that its holder has given back.
type left struct {
	order          int // of the leaving
	holder, device int64
	share          placement.Share
}

func newRun(s placement.Snapshot, list []End, waiting []Waiting, now time.Time, p placement.Policy) *run {
	r := &run{pool: occupancy.New(s), policy: p, now: now, known: map[int64]bool{}, gone: map[int64][]left{},
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

// begin notes the requests, and which of them can never be placed.
func (r *run) begin(s placement.Snapshot, waiting []Waiting) {
	empty := occupancy.Empty(s)
	for i := range empty.Nodes {
		for j := range empty.Nodes[i].Devices {
			empty.Nodes[i].Devices[j].Changing = false // it will have changed
		}
	}
	best := occupancy.New(empty)
	fits := map[placement.Demand]bool{} // of those to whom everything is lent
	for i, w := range waiting {
		r.waiting[i] = request{Waiting: w, estimate: Estimate{Holder: w.Holder}}
		ever, told := fits[w.Demand]
		if !told || len(w.NotLent) > 0 {
			_, ever = best.Find(w.Demand, r.policy, w.NotLent...)
		}
		if len(w.NotLent) == 0 {
			fits[w.Demand] = ever
		}
		if !ever {
			r.settle(&r.waiting[i], Never)
		}
	}
}

func (r *run) settle(w *request, o Outcome) {
	w.state, w.estimate.Outcome = done, o
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

// leave goes on to the next end, lets all that end then leave, and returns
// the nodes on which that made room.
func (r *run) leave() (nodes []int) {
	r.now = r.ends[0].At
	for r.ends.Len() > 0 && !r.ends[0].At.After(r.now) {
		holder := heap.Pop(&r.ends).(End).Holder
		r.leaves++
		for _, part := range r.pool.Leave(holder) {
			device := r.pool.Nodes()[part.Node].Devices[part.Device].ID
			r.gone[device] = append(r.gone[device], left{r.leaves, holder, device, part.Share})
			if !slices.Contains(nodes, part.Node) {
				nodes = append(nodes, part.Node)
			}
		}
	}
	return nodes
}

// serve goes through the queue once, when there is new room on some nodes.
func (r *run) serve(nodes []int) {
	var firm []*request
	for i := range r.waiting {
		w := &r.waiting[i]
		if w.state == done {
			continue
		}
		if ahead := r.blocking(firm, w); ahead != nil {
			w.behind = ahead
		} else {
			r.try(w, nodes)
		}
		if w.state == waits && !w.Firm.IsZero() && !w.Firm.After(r.now) {
			firm = append(firm, w)
		}
	}
}

// blocking is the first of the requests that keep room which w could want.
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

func (r *run) try(w *request, nodes []int) {
	find := r.pool.Find
	if w.seen {
		// Where it did not fit there is only less now.
		find = func(d placement.Demand, p placement.Policy, barred ...int64) (placement.Choice, bool) {
			return r.pool.FindOn(nodes, d, p, barred...)
		}
	}
	choice, ok := find(w.Demand, r.policy, w.NotLent...)
	if !ok {
		w.seen, w.behind = true, nil
		return
	}
	r.settle(w, Placed)
	w.estimate.At = r.now
	w.estimate.After, w.estimate.Known = r.reasons(w, choice)
	r.pool.Take(choice, w.Demand.Project, w.Holder)
	if w.Lasts > 0 {
		heap.Push(&r.ends, End{Holder: w.Holder, At: r.now.Add(w.Lasts)})
	}
}

// reasons is what w had to wait for until it could have what was chosen, and
// whether a rule had foretold all of it.
func (r *run) reasons(w *request, c placement.Choice) (after []int64, known bool) {
	known = true
	after = r.cleared(w, c)
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
