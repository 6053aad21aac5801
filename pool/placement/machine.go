package placement

import (
	"cmp"
	"fmt"
	"slices"
)

// milli is one GPU core in thousandths of a GPU, in which the engine counts.
const milli = 10

// kind is the devices that serve the same demands.
type kind struct {
	model    string
	instance bool
}

// machine is a node with what is free of it. Its devices are its own, sorted
// by kind, then by index, each once.
type machine struct {
	node        *Node // as it was given; its devices are not read
	devices     []Device
	cpu, memory int64   // free of the host
	left        []int32 // thousandths of each device that could be taken
	memoryLeft  []int64 // MiB of each device
	total       int64   // the sum of left
	constrained []bool  // the devices of which not only left decides, see [machine.refresh]
	kinds       []int   // of each device, a number in Engine.kinds
	ranges      []deviceRange
	position    int // in Engine.machines
	group, rank int // in Engine.groups
	linked      bool
	identicalTo int     // the first machine that began the same; -1 once it has changed
	expectedUse float64 // to the demands to come, see [lookahead]
}

// deviceRange is the devices of one kind: [from, to).
type deviceRange struct {
	kind, from, to int
	usable         []usableGPUs // by size
}

// usableGPUs is what a size sees on a machine: the GPUs that have enough left for
// it, and how much they have together.
type usableGPUs struct{ gpus, milli int32 }

func (s usableGPUs) with(left, enough, sign int32) usableGPUs {
	if left >= enough {
		s.gpus += sign
		s.milli += sign * left
	}
	return s
}

func newMachine(n *Node) *machine {
	m := &machine{node: n, cpu: max(n.CPUMilli, 0), memory: max(n.MemoryMiB, 0), devices: make([]Device, 0, len(n.Devices))}
	for i := range n.Devices {
		if !n.duplicate(i) {
			m.devices = append(m.devices, n.Devices[i])
		}
	}
	slices.SortStableFunc(m.devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(min(a.Parent, 1), min(b.Parent, 1)),
			cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	count := len(m.devices)
	m.left, m.memoryLeft, m.constrained, m.kinds = make([]int32, count), make([]int64, count), make([]bool, count), make([]int, count)
	for i := range m.devices {
		m.devices[i].Shares = slices.Clip(m.devices[i].Shares)
		m.linked = m.linked || len(m.devices[i].Peers) > 0
		m.refresh(i)
	}
	return m
}

// refresh reads what the shares of a device leave. A device is constrained where
// more than its free cores keeps a demand from it that leaves memory open.
func (m *machine) refresh(i int) {
	dev := &m.devices[i]
	u := measure(dev, 0)
	m.memoryLeft[i] = u.freeMemoryMiB
	left := int32(0)
	if m.node.Accepting && !m.node.Unreachable && !dev.unavailable() {
		left = int32(max(u.freeCores, 0) * milli)
	}
	m.total += int64(left - m.left[i])
	m.left[i] = left
	m.constrained[i] = dev.oneGPU() || len(m.node.Projects) > 0 || len(dev.Shares) > 0 && !dev.Mixed ||
		left > 0 && u.freeMemoryMiB < scale(max(dev.MemoryMiB, 0), u.freeCores, dev.usable())
}

// fingerprint tells all that a demand can see of a machine without shares.
func (m *machine) fingerprint() string {
	key := fmt.Append(nil, m.group, m.cpu, m.memory, m.node.Accepting, m.node.Unreachable, m.node.Projects)
	for _, dev := range m.devices {
		if len(dev.Shares)+len(dev.Peers) > 0 {
			return ""
		}
		dev.ID, dev.Index, dev.Parent = 0, 0, min(dev.Parent, 1)
		key = fmt.Append(key, dev)
	}
	return string(key)
}

// demandInfo is a demand as the engine reads it.
type demandInfo struct {
	Demand
	milli   int32  // of each GPU
	total   int64  // of all GPUs
	allowed []bool // by kind
}

func (n *demandInfo) allowsAny(kinds []int) bool {
	return n.GPUs == 0 || slices.ContainsFunc(kinds, func(k int) bool { return n.allowed[k] })
}

// device is the number of a device by its id.
func (m *machine) device(id int64) int {
	return slices.IndexFunc(m.devices, func(dev Device) bool { return dev.ID == id })
}

// fits tells whether a machine can take a demand now.
func (m *machine) fits(n *demandInfo) bool {
	if m.cpu < n.CPUMilli || m.memory < n.HostMemoryMiB || m.total < n.total || n.GPUs == 0 && !m.node.serves(n.Project) {
		return false
	}
	missing := n.GPUs
	for i := 0; missing > 0 && i < len(m.left); i++ {
		if m.fitsDevice(n, i) {
			missing--
		}
	}
	return missing == 0
}

// fitsDevice tells whether a device can take its part of a demand.
func (m *machine) fitsDevice(n *demandInfo, i int) bool {
	if m.left[i] < n.milli {
		return false
	}
	if !m.constrained[i] && n.MemoryMiB == 0 {
		return n.allowed[m.kinds[i]]
	}
	dev := &m.devices[i]
	u := measure(dev, n.Project)
	return filter(m.node, dev, &u, &n.Demand) == Fits
}

// duplicates tells whether an earlier device of the machine would be the same to
// a demand.
func (m *machine) duplicates(n *demandInfo, i int) bool {
	for j := range m.left[:i] {
		if m.left[i] == m.left[j] && m.equivalent(n, i, j) {
			return true
		}
	}
	return false
}

// equivalent tells whether it makes no difference to a demand which of two devices
// of a machine it takes.
func (m *machine) equivalent(n *demandInfo, i, j int) bool {
	if m.left[i] != m.left[j] || m.kinds[i] != m.kinds[j] || m.constrained[i] || m.constrained[j] {
		return false
	}
	a, b := &m.devices[i], &m.devices[j]
	return a.Exclusive == b.Exclusive && a.MemoryMiB == b.MemoryMiB && m.memoryLeft[i] == m.memoryLeft[j] &&
		(n.Project == 0 || len(a.Shares)+len(b.Shares) == 0)
}
