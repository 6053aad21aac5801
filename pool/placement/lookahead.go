package placement

import (
	"math"
	"math/bits"
	"slices"
)

// cpuOvercommit is how many times its own share of CPU a kind of demand may count on
// when the GPU that the CPU of a machine can serve is computed: it shares the
// machine with kinds that need less. Results are flat between about 1.3 and 2.
const cpuOvercommit = 1.5

// lookahead is Weir's own policy: it follows the gradient of what a machine
// could still be used for by demands like those that came. It goes back to
// Fragmentation Gradient Descent (Weng et al., USENIX ATC 2023), and differs
// from it in five ways:
//
//   - It first takes devices that the project has opened already, because the
//     remainder of such a device serves that project alone.
//   - It looks at more than one arrival: what a kind of demand can use of a
//     machine is bounded by the GPU that the machine's CPU can feed, not only
//     by whether one such demand still fits. See [demandSize.expectedUse].
//   - It counts all kinds of demands, the rare and large ones too.
//   - It scores in thousandths of a GPU. With the other four, the coarse
//     rounding that the original needs does harm.
//   - It keeps models free for the demands that can run on nothing else. See
//     [reserve].
//
// Of devices it looks at free cores and not at whose the remainder is: shares come
// and go, and where a device that one project has opened counted as lost to
// the others, streams like those of the experiment in the tests had more
// demands refused.
type lookahead struct {
	*reserve
	expected []*expectedDemand // by kind of device
	scratch  remainder
}

// remainder is a machine with less CPU and all its devices.
type remainder struct {
	cpu         int64
	expectedUse float64
	fit         []int     // by range and size: kinds whose CPU is there
	uses        []float64 // by range and size: the expected use of the devices
}

// expectedDemand is what the demands to come could use of one kind of device.
type expectedDemand struct {
	sizes []demandSize
}

// demandSize is the kinds of demands that want the same of GPUs. The sums run over
// the kinds with the least CPU: [i] is the sum of the first i.
type demandSize struct {
	gpus      int32
	milli     int32
	cpus      stepIndex // milli that each kind needs
	frequency []float64 // how likely a demand is of these kinds
	gpuPerCPU []float64 // Σ frequency × milli-GPU that one milli-CPU can feed
}

// expectedDemand is that of a kind of device.
func (o *lookahead) expectedDemand(number int) *expectedDemand {
	for len(o.expected) <= number {
		k := o.pool.kinds[len(o.expected)]
		p := &expectedDemand{}
		for _, l := range o.kinds {
			if l.GPUs > 0 && (l.GPUs == 1 || !k.instance) && MatchesModel(k.model, l.Model) {
				p.add(l)
			}
		}
		o.expected = append(o.expected, p)
	}
	return o.expected[number]
}

// add takes a kind in; kinds of one size come one after another, by CPU.
func (p *expectedDemand) add(l demandFrequency) {
	last := len(p.sizes) - 1
	if want := int32(l.Cores * milli); last < 0 || p.sizes[last].milli != want || int(p.sizes[last].gpus) != l.GPUs {
		p.sizes = append(p.sizes, demandSize{gpus: int32(l.GPUs), milli: want, frequency: []float64{0}, gpuPerCPU: []float64{0}})
		last++
	}
	s, n := &p.sizes[last], len(p.sizes[last].cpus.numbers)
	s.cpus.set(append(s.cpus.numbers, l.CPUMilli))
	s.frequency = append(s.frequency, s.frequency[n]+l.frequency)
	s.gpuPerCPU = append(s.gpuPerCPU, s.gpuPerCPU[n]+l.frequency*cpuOvercommit*float64(int64(l.GPUs)*l.Cores*milli)/float64(max(l.CPUMilli,
		1)))
}

// stepIndex finds in ascending numbers: a step for each stretch of 2^shift says
// where to begin to look.
type stepIndex struct {
	numbers []int64
	shift   uint
	steps   []int32
}

// set takes the numbers in, none of them negative.
func (l *stepIndex) set(numbers []int64) {
	const steps = 128
	l.numbers, l.steps = numbers, make([]int32, steps+1)
	l.shift = uint(bits.Len64(uint64(numbers[len(numbers)-1]) / steps))
	at := 0
	for i := range l.steps {
		for at < len(numbers) && numbers[at] < int64(i)<<l.shift {
			at++
		}
		l.steps[i] = int32(at)
	}
}

// upTo is how many of the numbers are at most n, which is not negative.
func (l *stepIndex) upTo(n int64) int {
	i := int(l.steps[min(n>>l.shift, int64(len(l.steps)-1))])
	for i < len(l.numbers) && l.numbers[i] <= n {
		i++
	}
	return i
}

// expectedUse is the GPU, in milli, that a size could use of a machine with that
// much CPU, times its frequency; fit is how many of its kinds find enough
// CPU for one demand. A kind whose CPU or GPUs are not there uses nothing;
// otherwise what is left on the GPUs that fit it, but no more than the CPU
// feeds.
func (s *demandSize) expectedUse(cpu int64, fit int, on usableGPUs) float64 {
	if on.gpus < s.gpus {
		return 0
	}
	gpuBound := fit
	// Kinds with so little CPU that it feeds all that is left.
	if enough := cpuOvercommit * float64(cpu) * float64(s.gpus*s.milli) / float64(on.milli); enough < float64(cpu) {
		gpuBound = min(s.cpus.upTo(int64(enough)), fit)
	}
	return float64(on.milli)*s.frequency[gpuBound] + float64(cpu)*(s.gpuPerCPU[fit]-s.gpuPerCPU[gpuBound])
}

// observe records the expected use of a machine in its present state.
func (o *lookahead) observe(m *machine) {
	for i := range m.ranges {
		part := &m.ranges[i]
		p := o.expectedDemand(part.kind)
		part.usable = slices.Grow(part.usable[:0], len(p.sizes))
		for j := range p.sizes {
			var on usableGPUs
			for _, left := range m.left[part.from:part.to] {
				on = on.with(left, p.sizes[j].milli, 1)
			}
			part.usable = append(part.usable, on)
		}
	}
	m.expectedUse = o.remainder(m, m.cpu).expectedUse
}

// remainder is that of a machine with so much CPU.
func (o *lookahead) remainder(m *machine, cpu int64) *remainder {
	r := &o.scratch
	r.cpu, r.expectedUse, r.fit, r.uses = cpu, 0, r.fit[:0], r.uses[:0]
	for i := range m.ranges {
		part := &m.ranges[i]
		for j := range part.usable {
			s, fit, use := &o.expected[part.kind].sizes[j], 0, 0.0
			if part.usable[j].gpus >= s.gpus {
				fit = s.cpus.upTo(cpu)
				use = s.expectedUse(cpu, fit, part.usable[j])
			}
			r.fit, r.uses, r.expectedUse = append(r.fit, fit), append(r.uses, use), r.expectedUse+use
		}
	}
	return r
}

// change is by how much the remainder's expected use changes when the demand takes these
// devices of one range of the machine, whose sizes begin at first.
func (r *remainder) change(p *expectedDemand, first int, m *machine, n *demandInfo, part *deviceRange, devices []int) (change float64) {
	most := int32(0)
	for _, i := range devices {
		if i >= part.from && i < part.to {
			most = max(most, m.left[i])
		}
	}
	for j := range p.sizes {
		s := &p.sizes[j]
		if s.milli > most {
			break // it sees none of the devices, and neither does any larger
		}
		on := part.usable[j]
		if on.gpus < s.gpus {
			continue // it uses nothing of the machine already
		}
		for _, i := range devices {
			if i >= part.from && i < part.to {
				left := m.left[i]
				on = on.with(left, s.milli, -1)
				if !m.devices[i].exclusiveUse() {
					on = on.with(left-n.milli, s.milli, 1)
				}
			}
		}
		if on != part.usable[j] {
			change += s.expectedUse(r.cpu, r.fit[first+j], on) - r.uses[first+j]
		}
	}
	return change
}

var lookaheadFields = []field{{NewToProject, 7, 1, 0}, {Fragmentation, 23, 1, 1 << 22}, {Unlinked, 11, 1, 0}, {LeftoverCores, 11, 1, 0},
	{LeftoverMemory, 12, 1024, 0}}

func (*lookahead) fields() []field { return lookaheadFields }

func (o *lookahead) bestDevice(m *machine, n *demandInfo) (int, cost) {
	after, single := o.remainder(m, m.cpu-n.CPUMilli), []int{0}
	return cheapest(m, n, func(i int) cost {
		single[0] = i
		return o.cost(after, m, n, single)
	})
}

func (o *lookahead) costOf(m *machine, n *demandInfo, devices []int) cost {
	return o.cost(o.remainder(m, m.cpu-n.CPUMilli), m, n, devices)
}

func (o *lookahead) cost(after *remainder, m *machine, n *demandInfo, devices []int) (c cost) {
	gain, first := float64(n.total)+after.expectedUse-m.expectedUse, 0
	for i := range m.ranges {
		part := &m.ranges[i]
		gain += after.change(o.expected[part.kind], first, m, n, part, devices)
		first += len(part.usable)
	}
	a, f := m.amounts(n, devices), lookaheadFields
	return c.put(f[0], a.newToProject).put(f[1], -int64(math.Round(gain))).put(f[2], a.unlinked).put(f[3], a.cores).put(f[4], a.memory)
}
