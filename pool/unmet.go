package pool

import (
	"cmp"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
)

// UnmetView is demand that the pool does not meet, by model and size.
type UnmetView struct {
	Model   string // requested; empty: any
	GPUs    int64
	Cores   int64 // per GPU
	Waiting int64 // requests that wait now
	Refused int64 // in the last day
	Oldest  *time.Time
}

// unmetPeriod is for how long a refusal counts as unmet demand.
const unmetPeriod = 24 * time.Hour

// unmet adds up what waits and what was refused lately, the largest first.
func unmet(q *store.Queries, now time.Time) ([]UnmetView, error) {
	waiting, err := q.Queued()
	if err != nil {
		return nil, err
	}
	sums := map[models.Demand]*UnmetView{}
	of := func(d models.Demand) *UnmetView {
		k := models.Demand{GPUModel: d.GPUModel, GPUs: d.GPUs, Cores: d.Cores}
		if sums[k] == nil {
			sums[k] = &UnmetView{Model: d.GPUModel, GPUs: d.GPUs, Cores: d.Cores}
		}
		return sums[k]
	}
	for _, w := range waiting {
		if w.Demand.GPUs == 0 {
			continue
		}
		u := of(w.Demand)
		u.Waiting++
		if u.Oldest == nil || w.RequestedAt.Before(*u.Oldest) {
			u.Oldest = &w.RequestedAt
		}
	}
	refused, err := q.RefusedDemands(now.Add(-unmetPeriod))
	if err != nil {
		return nil, err
	}
	for _, r := range refused {
		of(r.Demand).Refused += r.N
	}
	var list []UnmetView
	for _, u := range sums {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b UnmetView) int {
		return cmp.Or(cmp.Compare(b.Waiting*b.GPUs*b.Cores, a.Waiting*a.GPUs*a.Cores),
			cmp.Compare(b.Refused*b.GPUs*b.Cores, a.Refused*a.GPUs*a.Cores),
			cmp.Compare(b.GPUs, a.GPUs), cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.Model, b.Model))
	})
	return list, nil
}
