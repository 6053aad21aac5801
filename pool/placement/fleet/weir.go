package fleet

import (
	"cmp"
	"math"
	"math/rand"
	"slices"
)

// feed is how many times its own share of CPU a kind of task may count on when
// it asks how much GPU the CPU of a machine can feed: it will share the machine
// with kinds that need less. Results are flat between about 1.3 and 2.
const feed = 1.5

// weir is Weir's own policy. Like FGD it follows the gradient of what a
// machine could still be used for by tasks like those that came, and differs
// from it in four ways:
//
//   - It looks at more than one arrival: what a kind of task can use of a
//     machine is bounded by the GPU that the machine's CPU can feed, not only
//     by whether one such task still fits. See [prospect.worth].
//   - It listens to all kinds of tasks, the rare and large ones too.
//   - It scores in thousandths of a GPU. With the other three, the coarse
//     rounding that FGD needs does harm.
//   - It keeps models free for the tasks that can run on nothing else. See
//     [reserve].
func weir(f *Fleet, workload []Task, _ *rand.Rand) policy {
	prospects := f.prospects(workload)
	best := func(m *machine, n *need) (gpu int, gain float64) {
		p := prospects[m.model]
		if n.fraction() {
			return p.fraction(m, n)
		}
		return 0, p.gain(m, n)
	}
	return policy{
		premiums: newReserve(f, workload).premiums,
		score: func(m *machine, n *need) int32 {
			_, gain := best(m, n)
			return int32(math.Floor(gain))
		},
		pick: func(m *machine, n *need) []int {
			if n.fraction() {
				gpu, _ := best(m, n)
				return []int{gpu}
			}
			return tightest(m, n)
		},
	}
}

// prospect is what the tasks to come could use of machines with one model of
// GPU.
type prospect struct {
	sizes   []size
	seen    []sight // scratch, by size
	scratch []int32
}

// size is the kinds of tasks that want the same of GPUs. The sums run over
// the kinds with the least CPU: [i] is the sum of the first i.
type size struct {
	gpus  int32
	milli int32
	cpus  []int64   // milli that each kind needs, ascending
	share []float64 // how likely a task is of these kinds
	ratio []float64 // Σ likelihood × milli-GPU that one milli-CPU can feed
}

// sight is what a size sees on a machine: the GPUs that have enough left for
// it, and how much they have together.
type sight struct{ gpus, milli int32 }

func (s sight) with(left, enough, sign int32) sight {
	if left >= enough {
		s.gpus += sign
		s.milli += sign * left
	}
	return s
}

func (f *Fleet) prospects(workload []Task) []*prospect {
	kinds := f.kinds(workload)
	slices.SortFunc(kinds, func(a, b likelihood) int {
		return cmp.Or(cmp.Compare(a.milli, b.milli), cmp.Compare(a.GPUs, b.GPUs),
			cmp.Compare(a.CPUMilli, b.CPUMilli), cmp.Compare(a.Models, b.Models))
	})
	all := make([]*prospect, len(f.models))
	for model := range all {
		all[model] = &prospect{}
		for _, k := range kinds {
			if k.GPUs > 0 && k.allows(model) {
				all[model].add(k, float64(k.count)/float64(len(workload)))
			}
		}
		all[model].seen = make([]sight, len(all[model].sizes))
	}
	return all
}

// add takes a kind in; kinds of one size come one after another, by CPU.
func (p *prospect) add(k likelihood, share float64) {
	last := len(p.sizes) - 1
	if last < 0 || p.sizes[last].milli != k.milli || int(p.sizes[last].gpus) != k.GPUs {
		p.sizes = append(p.sizes, size{gpus: int32(k.GPUs), milli: k.milli, share: []float64{0}, ratio: []float64{0}})
		last++
	}
	s, n := &p.sizes[last], len(p.sizes[last].cpus)
	s.cpus = append(s.cpus, k.CPUMilli)
	s.share = append(s.share, s.share[n]+share)
	s.ratio = append(s.ratio, s.ratio[n]+share*feed*float64(k.TotalMilli())/float64(max(k.CPUMilli, 1)))
}

// look sums up, for each size, the GPUs that it could use.
func (p *prospect) look(left []int32) {
	for i := range p.sizes {
		var s sight
		for _, l := range left {
			s = s.with(l, p.sizes[i].milli, 1)
		}
		p.seen[i] = s
	}
}

// worth is the GPU, in milli, that a size could use of a machine with that
// much CPU, times its likelihood. A kind whose CPU or GPUs are not there for
// even one task uses nothing; otherwise what is left on the GPUs that fit it,
// but no more than the CPU feeds.
func (s *size) worth(cpu int64, on sight) float64 {
	if on.gpus < s.gpus {
		return 0
	}
	// Kinds with so little CPU that it feeds all that is left.
	enough := int64(feed * float64(cpu) * float64(s.gpus*s.milli) / float64(on.milli))
	fed := upTo(s.cpus, min(enough, cpu))
	fit := fed + upTo(s.cpus[fed:], cpu)
	return float64(on.milli)*s.share[fed] + float64(cpu)*(s.ratio[fit]-s.ratio[fed])
}

func (p *prospect) worth(cpu int64, left []int32) (worth float64) {
	p.look(left)
	for i := range p.sizes {
		worth += p.sizes[i].worth(cpu, p.seen[i])
	}
	return worth
}

// gain is the milli-GPU that the task uses itself, less what it takes from
// those to come, when it runs on the machine's tightest GPUs.
func (p *prospect) gain(m *machine, n *need) float64 {
	before := p.worth(m.cpu, m.left)
	p.scratch = append(p.scratch[:0], m.left...)
	if n.GPUs > 0 {
		for _, gpu := range tightest(m, n) {
			p.scratch[gpu] -= n.milli
		}
	}
	return float64(n.TotalMilli()) + p.worth(m.cpu-n.CPUMilli, p.scratch) - before
}

// fraction is the GPU of a machine on which a fractional task gains most, and
// that gain.
func (p *prospect) fraction(m *machine, n *need) (gpu int, gain float64) {
	rest := float64(n.milli) - p.worth(m.cpu, m.left)
	cpu := m.cpu - n.CPUMilli
	gain = math.Inf(-1)
	for i, l := range m.left {
		if l < n.milli || slices.Contains(m.left[:i], l) {
			continue
		}
		here := rest
		for j := range p.sizes {
			s := &p.sizes[j]
			here += s.worth(cpu, p.seen[j].with(l, s.milli, -1).with(l-n.milli, s.milli, 1))
		}
		if here > gain {
			gpu, gain = i, here
		}
	}
	return gpu, gain
}
