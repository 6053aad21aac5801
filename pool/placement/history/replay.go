package history

import (
	"container/heap"
	"slices"
	"time"

	"weir/pool/placement"
)

// replay is one way through the past. A job is known by its index in jobs.
type replay struct {
	pool    *placement.Engine
	empty   placement.Snapshot
	totals  placement.Totals // of the empty pool
	jobs    []Job            // by arrival
	queues  map[placement.Demand]*demandQueue
	queued  []*demandQueue // those with jobs that wait
	leaving departures

	inUse, waiting int64 // GPU cores now
	samples        []sample
	waits          []time.Duration // of the jobs that were placed
	served         float64         // GPU-core-hours
	unmet          map[placement.Demand]*Unmet
}

// demandQueue is jobs with the same demand: where one does not fit, none does.
type demandQueue struct {
	demand  placement.Demand
	refused bool  // by the empty pool
	waiting []int // the jobs that wait, by arrival
}

func simulate(nodes []placement.Node, jobs []Job, p placement.Policy) *replay {
	empty := placement.Snapshot{Nodes: nodes}.Emptied()
	r := &replay{pool: placement.New(empty.Nodes, p), empty: empty, totals: placement.Capacity(empty),
		jobs: slices.Clone(jobs), queues: map[placement.Demand]*demandQueue{}, unmet: map[placement.Demand]*Unmet{}}
	slices.SortStableFunc(r.jobs, func(a, b Job) int { return a.Arrived.Compare(b.Arrived) })
	for next := 0; next < len(r.jobs) || len(r.leaving) > 0; {
		if len(r.leaving) == 0 || next < len(r.jobs) && r.arrival(next) < r.leaving[0].at {
			r.arrive(next)
			next++
		} else {
			r.depart()
		}
	}
	return r
}

// arrival is when a job arrives, since the first one did.
func (r *replay) arrival(job int) time.Duration {
	return r.jobs[job].Arrived.Sub(r.jobs[0].Arrived)
}

func (r *replay) end() time.Duration {
	if len(r.samples) == 0 {
		return 0
	}
	return r.samples[len(r.samples)-1].at
}

func (r *replay) arrive(job int) {
	d := r.jobs[job].Demand
	c := r.queueOf(d)
	now := r.arrival(job)
	switch {
	case c.refused:
		u := r.unmetOf(d)
		u.Refused++
		u.RefusedCoreHours += hours(coresOf(d), r.jobs[job].Lasts)
	case len(c.waiting) > 0 || !r.place(job, now):
		if len(c.waiting) == 0 {
			r.queued = append(r.queued, c)
		}
		c.waiting = append(c.waiting, job)
		r.waiting += coresOf(d)
	}
	r.sample(now)
}

func (r *replay) queueOf(d placement.Demand) *demandQueue {
	c := r.queues[d]
	if c == nil {
		c = &demandQueue{demand: d, refused: placement.Refuse(r.empty, d) != nil}
		r.queues[d] = c
	}
	return c
}

// place gives a job what it asks for, if there is enough.
func (r *replay) place(job int, now time.Duration) bool {
	j := &r.jobs[job]
	choice, ok := r.pool.Find(j.Demand)
	if !ok {
		return false
	}
	r.pool.Allocate(choice, j.Demand, int64(job))
	r.inUse += coresOf(j.Demand)
	heap.Push(&r.leaving, departure{now + max(j.Lasts, 0), job})
	r.served += hours(coresOf(j.Demand), j.Lasts)
	wait := now - r.arrival(job)
	r.waits = append(r.waits, wait)
	if wait > 0 {
		u := r.unmetOf(j.Demand)
		u.Waited++
		u.WaitedCoreHours += hours(coresOf(j.Demand), wait)
		u.LongestWait = max(u.LongestWait, Seconds(wait))
	}
	return true
}

// depart lets all leave that leave next, and serves the queue.
func (r *replay) depart() {
	now := r.leaving[0].at
	for len(r.leaving) > 0 && r.leaving[0].at == now {
		job := heap.Pop(&r.leaving).(departure).job
		r.inUse -= coresOf(r.jobs[job].Demand)
		r.pool.Release(int64(job))
	}
	r.serve(now)
	r.sample(now)
}

// serve goes through the jobs that wait, by arrival.
func (r *replay) serve(now time.Duration) {
	candidates := slices.Clone(r.queued)
	for len(candidates) > 0 {
		first := 0
		for i, c := range candidates {
			if c.waiting[0] < candidates[first].waiting[0] {
				first = i
			}
		}
		c := candidates[first]
		placed := r.place(c.waiting[0], now)
		if placed {
			c.waiting = c.waiting[1:]
			r.waiting -= coresOf(c.demand)
		}
		if !placed || len(c.waiting) == 0 {
			candidates = slices.Delete(candidates, first, first+1)
		}
	}
	r.queued = slices.DeleteFunc(r.queued, func(c *demandQueue) bool { return len(c.waiting) == 0 })
}

// sample notes the state from now on; of one moment the last state counts.
func (r *replay) sample(now time.Duration) {
	if n := len(r.samples); n > 0 && r.samples[n-1].at == now {
		r.samples = r.samples[:n-1]
	}
	r.samples = append(r.samples, sample{now, r.inUse, r.waiting})
}

// unmetOf is the unmet demand of a size, whichever project's.
func (r *replay) unmetOf(d placement.Demand) *Unmet {
	d.Project = 0
	if r.unmet[d] == nil {
		r.unmet[d] = &Unmet{Model: d.Model, GPUs: d.GPUs, Cores: d.Cores, MemoryMiB: d.MemoryMiB}
	}
	return r.unmet[d]
}

func (r *replay) result(end time.Duration) Result {
	result := Result{Machines: len(r.empty.Nodes), GPUs: r.totals.GPUs, CapacityCores: r.totals.FreeCores, Jobs: len(r.jobs),
		Placed: len(r.waits), Refused: len(r.jobs) - len(r.waits), CoreHours: r.served, Waits: waitsOf(r.waits),
		Unmet: make([]Unmet, 0, len(r.unmet))}
	if len(r.jobs) > 0 {
		result.From = r.jobs[0].Arrived
		result.To = result.From.Add(end)
	}
	result.Points = average(r.samples, result.From, end, r.totals.FreeCores)
	for _, u := range r.unmet {
		result.Waited += u.Waited
		result.Unmet = append(result.Unmet, *u)
	}
	slices.SortFunc(result.Unmet, compareUnmet)
	return result
}

// coresOf is the GPU cores of all GPUs of a demand; an impossible one has none.
func coresOf(d placement.Demand) int64 { return max(int64(d.GPUs), 0) * max(d.Cores, 0) }

// hours is GPU cores times hours.
func hours(cores int64, d time.Duration) float64 { return float64(cores) * max(d, 0).Hours() }

// departures is a heap of jobs that hold something, the first to leave on
// top.
type departures []departure

type departure struct {
	at  time.Duration // since the first arrival
	job int
}

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].at < d[j].at }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
