package occupancy

import (
	"slices"

	"weir/pool/placement"
)

// Pool is nodes and what is held of them. It belongs to one goroutine.
type Pool struct {
	nodes     []placement.Node
	headrooms [][]headroom  // of each node's devices
	index     map[int64]int // a node's id → its index
	holders   map[int64][]Part
	models    map[string]match
	asked     []placement.Node // reused by Find
}

// room is what could be given of a device, and to whom.
type headroom struct {
	cores   int64
	owned   bool // by the project that holds shares; it does not mix
	project int64
}

// Part is a share with its place: the index of its node in the snapshot, and
// of the device on that node.
type Part struct {
	Node, Device int
	Share        placement.Share
}

// match is how a pool answers to a model that is asked for.
type match struct {
	some []bool // by node: one of its devices is such a model
	all  bool   // every device of these nodes is
}

// New is a pool that begins as a snapshot, which it does not change. Ids of
// nodes, and of devices on a node, must be unique.
func New(s placement.Snapshot) *Pool {
	p := &Pool{nodes: Clone(s).Nodes, headrooms: make([][]headroom, len(s.Nodes)), index: make(map[int64]int, len(s.Nodes)),
		holders: map[int64][]Part{}, models: map[string]match{}}
	for i := range p.nodes {
		n := &p.nodes[i]
		p.index[n.ID] = i
		p.headrooms[i] = make([]headroom, len(n.Devices))
		for j := range n.Devices {
			for _, share := range n.Devices[j].Shares {
				p.holders[share.Holder] = append(p.holders[share.Holder], Part{i, j, share})
			}
			p.refresh(i, j)
		}
	}
	return p
}

// Clone copies a snapshot down to its shares.
func Clone(s placement.Snapshot) placement.Snapshot {
	nodes := slices.Clone(s.Nodes)
	for i := range nodes {
		nodes[i].Devices = slices.Clone(nodes[i].Devices)
		for j := range nodes[i].Devices {
			nodes[i].Devices[j].Shares = slices.Clone(nodes[i].Devices[j].Shares)
		}
	}
	return placement.Snapshot{Nodes: nodes}
}

// Empty is a snapshot with nothing held.
func Empty(s placement.Snapshot) placement.Snapshot {
	s = Clone(s)
	for i := range s.Nodes {
		for j := range s.Nodes[i].Devices {
			s.Nodes[i].Devices[j].Shares = nil
		}
	}
	return s
}

// Nodes is the pool's nodes as they are now. They belong to the pool.
func (p *Pool) Nodes() []placement.Node { return p.nodes }

// Find chooses where a demand goes, out of all nodes. The barred devices are
// not lent to its project.
func (p *Pool) Find(d placement.Demand, policy placement.Policy, barred ...int64) (placement.Choice, bool) {
	m := p.match(d.Model)
	p.asked = p.asked[:0]
	for i := range p.nodes {
		p.ask(i, &d, m)
	}
	return p.place(d, m, policy, barred)
}

// FindOn is Find out of some nodes, given by their indices.
func (p *Pool) FindOn(nodes []int, d placement.Demand, policy placement.Policy, barred ...int64) (placement.Choice, bool) {
	m := p.match(d.Model)
	p.asked = p.asked[:0]
	for _, i := range nodes {
		p.ask(i, &d, m)
	}
	return p.place(d, m, policy, barred)
}

// Could tells whether it is worth asking some nodes: where it is false,
// FindOn finds nothing. It takes a small part of FindOn's time.
func (p *Pool) Could(nodes []int, d placement.Demand) bool {
	m := p.match(d.Model)
	return slices.ContainsFunc(nodes, func(i int) bool { return p.could(i, &d, m) })
}

// could looks at less than what keeps a demand from a node.
func (p *Pool) could(i int, d *placement.Demand, m match) bool {
	if !m.some[i] {
		return false
	}
	wide := 0
	for j := range p.headrooms[i] {
		r := &p.headrooms[i][j]
		if r.cores >= d.Cores && (!r.owned || r.project == d.Project) {
			wide++
		}
	}
	return wide >= d.GPUs
}

func (p *Pool) ask(i int, d *placement.Demand, m match) {
	if p.could(i, d, m) {
		p.asked = append(p.asked, p.nodes[i])
	}
}

func (p *Pool) place(d placement.Demand, m match, policy placement.Policy, barred []int64) (placement.Choice, bool) {
	if len(p.asked) == 0 && d.GPUs != 0 {
		return placement.Choice{}, false
	}
	if len(barred) > 0 {
		p.bar(barred)
	}
	if m.all {
		d.Model = "" // the nodes that are asked have no other
	}
	choice, refusal := placement.Place(placement.Snapshot{Nodes: p.asked}, d, policy)
	return choice, refusal == nil
}

// bar marks devices on the nodes that are asked, and on those alone.
func (p *Pool) bar(devices []int64) {
	for i := range p.asked {
		n := &p.asked[i]
		n.Devices = slices.Clone(n.Devices)
		for j := range n.Devices {
			n.Devices[j].NotLent = n.Devices[j].NotLent || slices.Contains(devices, n.Devices[j].ID)
		}
	}
}

// match reads the models' names once for each name that is asked for.
func (p *Pool) match(model string) match {
	m, known := p.models[model]
	if known {
		return m
	}
	m = match{some: make([]bool, len(p.nodes)), all: true}
	for i := range p.nodes {
		others := false
		for j := range p.nodes[i].Devices {
			matches := placement.MatchesModel(p.nodes[i].Devices[j].Model, model)
			m.some[i] = m.some[i] || matches
			others = others || !matches
		}
		m.all = m.all && !(m.some[i] && others)
	}
	p.models[model] = m
	return m
}

// Take lets a holder have what was found for its project.
func (p *Pool) Take(c placement.Choice, project, holder int64) {
	i := p.index[c.Node]
	for _, g := range c.Devices {
		j := slices.IndexFunc(p.nodes[i].Devices, func(d placement.Device) bool { return d.ID == g.Device })
		share := placement.Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, Project: project, Holder: holder}
		p.nodes[i].Devices[j].Shares = append(p.nodes[i].Devices[j].Shares, share)
		p.holders[holder] = append(p.holders[holder], Part{i, j, share})
		p.refresh(i, j)
	}
}

// Leave takes back all that a holder has, and returns it.
func (p *Pool) Leave(holder int64) []Part {
	parts := p.holders[holder]
	delete(p.holders, holder)
	for _, part := range parts {
		dev := &p.nodes[part.Node].Devices[part.Device]
		dev.Shares = slices.DeleteFunc(dev.Shares, func(s placement.Share) bool { return s.Holder == holder })
		p.refresh(part.Node, part.Device)
	}
	return parts
}

func (p *Pool) refresh(node, device int) {
	n := &p.nodes[node]
	dev := &n.Devices[device]
	var r headroom
	if n.Accepting {
		r.cores, _ = placement.Free(*dev)
	}
	if len(dev.Shares) > 0 && !dev.Mixed {
		r.owned, r.project = true, dev.Shares[0].Project
	}
	p.headrooms[node][device] = r
}
