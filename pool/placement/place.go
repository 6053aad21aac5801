package placement

import (
	"cmp"
	"slices"
)

// Place chooses the node and the devices that take a demand. It returns
// either the choice and nil, or why there is none.
func Place(s Snapshot, d Demand, p Policy) (Choice, *Refusal) {
	if d.GPUs == 0 {
		return Choice{Explanation: Explanation{Policy: p.Name}}, nil
	}
	if !d.valid() {
		return Choice{}, &Refusal{Reason: Invalid, Needed: d.GPUs}
	}
	c := contest{demand: &d, policy: &p, foresight: foresight{expected: p.expected, share: int32(d.Cores * milli)}}
	if p.draws() {
		c.stamp = stamp(s, p.seed)
	}
	for i := range s.Nodes {
		c.visit(&s.Nodes[i])
	}
	if c.explanation.Nodes == 0 {
		refusal := c.refusal
		refusal.Needed = d.GPUs
		refusal.Reason = refusal.nearest()
		return Choice{}, &refusal
	}
	return c.choice(), nil
}

// candidate is a device that fits, with the grant it would give.
type candidate struct {
	device *Device
	place  int // among the node's devices
	usage  usage
	grant  Grant
	score  score // see [contest.rate]
}

func leftoverCores(_ *contest, c *candidate) int64  { return c.usage.freeCores - c.grant.Cores }
func leftoverMemory(_ *contest, c *candidate) int64 { return c.usage.freeMemoryMiB - c.grant.MemoryMiB }

// offer is the best that a node can do.
type offer struct {
	node  int64
	score score
}

func (o *offer) better(than *offer) bool {
	c := o.score.compare(&than.score)
	return c < 0 || c == 0 && o.node < than.node
}

// contest is one demand's way through the nodes.
type contest struct {
	demand      *Demand
	policy      *Policy
	foresight   foresight
	stamp       uint64      // of the lots
	fitting     []candidate // of the node being visited; reused, as are the next
	linked      bool        // there are links among them
	set         []candidate
	bestSet     []candidate
	best        offer
	bestDevices []candidate
	second      offer
	explanation Explanation
	refusal     Refusal
}

// visit filters a node's devices and lets the node compete if it has enough.
func (c *contest) visit(n *Node) {
	c.fitting = c.fitting[:0]
	for i := range n.Devices {
		c.look(n, i)
	}
	fitting := len(c.fitting)
	if fitting == 0 {
		return
	}
	if c.foresight.expected != nil && fitting >= c.demand.GPUs {
		c.foresight.enter(n)
	}
	c.rate()
	slices.SortFunc(c.fitting, func(a, b candidate) int {
		return cmp.Or(a.score.compare(&b.score),
			cmp.Compare(a.device.Index, b.device.Index),
			cmp.Compare(a.device.ID, b.device.ID))
	})
	devices := distinct(c.fitting)
	if len(devices) < c.demand.GPUs {
		c.refusal.short(n.ID, fitting, len(devices))
		return
	}
	c.explanation.Nodes++
	c.explanation.Devices += fitting
	chosen, cost := c.pick(devices)
	c.compete(offer{n.ID, cost.plus(c.policy.ofNode(c, n))}, chosen)
}

func (c *contest) look(n *Node, place int) {
	dev := &n.Devices[place]
	u := measure(dev, c.demand.Project)
	reason := filter(n, dev, &u, c.demand)
	c.refusal.note(reason, &u)
	if reason != Fits {
		return
	}
	c.fitting = append(c.fitting, candidate{device: dev, place: place, usage: u,
		grant: Grant{Device: dev.ID, Cores: c.demand.Cores, MemoryMiB: c.demand.memoryOn(dev)}})
}

// rate scores the fitting devices, each alone: by all terms where one device
// is wanted, so that the first of them is the best. One device has no links.
func (c *contest) rate() {
	for i := range c.fitting {
		c.fitting[i].score = c.policy.ofDevice(c, &c.fitting[i])
		if c.demand.GPUs == 1 && c.foresight.expected != nil {
			c.fitting[i].score = c.policy.ofSet(c, c.fitting[i:i+1])
		}
	}
}

// distinct keeps each device once. It writes over its argument.
func distinct(sorted []candidate) []candidate {
	distinct := sorted[:0]
	for i := range sorted {
		id := sorted[i].grant.Device
		if !slices.ContainsFunc(distinct, func(k candidate) bool { return k.grant.Device == id }) {
			distinct = append(distinct, sorted[i])
		}
	}
	return distinct
}

func (c *contest) compete(o offer, chosen []candidate) {
	switch {
	case c.explanation.Nodes == 1 || o.better(&c.best):
		c.best, c.second = o, c.best
		c.bestDevices = append(c.bestDevices[:0], chosen...)
	case c.explanation.Nodes == 2 || o.better(&c.second):
		c.second = o
	}
}

func (c *contest) choice() Choice {
	e := c.explanation
	e.Policy = c.policy.Name
	grants := make([]Grant, len(c.bestDevices))
	for i := range c.bestDevices {
		dev := &c.bestDevices[i]
		grants[i] = dev.grant
		e.LeftoverCores = add(e.LeftoverCores, leftoverCores(c, dev))
		e.LeftoverMemoryMiB = add(e.LeftoverMemoryMiB, leftoverMemory(c, dev))
	}
	e.Unlinked = int(withoutLink(c.bestDevices))
	if e.Nodes > 1 {
		e.RunnerUp.Node = c.second.node
		if i := c.best.score.differs(&c.second.score); i < maxTerms {
			e.RunnerUp.LostBy = c.policy.terms[i].criterion
			e.RunnerUp.Margin = c.second.score[i] - c.best.score[i]
		}
	}
	return Choice{Node: c.best.node, Devices: grants, Explanation: e}
}
