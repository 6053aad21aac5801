package placement

import (
	"cmp"
	"sort"
)

// Totals is the pool in sums. What is neither free nor held is out of reach:
// on a node that does not accept or cannot be reached, on a device that [Free]
// leaves out, or beside the one holder of a device.
type Totals struct {
	GPUs             int   // physical ones; the instances of one count once
	Cores            int64 // that may be used
	FreeCores        int64
	CoresInUse       int64
	MemoryMiB        int64
	FreeMemoryMiB    int64
	MemoryMiBInUse   int64
	LargestFreeCores int64 // on one device
}

// Capacity adds up a snapshot.
func Capacity(s Snapshot) Totals {
	var t Totals
	physical := map[int64]struct{}{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for j := range n.Devices {
			dev := &n.Devices[j]
			t.count(n, dev)
			physical[cmp.Or(dev.Parent, dev.ID)] = struct{}{}
		}
	}
	t.GPUs = len(physical)
	return t
}

func (t *Totals) count(n *Node, dev *Device) {
	t.Cores = add(t.Cores, dev.usable())
	t.MemoryMiB = add(t.MemoryMiB, dev.MemoryMiB)
	for i := range dev.Shares {
		t.CoresInUse = add(t.CoresInUse, dev.Shares[i].Cores)
		t.MemoryMiBInUse = add(t.MemoryMiBInUse, dev.Shares[i].MemoryMiB)
	}
	if !n.Accepting || n.Unreachable {
		return
	}
	cores, memory := Free(*dev)
	t.FreeCores = add(t.FreeCores, cores)
	t.FreeMemoryMiB = add(t.FreeMemoryMiB, memory)
	t.LargestFreeCores = max(t.LargestFreeCores, cores)
}

// Free is what could still be taken of a device: GPU cores and memory in MiB.
// Nothing is free of a device that is unhealthy, changing or not lent, nor
// beside the one holder of an exclusive device or an instance.
func Free(dev Device) (cores, memoryMiB int64) {
	if dev.unavailable() {
		return 0, 0
	}
	u := measure(&dev, 0)
	return max(u.freeCores, 0), max(u.freeMemoryMiB, 0)
}

// Largest is the most cores per GPU, up to the demand's own, with which as
// many GPUs can be placed now, and the memory per GPU in MiB that goes with
// them: the demand's, scaled down with the cores but at least 1, or 0 where
// the demand leaves memory to proportion. Both are 0 if nothing can be placed.
func Largest(s Snapshot, d Demand) (cores, memoryMiB int64) {
	if !d.valid() || d.Cores < 1 || d.Cores > Whole || d.MemoryMiB < 0 {
		return 0, 0
	}
	// Fewer cores never need more memory, so what fits, fits below as well.
	tooMany := sort.Search(int(d.Cores), func(i int) bool {
		return Refuse(s, d.scaled(int64(i)+1)) != nil
	})
	if tooMany == 0 {
		return 0, 0
	}
	d = d.scaled(int64(tooMany))
	return d.Cores, d.MemoryMiB
}

// scaled is the demand with fewer cores, and with them less memory.
func (d Demand) scaled(cores int64) Demand {
	if d.MemoryMiB > 0 {
		d.MemoryMiB = max(scale(d.MemoryMiB, cores, d.Cores), 1)
	}
	d.Cores = cores
	return d
}
