package placement

// Whole is all of one device's compute, in GPU cores.
const Whole = 100

// Snapshot is the pool at one moment.
type Snapshot struct {
	Nodes []Node
}

// Node is a provider's machine.
type Node struct {
	ID        int64
	Name      string
	Accepting bool // online and lending
	Devices   []Device
}

// Device is a physical GPU, or a MIG instance of one, with what is held of it.
type Device struct {
	ID        int64
	Index     int    // its place on the node
	Model     string // as the driver names it: "NVIDIA H100 80GB HBM3"
	MemoryMiB int64
	Exclusive bool // one holder only
	Mixed     bool // an administrator allowed fractions of different projects
	Healthy   bool
	Shares    []Share
}

// Share is a part of a device that somebody holds.
type Share struct {
	Cores     int64
	MemoryMiB int64
	Project   int64
	Holder    int64 // workspace
}

// Demand asks for equal shares of several devices of one node.
type Demand struct {
	GPUs      int    // distinct devices; 0 takes nothing and always places
	Cores     int64  // per GPU, 1..100
	MemoryMiB int64  // per GPU; 0: in proportion to the cores, on each device
	Model     string // words of the model's name, see [MatchesModel]; empty: any
	Project   int64
}

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
	return d.GPUs >= 0 && d.Cores >= 1 && d.Cores <= Whole && d.MemoryMiB >= 0
}

// memoryOn is what the demand needs of a device's memory, in MiB. Shares in
// proportion are rounded down, so that all of them together always fit.
func (d *Demand) memoryOn(dev *Device) int64 {
	if d.MemoryMiB > 0 {
		return d.MemoryMiB
	}
	return scale(max(dev.MemoryMiB, 0), d.Cores, Whole)
}
