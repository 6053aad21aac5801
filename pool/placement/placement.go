package placement

import "slices"

// Whole is all of one device's compute, in GPU cores.
const Whole = 100

// MaxGPUs is the most GPUs of one demand, so that no sum can overflow.
const MaxGPUs = 1 << 10

// Snapshot is the pool at one moment.
type Snapshot struct {
	Nodes []Node
}

// Emptied is a copy of the snapshot without any share.
func (s Snapshot) Emptied() Snapshot {
	nodes := slices.Clone(s.Nodes)
	for i := range nodes {
		nodes[i].Devices = slices.Clone(nodes[i].Devices)
		for j := range nodes[i].Devices {
			nodes[i].Devices[j].Shares = nil
		}
	}
	return Snapshot{Nodes: nodes}
}

// Node is a provider's machine.
type Node struct {
	ID        int64
	Name      string
	Accepting bool // online and lending
	// Unreachable is set where workspaces of this portal cannot run.
	Unreachable bool
	// Projects are those it lends to; empty: all.
	Projects []int64
	Devices  []Device
	// CPUMilli and MemoryMiB are what is free of the host, for demands that ask
	// for it.
	CPUMilli, MemoryMiB int64
}

// serves tells whether workspaces of a project can run on the node now.
func (n *Node) serves(project int64) bool {
	return n.Accepting && !n.Unreachable && n.lendsTo(project)
}

func (n *Node) lendsTo(project int64) bool {
	return len(n.Projects) == 0 || slices.Contains(n.Projects, project)
}

// duplicate tells whether a device is listed before.
func (n *Node) duplicate(i int) bool {
	return slices.ContainsFunc(n.Devices[:i], func(d Device) bool { return d.ID == n.Devices[i].ID })
}

// Device is a physical GPU, or a MIG instance of one, with what is held of it.
type Device struct {
	ID        int64
	Index     int    // its place on the node
	Model     string // as the driver names it: "NVIDIA H100 80GB HBM3"
	MemoryMiB int64
	// Cores may be used of it, 1..100: its owner's limit, or the size of an
	// instance. 0, and what is impossible, means [Whole].
	Cores int64
	// Parent is the physical GPU of which this is a MIG instance, else 0. An
	// instance has one holder, and serves demands of one GPU only.
	Parent    int64
	Single    bool // serves demands of one GPU only, such as one limited by its own MPS daemon
	Exclusive bool // one holder only
	Mixed     bool // an administrator allowed fractions of different projects
	Healthy   bool
	NotLent   bool    // its owner lends it to nobody now
	Changing  bool    // its sharing mode is being changed
	Peers     []int64 // devices linked to it by NVLink; one side's word suffices
	Shares    []Share
}

// usable is what may be used of the device at all, in GPU cores.
func (d *Device) usable() int64 {
	if d.Cores < 1 || d.Cores > Whole {
		return Whole
	}
	return d.Cores
}

// oneGPU tells whether it serves demands of one GPU only.
func (d *Device) oneGPU() bool { return d.Single || d.Parent != 0 }

// exclusiveUse reports whether the device serves at most one share at a time.
func (d *Device) exclusiveUse() bool { return d.Exclusive || d.Parent != 0 }

// unavailable tells whether nobody can take anything of the device now.
func (d *Device) unavailable() bool {
	return !d.Healthy || d.Changing || d.NotLent || d.exclusiveUse() && len(d.Shares) > 0
}

// Share is a part of a device that somebody holds.
type Share struct {
	Cores     int64
	MemoryMiB int64
	Project   int64
	Holder    int64 // its ID
}

// Demand asks for equal shares of several devices of one node, and for CPU and
// memory of that node's host.
type Demand struct {
	GPUs      int    // distinct devices
	Cores     int64  // per GPU, 1..100
	MemoryMiB int64  // per GPU; 0: in proportion to the cores, on each device
	Model     string // words of the model's name, see [MatchesModel]; empty: any
	Project   int64  // 0: none; no device is then preferred for its shares
	// CPUMilli and HostMemoryMiB are 0 where the host is not looked at.
	CPUMilli, HostMemoryMiB int64
}

// empty tells whether the demand takes nothing and is always met.
func (d *Demand) empty() bool { return d.GPUs == 0 && d.CPUMilli == 0 && d.HostMemoryMiB == 0 }

// Grant is the share of one device that a demand is given.
type Grant struct {
	Device    int64
	Cores     int64
	MemoryMiB int64
}

// Choice is where a demand goes: all devices are on one node, and distinct.
type Choice struct {
	Node        int64
	Devices     []Grant
	Explanation Explanation
}

// Explanation says why a choice was made.
type Explanation struct {
	Policy            string
	Nodes             int   // nodes that could take the whole demand
	Devices           int   // fitting devices on those nodes
	LeftoverCores     int64 // that stay free on the chosen devices, in total
	LeftoverMemoryMiB int64 // likewise
	Unlinked          int   // pairs of the chosen devices without NVLink
	RunnerUp          RunnerUp
}

// RunnerUp is the second best node. It means something only where
// [Explanation].Nodes is 2 or more.
type RunnerUp struct {
	Node   int64
	LostBy Criterion // the first criterion on which it did worse
	Margin int64     // by how much, in that criterion's unit
}

// valid tells whether the numbers of a demand mean anything.
func (d *Demand) valid() bool {
	return d.GPUs >= 0 && d.GPUs <= MaxGPUs && (d.GPUs == 0 || d.Cores >= 1 && d.Cores <= Whole && d.MemoryMiB >= 0) && d.CPUMilli >= 0 &&
		d.HostMemoryMiB >= 0
}

// memoryOn is what the demand needs of a device's memory, in MiB. Shares in
// proportion to the cores that may be used are rounded down, so that all of
// them together always fit. The device must have the cores.
func (d *Demand) memoryOn(dev *Device) int64 {
	if d.MemoryMiB > 0 {
		return d.MemoryMiB
	}
	return scale(max(dev.MemoryMiB, 0), d.Cores, dev.usable())
}
