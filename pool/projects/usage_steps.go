package projects

import (
	"math"
	"time"

	"weir/models"
	"weir/models/store"
)

// UsageStep is one of equally long steps of the history of a project, or of all.
type UsageStep struct {
	From      time.Time
	InUse     models.Resources  // average since the creation of the project, if that lies in the step; without storage
	Allocated *models.Resources // sum of the limits at the end of the step; nil if not recorded
	Quota     *models.Resources // at the end of the step; nil if not recorded
}

// means is the average of two amounts in each of n steps, from the begins and ends
// of their use, weighted by time. lived is how many seconds of each step count.
func means(begins, ends []store.Edges, step time.Duration, lived []float64) (first, second []int64) {
	type sums struct{ amount, moment float64 }
	length, n := step.Seconds(), len(lived)
	average := func(of func(store.Edges) sums) []int64 {
		changes := make([]sums, n)
		add := func(edges []store.Edges, sign float64) {
			for _, e := range edges {
				if e.Step >= 0 && e.Step < int64(n) {
					c, s := &changes[e.Step], of(e)
					c.amount, c.moment = c.amount+sign*s.amount, c.moment+sign*s.moment
				}
			}
		}
		add(begins, 1)
		add(ends, -1)
		level, list := 0.0, make([]int64, n)
		for i, c := range changes {
			end := float64(i+1) * length
			list[i] = max(0, int64(math.Round((level*length+c.amount*end-c.moment)/lived[i])))
			level += c.amount
		}
		return list
	}
	return average(func(e store.Edges) sums { return sums{e.Amount, e.Moment} }),
		average(func(e store.Edges) sums { return sums{e.Amount2, e.Moment2} })
}

// allocatedAt sets the allocation at the end of each step. The history is sorted by
// time.
func allocatedAt(steps []UsageStep, step time.Duration, history []store.ProjectHistory) {
	k := -1
	for i := range steps {
		end := steps[i].From.Add(step)
		for k+1 < len(history) && history[k+1].FromAt.Before(end) {
			k++
		}
		if k >= 0 {
			steps[i].Allocated, steps[i].Quota = &history[k].Allocated, &history[k].Quota
		}
	}
}

// usageOver is the history of a project, which was created at some time, in n steps; of all if it
// is 0, without allocations.
func usageOver(q *store.Queries, scope store.Scope, project int64, created, from time.Time, step time.Duration, n int) (
	[]UsageStep, error) {
	steps, lived := make([]UsageStep, n), make([]float64, n)
	for i := range steps {
		steps[i].From, lived[i] = from.Add(time.Duration(i)*step), step.Seconds()
		if without := created.Sub(steps[i].From); without > 0 && without < step {
			lived[i] -= without.Seconds()
		}
	}
	for _, in := range []store.UsageTable{store.ShareUsage, store.HolderUsage} {
		begins, ends, err := q.UsageEdges(in, project, from, step, n)
		if err != nil {
			return nil, err
		}
		first, second := means(begins, ends, step, lived)
		for i := range steps {
			h := &steps[i].InUse
			if in == store.ShareUsage {
				h.GPUCores, h.GPUMemoryMiB = first[i], second[i]
			} else {
				h.CPUMilli, h.MemoryMiB = first[i], second[i]
			}
		}
	}
	if project == 0 {
		return steps, nil
	}
	history, err := q.ProjectHistory(scope, project, from, from.Add(time.Duration(n)*step))
	allocatedAt(steps, step, history)
	return steps, err
}
