package estimates

import (
	"container/heap"
	"slices"
	"time"

	"weir/pool/placement"
)

// EstimateEach estimates for each queued request, in the order of the queue,
// when it can be placed if shares end as expected. Ends of holders without
// shares do not matter; of several ends of a holder the last counts.
func EstimateEach(s placement.Snapshot, ends []End, waiting []Waiting, now time.Time, p placement.Policy) []Estimate {
	r := newRun(s, ends, waiting, now, p)
	if r.ends.Len() > 0 && r.ends[0].At.Equal(now) {
		r.leave()
	}
	r.serve()
	for r.open > 0 && r.ends.Len() > 0 {
		r.leave()
		r.serve()
	}
	for i := range r.waiting {
		if w := &r.waiting[i]; !w.done {
			w.estimate.After = r.missingHolders(w)
		}
	}
	estimates := make([]Estimate, len(r.waiting))
	for i := range r.waiting {
		estimates[i] = r.waiting[i].estimate
	}
	return estimates
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
