package baselines

import (
	"cmp"
	"math"
	"slices"

	"weir/pool/placement"
)

// demandFrequency is a kind of demand and how often it came, among all that came.
type demandFrequency struct {
	placement.Demand
	count int64
}

// typical are the most frequent kinds of demands, memory not counted, cut
// where they make up 95 percent of the history.
func typical(history []placement.Demand) []demandFrequency {
	counts := map[placement.Demand]int64{}
	for _, d := range history {
		d.MemoryMiB, d.HostMemoryMiB, d.Project = 0, 0, 0
		counts[d]++
	}
	kinds := make([]demandFrequency, 0, len(counts))
	for d, n := range counts {
		kinds = append(kinds, demandFrequency{d, n})
	}
	slices.SortFunc(kinds, func(a, b demandFrequency) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(a.CPUMilli, b.CPUMilli),
			cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.Model, b.Model))
	})
	sum := int64(0)
	for i, k := range kinds {
		if sum += k.count; sum*100 >= int64(len(history))*95 {
			return kinds[:i+1]
		}
	}
	return kinds
}

// usability tells how much of a machine's free GPU typical demands could use,
// for one model of GPU. It is counted in milli-GPU times demands, so that
// every sum is exact: what a demand that came n times could use, counts n
// times.
type usability struct {
	cpus   []int64 // of the typical single-GPU demands, ascending
	rank   [whole + 1]uint16
	width  int
	single []int64 // [CPU rank × width + GPU rank]: demands with no more than both
	multi  []demandFrequency
}

func newUsability(kinds []demandFrequency, model string) *usability {
	u := &usability{}
	var millis []int64
	var ones []demandFrequency
	for _, k := range kinds {
		switch {
		case k.GPUs == 0 || !placement.MatchesModel(model, k.Model):
		case k.GPUs == 1:
			ones = append(ones, k)
			u.cpus, millis = append(u.cpus, k.CPUMilli), append(millis, int64(milliOf(k.Demand)))
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
	for _, k := range ones {
		for c := upTo(u.cpus, k.CPUMilli); c <= len(u.cpus); c++ {
			for g := upTo(millis, int64(milliOf(k.Demand))); g < u.width; g++ {
				u.single[c*u.width+g] += k.count
			}
		}
	}
	return u
}

// upTo is how many of the ascending different numbers are at most n.
func upTo(numbers []int64, n int64) int {
	i, found := slices.BinarySearch(numbers, n)
	if found {
		i++
	}
	return i
}

// usable is how much typical demands could use of GPUs with that much left, on a
// machine with that much CPU.
func (u *usability) usable(cpu int64, left []int32) (usable int64) {
	c := upTo(u.cpus, cpu)
	row := u.single[c*u.width : (c+1)*u.width]
	for _, l := range left {
		usable += int64(l) * row[u.rank[l]]
	}
	for i := range u.multi {
		k := &u.multi[i]
		if k.CPUMilli > cpu {
			continue
		}
		gpus, milli := 0, int64(0)
		for _, l := range left {
			if l >= milliOf(k.Demand) {
				gpus, milli = gpus+1, milli+int64(l)
			}
		}
		if gpus >= k.GPUs {
			usable += milli * k.count
		}
	}
	return usable
}

// fragments measures how much idle GPU the typical demands could not use, and
// how that changes.
type fragments struct {
	kinds   []demandFrequency
	demands int64 // typical ones, each as often as it came
	models  map[string]*usability
	scratch []int32
}

func newFragments(history []placement.Demand) *fragments {
	fr := &fragments{kinds: typical(history), models: map[string]*usability{}}
	for _, k := range fr.kinds {
		fr.demands += k.count
	}
	fr.demands = max(fr.demands, 1) // where nothing is expected, nothing is a fragment
	return fr
}

// fgd is Fragmentation Gradient Descent: the machine, and of it the GPU, where
// fragmentation grows least. As published, the gradient in GPUs is squeezed by
// a sigmoid and cut to a whole number of 0..100, and what ties goes to the
// first; the coarseness matters, because it leaves machines untouched that
// come later.
func (fr *fragments) fgd(m placement.Machine, d placement.Demand) (score int32, gpu int) {
	if d.GPUs != 1 || d.Cores == placement.Whole {
		return fr.grade(m, d, tightest(m, d)), -1
	}
	score, gpu = -1, -1
	for i, left := range m.Left {
		if left < milliOf(d) || slices.Contains(m.Left[:i], left) {
			continue
		}
		if s := fr.grade(m, d, []int{i}); s > score {
			score, gpu = s, i
		}
	}
	return score, gpu
}

// grade rounds by how much fragmentation falls when the machine takes the
// demand on these GPUs.
func (fr *fragments) grade(m placement.Machine, d placement.Demand, gpus []int) int32 {
	model := ""
	if len(m.Devices) > 0 {
		model = m.Devices[0].Model
	}
	u := fr.models[model]
	if u == nil {
		u = newUsability(fr.kinds, model)
		fr.models[model] = u
	}
	fr.scratch = append(fr.scratch[:0], m.Left...)
	for _, gpu := range gpus {
		fr.scratch[gpu] -= milliOf(d)
	}
	relief := totalOf(d)*fr.demands - u.usable(m.CPUMilli, m.Left) + u.usable(m.CPUMilli-d.CPUMilli, fr.scratch)
	return int32(100 / (1 + math.Exp(-float64(relief)/float64(fr.demands*whole))))
}
