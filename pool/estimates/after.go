package estimates

import (
	"cmp"
	"slices"

	"weir/pool/placement"
)

// allocation is what one holder uses, or used, of the devices of a node.
type allocation struct {
	holder int64
	shares map[int64][]placement.Share // by device
}

func (a allocation) cores() (sum int64) {
	for _, shares := range a.shares {
		for _, s := range shares {
			sum += s.Cores
		}
	}
	return sum
}

// clearedHolders is the holders whose ends w waited for.
func (r *run) clearedHolders(w *request, c placement.Choice) []int64 {
	var gone []endedShare
	for _, g := range c.Devices {
		gone = append(gone, r.gone[g.Device]...)
	}
	slices.SortFunc(gone, func(a, b endedShare) int { return cmp.Compare(a.order, b.order) })
	var allocations []allocation
	for _, l := range gone {
		allocations = join(allocations, l.holder, l.device, l.share)
	}
	return r.neededHolders(r.chosen(c), allocations, w)
}

// chosen is the node of a choice with no other devices than the chosen ones.
func (r *run) chosen(c placement.Choice) placement.Node {
	n, _ := r.pool.Node(c.Node)
	n.Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d placement.Device) bool {
		return !slices.ContainsFunc(c.Devices, func(g placement.Grant) bool { return g.Device == d.ID })
	})
	return n
}

// join adds a share to the allocation of its holder.
func join(allocations []allocation, holder, device int64, share placement.Share) []allocation {
	i := slices.IndexFunc(allocations, func(a allocation) bool { return a.holder == holder })
	if i < 0 {
		i = len(allocations)
		allocations = append(allocations, allocation{holder, map[int64][]placement.Share{}})
	}
	allocations[i].shares[device] = append(allocations[i].shares[device], share)
	return allocations
}

// neededHolders gives the shares back to their holders, one after the other, and
// returns the holders with whom w does not fit.
func (r *run) neededHolders(n placement.Node, allocations []allocation, w *request) (holders []int64) {
	for _, h := range allocations {
		back := n
		back.Devices = slices.Clone(n.Devices)
		for i := range back.Devices {
			dev := &back.Devices[i]
			dev.Shares = slices.Concat(dev.Shares, h.shares[dev.ID])
		}
		if placement.Refuse(placement.Snapshot{Nodes: []placement.Node{back}}, w.Demand) != nil {
			holders = append(holders, h.holder)
		} else {
			n = back
		}
	}
	return holders
}

// missingHolders is the holders that a request still waits for after the last end: on
// the node with the fewest of them. Holders with few cores stay first, because
// more of them would have to leave.
func (r *run) missingHolders(w *request) (holders []int64) {
	if w.behind != nil {
		return []int64{w.behind.Holder}
	}
	for _, n := range r.pool.Nodes() {
		free, allocations := emptied(n)
		if placement.Refuse(placement.Snapshot{Nodes: []placement.Node{free}}, w.Demand) != nil {
			continue
		}
		slices.SortStableFunc(allocations, func(a, b allocation) int { return cmp.Compare(a.cores(), b.cores()) })
		if needed := r.neededHolders(free, allocations, w); holders == nil || len(needed) < len(holders) {
			holders = needed
		}
	}
	return holders
}

// emptied is a node without its shares, and the allocations of these.
func emptied(n placement.Node) (free placement.Node, allocations []allocation) {
	free = n
	free.Devices = slices.Clone(n.Devices)
	for i := range free.Devices {
		dev := &free.Devices[i]
		for _, share := range dev.Shares {
			allocations = join(allocations, share.Holder, dev.ID, share)
		}
		dev.Shares = nil
	}
	return free, allocations
}
