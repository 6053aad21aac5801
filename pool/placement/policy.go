package placement

import (
	"math/rand"
	"slices"
)

// Names of the policies that the pool offers.
const (
	BestFit = "best-fit"
	Spread  = "spread"
	Weir    = "weir"
)

// Policy orders the nodes that fit a demand, and the devices of each. The zero
// Policy is [BestFit]. Many pools may use one policy at once, unless it draws
// lots.
type Policy struct {
	Name   string
	scorer func(*Engine) scorer
	random *rand.Rand
}

// Machine is a node as a policy made by [Scored] sees it.
type Machine struct {
	CPUMilli int64
	Left     []int32  // free of each GPU, in thousandths
	Devices  []Device // in the same order
}

// Scored is a policy that takes the node with the highest score, the first
// among equals or, where random is not nil, any of them. The score of a node
// depends on nothing but its Machine and what the demand takes of CPU and GPUs,
// not on the model or the host's memory. With the score comes the
// GPU that a demand for one GPU goes to, or -1 for the tightest fit.
func Scored(name string, score func(Machine, Demand) (score int32, gpu int), random *rand.Rand) Policy {
	return Policy{Name: name, scorer: func(*Engine) scorer { return scored{score} }, random: random}
}

// scorer is a policy at work in a pool. A cost depends on nothing but the
// machine and the demand, so it holds until that machine changes.
type scorer interface {
	fields() []field
	// observe looks at a machine that is new or has changed.
	observe(*machine)
	// bestDevice is the device of a machine that fits, for a demand for one GPU, and
	// what it costs.
	bestDevice(*machine, *demandInfo) (device int, c cost)
	// costOf is the cost of any other demand on these devices.
	costOf(m *machine, n *demandInfo, devices []int) cost
	// opportunityCosts are added, by kind of device, to the costs of all machines at
	// the moment of a decision; nil adds nothing.
	opportunityCosts(*demandInfo) []cost
}

// cheapest is the device of a machine that takes a demand for one GPU at the
// least cost, the first among equals.
func cheapest(m *machine, n *demandInfo, costOf func(device int) cost) (device int, least cost) {
	least = unfit
	for i := range m.left {
		if m.fitsDevice(n, i) && !m.duplicates(n, i) {
			if c := costOf(i); c < least {
				device, least = i, c
			}
		}
	}
	return device, least
}

// amounts are what the policies weigh of devices that are taken together.
type amounts struct{ splits, newToProject, unlinked, cores, memory int64 }

func (m *machine) amounts(n *demandInfo, devices []int) (a amounts) {
	for at, i := range devices {
		dev := &m.devices[i]
		if n.Project != 0 && !slices.ContainsFunc(dev.Shares, func(s Share) bool { return s.Project == n.Project }) {
			a.newToProject++
		}
		if len(dev.Shares) == 0 && n.milli < m.left[i] {
			if a.splits++; dev.exclusiveUse() {
				a.splits++
			}
		}
		a.cores += int64(m.left[i]-n.milli) / milli
		a.memory += m.memoryLeft[i] - n.memoryOn(dev)
		for _, j := range devices[:at] {
			if !m.linked || !m.linkedPair(i, j) {
				a.unlinked++
			}
		}
	}
	return a
}

func (m *machine) linkedPair(i, j int) bool {
	a, b := &m.devices[i], &m.devices[j]
	return slices.Contains(a.Peers, b.ID) || slices.Contains(b.Peers, a.ID)
}

// bestFit fills devices that are in use before it opens idle ones, among
// those prefers the project's own, then devices linked to each other, and of
// what remains takes the tightest fit in cores, then in memory.
type bestFit struct{}

var bestFitFields = []field{{SplitsIdle, 8, 1, 0}, {NewToProject, 8, 1, 0}, {Unlinked, 11, 1, 0}, {LeftoverCores, 13, 1, 0},
	{LeftoverMemory, 24, 1, 0}}

func (bestFit) fields() []field                     { return bestFitFields }
func (bestFit) observe(*machine)                    {}
func (bestFit) opportunityCosts(*demandInfo) []cost { return nil }

func (b bestFit) bestDevice(m *machine, n *demandInfo) (int, cost) {
	return cheapest(m, n, func(i int) cost { return b.costOf(m, n, []int{i}) })
}

func (bestFit) costOf(m *machine, n *demandInfo, devices []int) (c cost) {
	a, f := m.amounts(n, devices), bestFitFields
	return c.put(f[0], a.splits).put(f[1], a.newToProject).put(f[2], a.unlinked).put(f[3], a.cores).put(f[4], a.memory)
}

// spread takes the devices with the fewest GPU cores in use, among those the machine with
// the smallest part of its GPU cores in use, then devices linked to each other. Several
// devices of one machine are chosen as by [bestFit].
type spread struct{}

var spreadFields = []field{{DeviceLoad, 14, 1, 0}, {MachineLoad, 7, 1, 0}, {Unlinked, 11, 1, 0}, {LeftoverMemory, 24, 1, 0}}

func (spread) fields() []field                     { return spreadFields }
func (spread) observe(*machine)                    {}
func (spread) opportunityCosts(*demandInfo) []cost { return nil }

func (s spread) bestDevice(m *machine, n *demandInfo) (int, cost) {
	return cheapest(m, n, func(i int) cost { return s.costOf(m, n, []int{i}) })
}

func (spread) costOf(m *machine, n *demandInfo, devices []int) (c cost) {
	a, f := m.amounts(n, devices), spreadFields
	var chosen, all int64
	for _, i := range devices {
		chosen += m.devices[i].coresInUse()
	}
	for i := range m.devices {
		all += m.devices[i].coresInUse()
	}
	return c.put(f[0], chosen).put(f[1], all/max(int64(len(m.devices)), 1)).put(f[2], a.unlinked).put(f[3], a.memory)
}

// coresInUse is the GPU cores of the device's shares.
func (d *Device) coresInUse() (n int64) {
	for _, s := range d.Shares {
		n += s.Cores
	}
	return n
}

// scored is a policy of another package.
type scored struct {
	score func(Machine, Demand) (int32, int)
}

var scoredFields = []field{{Score, 33, 1, 1 << 32}}

func (scored) fields() []field                     { return scoredFields }
func (scored) observe(*machine)                    {}
func (scored) opportunityCosts(*demandInfo) []cost { return nil }

func (s scored) bestDevice(m *machine, n *demandInfo) (int, cost) {
	score, device := s.score(Machine{m.cpu, m.left, m.devices}, n.Demand)
	if device < 0 {
		device, _ = cheapest(m, n, func(i int) cost { return cost(m.left[i]) })
	}
	return device, cost(0).put(scoredFields[0], -int64(score))
}

func (s scored) costOf(m *machine, n *demandInfo, _ []int) cost {
	score, _ := s.score(Machine{m.cpu, m.left, m.devices}, n.Demand)
	return cost(0).put(scoredFields[0], -int64(score))
}
