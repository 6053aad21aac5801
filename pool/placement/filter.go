package placement

// Reason says why a device, or a whole demand, was turned away. Device
// reasons stand in the order in which the filters ask, so a later one came
// nearer to fitting.
type Reason int

const (
	Fits             Reason = iota
	Invalid                 // the demand's own numbers are impossible
	NoDevices               // the snapshot is empty
	NodeNotAccepting        // the node is not online or does not lend
	Unreachable             // workspaces cannot run on the node
	WrongModel
	NotLent // its owner's terms leave the project out
	OneGPU  // a MIG instance or one under its own MPS daemon, and several GPUs are wanted
	Unhealthy
	Changing       // its sharing mode is being changed
	ExclusiveInUse // one holder only, and there is one
	OtherProject   // another project's share lies there, and mixing is not allowed
	TooFewCores
	TooLittleMemory
	HostInUse     // the device fits, but its host has too little CPU or memory
	TooFewDevices // the device fits, but its node has too few such devices
	reasonCount
)

// Refusal says why a demand could not be placed, in numbers that can be put
// into words.
type Refusal struct {
	// Reason is that of the devices that came nearest to fitting.
	Reason Reason
	// Counts has the devices rejected for each reason; together, all devices
	// of the snapshot.
	Counts [reasonCount]int
	// BestCores is the most free cores of the devices with too few.
	BestCores int64
	// BestMemoryMiB is the most free memory of the devices with too little.
	BestMemoryMiB int64
	// Needed is how many devices of one node were asked for; BestDevices how
	// many fit on the best node, and BestNode which that is (0 if none fit
	// anywhere).
	Needed      int
	BestDevices int
	BestNode    int64
}

// note counts one device under its reason and remembers the best seen.
func (r *Refusal) note(reason Reason, u *usage) {
	r.Counts[reason]++
	switch reason {
	case TooFewCores:
		r.BestCores = max(r.BestCores, u.freeCores)
	case TooLittleMemory:
		r.BestMemoryMiB = max(r.BestMemoryMiB, u.freeMemoryMiB)
	}
}

// Try tells whether a device can take its part of a demand, and the memory in MiB that is free there. It
// counts the device under the reason.
func (r *Refusal) Try(n *Node, dev *Device, d *Demand) (freeMemoryMiB int64, fits bool) {
	u := measure(dev, d.Project)
	reason := filter(n, dev, &u, d)
	r.note(reason, &u)
	return u.freeMemoryMiB, reason == Fits
}

// Refuse tells why a demand cannot be placed; nil where it can.
func Refuse(s Snapshot, d Demand) *Refusal {
	r := Refusal{Needed: d.GPUs}
	if !d.valid() {
		r.Reason = Invalid
		return &r
	}
	if d.empty() {
		return nil
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		fitting := 0
		for j := range n.Devices {
			if n.duplicate(j) {
				continue
			}
			if _, fits := r.Try(n, &n.Devices[j], &d); fits {
				fitting++
			}
		}
		if fitting >= d.GPUs && (d.GPUs > 0 || n.serves(d.Project) && n.CPUMilli >= d.CPUMilli && n.MemoryMiB >= d.HostMemoryMiB) {
			return nil
		}
		r.Counts[Fits] -= fitting
		r.Counts[TooFewDevices] += fitting
		if fitting > r.BestDevices || fitting == r.BestDevices && fitting > 0 && n.ID < r.BestNode {
			r.BestDevices, r.BestNode = fitting, n.ID
		}
	}
	r.Reason = r.nearest()
	return &r
}

// nearest is the reason furthest down the line of filters.
func (r *Refusal) nearest() Reason {
	for reason := TooFewDevices; reason > NoDevices; reason-- {
		if r.Counts[reason] > 0 {
			return reason
		}
	}
	return NoDevices
}

// usage is what the shares of a device leave, and whose they are. What is free
// is negative on an overcommitted device, so that not even nothing fits there.
type usage struct {
	freeCores     int64
	freeMemoryMiB int64
	foreign       bool // there is a share of another project
}

// measure adds up a device's shares. Negative numbers count as nothing.
func measure(dev *Device, project int64) usage {
	var u usage
	var cores, memory int64
	for i := range dev.Shares {
		s := &dev.Shares[i]
		cores = add(cores, s.Cores)
		memory = add(memory, s.MemoryMiB)
		u.foreign = u.foreign || s.Project != project
	}
	u.freeCores = dev.usable() - cores
	u.freeMemoryMiB = max(dev.MemoryMiB, 0) - memory
	return u
}

// filter asks, in order, everything that can keep a demand from a device, and
// returns the first that does.
func filter(n *Node, dev *Device, u *usage, d *Demand) Reason {
	switch {
	case !n.Accepting:
		return NodeNotAccepting
	case n.Unreachable:
		return Unreachable
	case !MatchesModel(dev.Model, d.Model):
		return WrongModel
	case dev.NotLent || !n.lendsTo(d.Project):
		return NotLent
	case dev.oneGPU() && d.GPUs > 1:
		return OneGPU
	case !dev.Healthy:
		return Unhealthy
	case dev.Changing:
		return Changing
	case dev.exclusiveUse() && len(dev.Shares) > 0:
		return ExclusiveInUse
	case u.foreign && !dev.Mixed:
		return OtherProject
	case u.freeCores < d.Cores:
		return TooFewCores
	case u.freeMemoryMiB < d.memoryOn(dev):
		return TooLittleMemory
	case n.CPUMilli < d.CPUMilli || n.MemoryMiB < d.HostMemoryMiB:
		return HostInUse
	}
	return Fits
}
