package placement

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// Names of the policies that the pool offers.
const (
	BestFit = "best-fit"
	Spread  = "spread"
	Weir    = "weir"
)

// Default is the policy to use where none was chosen.
const Default = Weir

// Policies are the names that [PolicyNamed] knows, the simplest first.
func Policies() []string { return []string{BestFit, Spread, Weir} }

// Policy orders the nodes that fit a demand, and the devices of each. The zero
// Policy is [BestFit]. Many pools may use one policy at once, unless it draws
// lots.
type Policy struct {
	Name   string
	scorer func(*Engine) scorer
	random *rand.Rand
}

// PolicyNamed is the policy of that name, or the default where the name is
// empty; it fails on a name that is none of [Policies]. What weir expects to
// come it learns from history, where a demand that stands twice is twice as
// likely; an empty one teaches nothing, and the policy is best-fit and says so.
func PolicyNamed(name string, history []Demand) (Policy, error) {
	switch name {
	case BestFit:
		return Policy{Name: BestFit}, nil
	case Spread:
		return Policy{Name: Spread, scorer: func(*Engine) scorer { return spread{} }}, nil
	case Weir, "":
		if kinds := kindsOf(history); len(kinds) > 0 {
			return Policy{Name: Weir, scorer: func(e *Engine) scorer { return &lookahead{reserve: &reserve{pool: e, kinds: kinds}} }}, nil
		}
		return Policy{Name: BestFit}, nil
	}
	return Policy{}, fmt.Errorf("there is no placement policy %q; there are %s", name, strings.Join(Policies(), ", "))
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

// Criterion names what a policy weighs; a smaller value is better.
type Criterion int

const (
	// Order decides between equals: the lower node id.
	Order Criterion = iota
	// SplitsIdle counts idle devices of which only a fraction is taken; one
	// that has one holder counts twice, because its remainder is lost to everybody.
	SplitsIdle
	// NewToProject counts devices that hold no share of the project yet.
	NewToProject
	// Fragmentation is how much free GPU, in thousandths of one, the demands to
	// come lose beyond what the demand itself uses.
	Fragmentation
	// Unlinked counts the pairs of chosen devices without NVLink.
	Unlinked
	// DeviceLoad is the GPU cores in use on the chosen devices.
	DeviceLoad
	// MachineLoad is the GPU cores in use on all devices of the machine, in percent.
	MachineLoad
	// LeftoverCores is the GPU cores that stay free on the chosen devices.
	LeftoverCores
	// LeftoverMemory is the memory, in MiB, that stays free there.
	LeftoverMemory
	// Score is that of a policy made by [Scored].
	Score
)

// cost is what a placement costs by the criteria of a policy, the weightiest
// in the highest bits; less is better.
type cost uint64

// unfit is the cost of a node that cannot take the demand.
const unfit = ^cost(0)

// field is the place of a criterion in a cost: an amount in units, plus an
// offset, that fills its bits at most.
type field struct {
	criterion Criterion
	bits      uint
	unit      int64
	offset    int64
}

// put adds a criterion's amount below those that are in the cost already.
func (c cost) put(f field, amount int64) cost {
	most := int64(1)<<f.bits - 1
	return c<<f.bits | cost(min(max(amount/f.unit+f.offset, 0), most))
}

// differs is the first criterion on which two costs differ, and by how much.
func differs(fields []field, a, b cost) (Criterion, int64) {
	shift := uint(0)
	for _, f := range fields {
		shift += f.bits
	}
	for _, f := range fields {
		shift -= f.bits
		mask := cost(1)<<f.bits - 1
		if x, y := a>>shift&mask, b>>shift&mask; x != y {
			return f.criterion, int64(y-x) * f.unit
		}
	}
	return Order, 0
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
