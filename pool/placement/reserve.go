package placement

import (
	"cmp"
	"math"
	"slices"
)

// protectionFactor is how much more a demand that may be turned away later weighs
// than the fragments of one that is placed now. From about 3 the results
// hardly change.
const protectionFactor = 4

// maxOpportunityCost keeps an opportunity cost within its place in a cost.
const maxOpportunityCost = 1 << 21

// opportunityCostShift is where the fragmentation stands in a cost, see lookaheadFields.
const opportunityCostShift = 11 + 11 + 12

// reserve keeps models of GPU free for the demands that can run on nothing
// else, as airlines keep seats for those who book late: one more GPU of a
// model costs what a choosier demand would lose, times the probability that
// such demands will want more than is left (Littlewood's rule, 1972). What is
// to come until the pool is full is taken to be like the history.
type reserve struct {
	pool     *Engine
	kinds    []demandFrequency
	capacity []int64 // of the pool when the classes were made
	classes  []class // by capacity
	result   []cost
	demand   []float64
	variance []float64
}

// class is the demands that ask for the same models, fewer than all.
type class struct {
	models   string
	kinds    []int   // kinds of devices
	capacity int64   // milli-GPU of all these when idle
	share    float64 // of all GPU asked for
	meanSize float64 // milli-GPU of a demand, the larger ones weighing more
}

// classify makes the classes when the pool's capacity has changed.
func (r *reserve) classify() {
	count := len(r.pool.kinds)
	r.result, r.demand, r.variance = make([]cost, count), make([]float64, count), make([]float64, count)
	r.classes, r.capacity = nil, slices.Clone(r.pool.capacity)
	asked := 0.0
	for _, l := range r.kinds {
		milli := float64(int64(l.GPUs) * l.Cores * milli)
		asked += milli * l.frequency
		if l.Model == "" || l.GPUs == 0 {
			continue
		}
		i := slices.IndexFunc(r.classes, func(c class) bool { return c.models == l.Model })
		if i < 0 {
			i = len(r.classes)
			c := class{models: l.Model}
			for k, allowed := range r.pool.allowed(l.Demand) {
				if allowed {
					c.kinds = append(c.kinds, k)
					c.capacity += r.pool.capacity[k]
				}
			}
			r.classes = append(r.classes, c)
		}
		r.classes[i].share += milli * l.frequency
		r.classes[i].meanSize += milli * milli * l.frequency
	}
	r.classes = slices.DeleteFunc(r.classes, func(c class) bool { return len(c.kinds) == 0 || c.share == 0 })
	for i := range r.classes {
		r.classes[i].meanSize /= r.classes[i].share
		r.classes[i].share /= asked
	}
	slices.SortFunc(r.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(a.capacity, b.capacity), cmp.Compare(a.models, b.models))
	})
}

// opportunityCosts are what a demand pays for each kind of device, never negative;
// nil where nobody choosier than it is expected.
func (r *reserve) opportunityCosts(n *demandInfo) []cost {
	if !slices.Equal(r.capacity, r.pool.capacity) {
		r.classify()
	}
	capacity := int64(0)
	for k, allowed := range n.allowed {
		if allowed {
			capacity += r.pool.capacity[k]
		}
	}
	if n.GPUs == 0 || len(r.classes) == 0 || r.classes[0].capacity >= capacity {
		return nil
	}
	r.expect(capacity)
	for k, free := range r.pool.free {
		r.result[k] = 0
		if r.demand[k] > 0 {
			// The demand to come is a sum of many, so about normal.
			short := (r.demand[k] - float64(free)) / math.Sqrt(r.variance[k]+1)
			expectedLoss := protectionFactor * float64(n.total) * math.Erfc(-short/math.Sqrt2) / 2
			r.result[k] = cost(min(math.Round(expectedLoss), maxOpportunityCost)) << opportunityCostShift
		}
	}
	return r.result
}

// expect estimates how much of each kind will still be asked for by the
// classes that choose from less than capacity: each class spreads over its models
// as they have GPUs left.
func (r *reserve) expect(capacity int64) {
	clear(r.demand)
	clear(r.variance)
	total := sum(r.pool.free)
	for i := range r.classes {
		c := &r.classes[i]
		if c.capacity >= capacity {
			return
		}
		left := 0.0
		for _, k := range c.kinds {
			left += float64(r.pool.free[k])
		}
		for _, k := range c.kinds {
			if left > 0 {
				demand := c.share * float64(total) * float64(r.pool.free[k]) / left
				r.demand[k] += demand
				r.variance[k] += demand * c.meanSize
			}
		}
	}
}

func sum(numbers []int64) (total int64) {
	for _, n := range numbers {
		total += n
	}
	return total
}
