package fleet

import (
	"cmp"
	"math"
	"slices"
)

// protection is how much more a task that may be turned away later weighs
// than the fragments of one that is placed now. From about 3 the results
// hardly change.
const protection = 4

// reserve keeps models of GPU free for the tasks that can run on nothing else,
// as airlines keep seats for those who book late: one more GPU of a model
// costs what a choosier task would lose, times the probability that such
// tasks will want more than is left (Littlewood's rule, 1972). What is to come
// until the fleet is full is taken to be like the workload.
type reserve struct {
	fleet    *Fleet
	capacity []int64 // milli-GPU of each model when all is idle
	classes  []class // by width
	result   []float64
	demand   []float64
	variance []float64
}

// class is the tasks that allow the same models, fewer than all.
type class struct {
	models string
	member []int
	width  int64   // milli-GPU of all its models when idle
	share  float64 // of all GPU asked for
	grain  float64 // milli-GPU of a task, the larger tasks weighing more
}

func newReserve(f *Fleet, workload []Task) *reserve {
	r := &reserve{fleet: f, capacity: slices.Clone(f.free), result: make([]float64, len(f.models)),
		demand: make([]float64, len(f.models)), variance: make([]float64, len(f.models))}
	classes := map[string]*class{}
	asked := 0.0
	for _, t := range workload {
		milli := float64(t.TotalMilli())
		asked += milli
		if t.Models == "" {
			continue
		}
		c := classes[t.Models]
		if c == nil {
			n := f.need(t)
			c = &class{models: t.Models, width: r.width(&n)}
			for model := range f.models {
				if n.allows(model) {
					c.member = append(c.member, model)
				}
			}
			classes[t.Models] = c
		}
		c.share += milli
		c.grain += milli * milli
	}
	for _, c := range classes {
		if len(c.member) > 0 && c.share > 0 {
			c.grain /= c.share
			c.share /= asked
			r.classes = append(r.classes, *c)
		}
	}
	slices.SortFunc(r.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(a.width, b.width), cmp.Compare(a.models, b.models))
	})
	return r
}

// width is how much GPU a task could choose from if all were idle.
func (r *reserve) width(n *need) (milli int64) {
	for model, capacity := range r.capacity {
		if n.allows(model) {
			milli += capacity
		}
	}
	return milli
}

// premiums are what a task pays for each model, in milli-GPU, never positive;
// nil where nobody choosier than it is expected.
func (r *reserve) premiums(n *need) []float64 {
	width := r.width(n)
	if n.GPUs == 0 || len(r.classes) == 0 || r.classes[0].width >= width {
		return nil
	}
	r.expect(width)
	for model, free := range r.fleet.free {
		r.result[model] = 0
		if r.demand[model] > 0 {
			// The demand to come is a sum of many tasks, so about normal.
			short := (r.demand[model] - float64(free)) / math.Sqrt(r.variance[model]+1)
			r.result[model] = -protection * float64(n.TotalMilli()) * math.Erfc(-short/math.Sqrt2) / 2
		}
	}
	return r.result
}

// expect estimates how much of each model will still be asked for by the
// classes that choose from less than width: each class spreads over its models
// as they have room.
func (r *reserve) expect(width int64) {
	clear(r.demand)
	clear(r.variance)
	total := sum(r.fleet.free)
	for i := range r.classes {
		c := &r.classes[i]
		if c.width >= width {
			return
		}
		headroom := 0.0
		for _, model := range c.member {
			headroom += float64(r.fleet.free[model])
		}
		for _, model := range c.member {
			if headroom > 0 {
				demand := c.share * float64(total) * float64(r.fleet.free[model]) / headroom
				r.demand[model] += demand
				r.variance[model] += demand * c.grain
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
