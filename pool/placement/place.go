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
	c := contest{demand: &d, policy: &p}
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
	usage  usage
	grant  Grant
	score  score
}

func (c *candidate) leftoverCores() int64  { return c.usage.freeCores - c.grant.Cores }
func (c *candidate) leftoverMemory() int64 { return c.usage.freeMemoryMiB - c.grant.MemoryMiB }

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
	fitting     []candidate // of the node being visited; reused
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
		c.look(n, &n.Devices[i])
	}
	fitting := len(c.fitting)
	if fitting == 0 {
		return
	}
	slices.SortFunc(c.fitting, func(a, b candidate) int {
		return cmp.Or(a.score.compare(&b.score),
			cmp.Compare(a.device.Index, b.device.Index),
			cmp.Compare(a.device.ID, b.device.ID))
	})
	chosen := distinct(c.fitting, c.demand.GPUs)
	if len(chosen) < c.demand.GPUs {
		c.refusal.short(n.ID, fitting, len(chosen))
		return
	}
	c.explanation.Nodes++
	c.explanation.Devices += fitting
	c.compete(n, chosen)
}

func (c *contest) look(n *Node, dev *Device) {
	u := measure(dev, c.demand.Project)
	reason := filter(n, dev, &u, c.demand)
	c.refusal.note(reason, &u)
	if reason != Fits {
		return
	}
	c.fitting = append(c.fitting, candidate{device: dev, usage: u,
		grant: Grant{Device: dev.ID, Cores: c.demand.Cores, MemoryMiB: c.demand.memoryOn(dev)}})
	found := &c.fitting[len(c.fitting)-1]
	found.score = c.policy.score(found)
}

// distinct keeps the first devices, as many as wanted, none of them twice. It
// writes over its argument.
func distinct(sorted []candidate, wanted int) []candidate {
	kept := sorted[:0]
	for i := range sorted {
		if len(kept) == wanted {
			break
		}
		id := sorted[i].grant.Device
		if !slices.ContainsFunc(kept, func(k candidate) bool { return k.grant.Device == id }) {
			kept = append(kept, sorted[i])
		}
	}
	return kept
}

func (c *contest) compete(n *Node, chosen []candidate) {
	o := offer{node: n.ID}
	for i := range chosen {
		o.score = o.score.plus(chosen[i].score)
	}
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
		e.LeftoverCores = add(e.LeftoverCores, dev.leftoverCores())
		e.LeftoverMemoryMiB = add(e.LeftoverMemoryMiB, dev.leftoverMemory())
	}
	if e.Nodes > 1 {
		e.RunnerUp.Node = c.second.node
		if i := c.best.score.differs(&c.second.score); i < maxTerms {
			e.RunnerUp.LostBy = c.policy.terms[i].criterion
			e.RunnerUp.Margin = c.second.score[i] - c.best.score[i]
		}
	}
	return Choice{Node: c.best.node, Devices: grants, Explanation: e}
}
