package fleet

import (
	"cmp"
	"math"
	"math/rand"
	"slices"
)

// likelihood is a kind of task and how often it came, among all that came.
type likelihood struct {
	need
	count int64
}

// kinds are the different tasks of a workload, memory not counted, the most
// frequent first.
func (f *Fleet) kinds(workload []Task) []likelihood {
	counts := map[Task]int64{}
	for _, t := range workload {
		t.MemoryMiB = 0
		counts[t]++
	}
	kinds := make([]likelihood, 0, len(counts))
	for t, n := range counts {
		kinds = append(kinds, likelihood{f.need(t), n})
	}
	slices.SortFunc(kinds, func(a, b likelihood) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.CPUMilli, b.CPUMilli),
			cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.GPUMilli, b.GPUMilli), cmp.Compare(a.Models, b.Models))
	})
	return kinds
}

// typical are the most frequent kinds, cut where they make up 95 percent of
// the workload: the typical tasks of Weng et al.
func (f *Fleet) typical(workload []Task) []likelihood {
	kinds := f.kinds(workload)
	sum := int64(0)
	for i, k := range kinds {
		if sum += k.count; sum*100 >= int64(len(workload))*95 {
			return kinds[:i+1]
		}
	}
	return kinds
}

// usability tells how much of a machine's free GPU typical tasks could use,
// for one model of GPU. It is counted in milli-GPU times tasks, so that every
// sum is exact: what a task that came n times could use, counts n times.
type usability struct {
	cpus   []int64 // of the typical single-GPU tasks, ascending
	rank   [Whole + 1]uint16
	width  int
	single []int64 // [CPU rank × width + GPU rank]: tasks with no more than both
	multi  []likelihood
}

func newUsability(kinds []likelihood, model int) *usability {
	u := &usability{}
	var millis []int64
	for _, k := range kinds {
		switch {
		case k.GPUs == 0 || !k.allows(model):
		case k.GPUs == 1:
			u.cpus = append(u.cpus, k.CPUMilli)
			millis = append(millis, k.GPUMilli)
		default:
			u.multi = append(u.multi, k)
		}
	}
	u.cpus = slices.Compact(slices.Sorted(slices.Values(u.cpus)))
	millis = slices.Compact(slices.Sorted(slices.Values(millis)))
	for left := range u.rank {
		u.rank[left] = uint16(upTo(millis, int64(left)))
	}
	u.width = len(millis) + 1
	u.single = make([]int64, (len(u.cpus)+1)*u.width)
	for _, k := range kinds {
		if k.GPUs != 1 || !k.allows(model) {
			continue
		}
		for c := upTo(u.cpus, k.CPUMilli); c <= len(u.cpus); c++ {
			for g := upTo(millis, k.GPUMilli); g < u.width; g++ {
				u.single[c*u.width+g] += k.count
			}
		}
	}
	return u
}

// upTo is how many of the ascending numbers are at most n.
func upTo(numbers []int64, n int64) int {
	i, found := slices.BinarySearch(numbers, n)
	if found {
		i++
	}
	return i
}

// at is the row of single-GPU tasks for a machine with that much CPU.
func (u *usability) at(cpu int64) []int64 {
	c := upTo(u.cpus, cpu)
	return u.single[c*u.width : (c+1)*u.width]
}

func (u *usability) one(row []int64, left int32) int64 {
	return int64(left) * row[u.rank[left]]
}

// group is what a typical task of several GPUs sees on a machine: how many
// GPUs have enough left, and how much they have together.
type group struct{ gpus, milli int64 }

func (g group) with(left, enough int32, sign int64) group {
	if left >= enough {
		g.gpus += sign
		g.milli += sign * int64(left)
	}
	return g
}

func (g group) usable(k *likelihood) int64 {
	if g.gpus < int64(k.GPUs) {
		return 0
	}
	return g.milli * k.count
}

// of is how much typical tasks could use of GPUs with that much left, on a
// machine with that much CPU.
func (u *usability) of(cpu int64, left []int32) (usable int64) {
	row := u.at(cpu)
	for _, l := range left {
		usable += u.one(row, l)
	}
	for i := range u.multi {
		k := &u.multi[i]
		if k.CPUMilli > cpu {
			continue
		}
		var g group
		for _, l := range left {
			g = g.with(l, k.milli, 1)
		}
		usable += g.usable(k)
	}
	return usable
}

// fragments measures how much idle GPU the typical tasks could not use, and
// how that changes: the measure of Weng et al., "Beware of Fragmentation:
// Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent",
// USENIX ATC 2023.
type fragments struct {
	tasks   int64 // typical tasks, each as often as it came
	models  []*usability
	scratch []int32
	groups  []group
}

func (f *Fleet) fragments(workload []Task) *fragments {
	kinds := f.typical(workload)
	fr := &fragments{}
	for _, k := range kinds {
		fr.tasks += k.count
	}
	fr.tasks = max(fr.tasks, 1) // where nothing is expected, nothing is a fragment
	for model := range f.models {
		fr.models = append(fr.models, newUsability(kinds, model))
	}
	return fr
}

// relief is by how much fragmentation falls when the machine takes the task
// on its tightest GPUs, in milli-GPU times tasks.
func (fr *fragments) relief(m *machine, n *need) int64 {
	u := fr.models[m.model]
	fr.scratch = append(fr.scratch[:0], m.left...)
	if n.GPUs > 0 {
		for _, gpu := range tightest(m, n) {
			fr.scratch[gpu] -= n.milli
		}
	}
	return n.TotalMilli()*fr.tasks - u.of(m.cpu, m.left) + u.of(m.cpu-n.CPUMilli, fr.scratch)
}

// reliefs calls yield for each GPU that could take a fractional task, with by
// how much fragmentation falls then. Of GPUs with the same left, which come to
// the same, it takes the first.
func (fr *fragments) reliefs(m *machine, n *need, yield func(gpu int, relief int64)) {
	u := fr.models[m.model]
	cpu := m.cpu - n.CPUMilli
	row := u.at(cpu)
	rest := int64(n.milli)*fr.tasks - u.of(m.cpu, m.left)
	for _, l := range m.left {
		rest += u.one(row, l)
	}
	fr.groups = fr.groups[:0]
	for i := range u.multi {
		var g group
		for _, l := range m.left {
			g = g.with(l, u.multi[i].milli, 1)
		}
		fr.groups = append(fr.groups, g)
	}
	for i, l := range m.left {
		if l < n.milli || slices.Contains(m.left[:i], l) {
			continue
		}
		relief := rest - u.one(row, l) + u.one(row, l-n.milli)
		for j := range u.multi {
			if k := &u.multi[j]; k.CPUMilli <= cpu {
				relief += fr.groups[j].with(l, k.milli, -1).with(l-n.milli, k.milli, 1).usable(k)
			}
		}
		yield(i, relief)
	}
}

// fgd is Fragmentation Gradient Descent: the machine, and of it the GPU, where
// fragmentation grows least. As published, the gradient in GPUs is squeezed by
// a sigmoid and cut to a whole number of 0..100, and what ties goes to the
// first; the coarseness matters, because it leaves machines untouched that
// come later.
func fgd(f *Fleet, workload []Task, _ *rand.Rand) policy {
	fr := f.fragments(workload)
	grade := func(relief int64) int32 {
		return Grade(float64(relief) / float64(fr.tasks*Whole))
	}
	best := func(m *machine, n *need) (gpu int, score int32) {
		score = unfit
		fr.reliefs(m, n, func(i int, relief int64) {
			if s := grade(relief); s > score {
				gpu, score = i, s
			}
		})
		return gpu, score
	}
	return policy{
		score: func(m *machine, n *need) int32 {
			if n.fraction() {
				_, score := best(m, n)
				return score
			}
			return grade(fr.relief(m, n))
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

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
