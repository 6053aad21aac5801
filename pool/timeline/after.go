package timeline

import (
	"cmp"
	"slices"

	"weir/pool/placement"
)

// hold is what one holder has, or had, of the devices of a node.
type hold struct {
	holder int64
	shares map[int64][]placement.Share // by device
}

func (h hold) cores() (sum int64) {
	for _, shares := range h.shares {
		for _, s := range shares {
			sum += s.Cores
		}
	}
	return sum
}

// cleared is the holders that had to leave before w could have what was
// chosen for it.
func (r *run) cleared(w *request, c placement.Choice) []int64 {
	var gone []left
	for _, g := range c.Devices {
		gone = append(gone, r.gone[g.Device]...)
	}
	slices.SortFunc(gone, func(a, b left) int { return cmp.Compare(a.order, b.order) })
	var holds []hold
	for _, l := range gone {
		holds = join(holds, l.holder, l.device, l.share)
	}
	return r.needed(r.chosen(c), holds, w)
}

// chosen is the node of a choice with no other devices than the chosen ones.
func (r *run) chosen(c placement.Choice) placement.Node {
	n, _ := r.pool.Node(c.Node)
	n.Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d placement.Device) bool {
		return !slices.ContainsFunc(c.Devices, func(g placement.Grant) bool { return g.Device == d.ID })
	})
	return n
}

// join adds a share to its holder's hold.
func join(holds []hold, holder, device int64, share placement.Share) []hold {
	i := slices.IndexFunc(holds, func(h hold) bool { return h.holder == holder })
	if i < 0 {
		i = len(holds)
		holds = append(holds, hold{holder, map[int64][]placement.Share{}})
	}
	holds[i].shares[device] = append(holds[i].shares[device], share)
	return holds
}

// needed lets the holders have their shares of a node back, one after the
// other, and returns those with whom w does not fit any more.
func (r *run) needed(n placement.Node, holds []hold, w *request) (holders []int64) {
	for _, h := range holds {
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

// missing is what a request that is still not placed after the last end
// waits for: on the node where the fewest holders are in its way. Those with
// few cores stay first, because it takes more of them to make room.
func (r *run) missing(w *request) (holders []int64) {
	if w.behind != nil {
		return []int64{w.behind.Holder}
	}
	for _, n := range r.pool.Nodes() {
		free, holds := emptied(n)
		if placement.Refuse(placement.Snapshot{Nodes: []placement.Node{free}}, w.Demand) != nil {
			continue
		}
		slices.SortStableFunc(holds, func(a, b hold) int { return cmp.Compare(a.cores(), b.cores()) })
		if needed := r.needed(free, holds, w); holders == nil || len(needed) < len(holders) {
			holders = needed
		}
	}
	return holders
}

// emptied is a node with nothing held, and what is held of it by whom.
func emptied(n placement.Node) (free placement.Node, holds []hold) {
	free = n
	free.Devices = slices.Clone(n.Devices)
	for i := range free.Devices {
		dev := &free.Devices[i]
		for _, share := range dev.Shares {
			holds = join(holds, share.Holder, dev.ID, share)
		}
		dev.Shares = nil
	}
	return free, holds
}
