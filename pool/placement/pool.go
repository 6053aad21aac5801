package placement

import (
	"cmp"
	"slices"
)

// Limits, so that no sum can overflow and memory stays bounded.
const (
	MaxGPUs = 1 << 10 // of one demand
	// maxRankings is for how many demands the costs of all nodes are
	// remembered.
	maxRankings = 1 << 10
)

// Pool places demands on nodes, one after the other, and follows what is free
// of them. It is incremental: it remembers for every demand what each node
// costs, and Find scores again only the nodes that changed since that demand
// was last placed. It belongs to one goroutine.
type Pool struct {
	machines    []*machine
	nodes       []*Node       // that the machines began as, in the same order
	position    map[int64]int // of a node's id in machines
	kinds       []kind
	groups      []group
	capacity    []int64 // milli-GPU of each kind when all is idle
	free        []int64 // milli-GPU of each kind
	allocations map[int64][]allocation
	policy      Policy
	scorer      scorer
	rankings    map[Demand]*ranking
	journal     journal
	chosen      []int // scratch of choose
}

// group is the machines that have the same kinds of devices, by position.
type group struct {
	kinds    []int
	machines []int
}

// opportunityCost is what a demand pays for a group: the mean of the kinds of its
// devices that the demand allows.
func (g *group) opportunityCost(n *demandInfo, costs []cost) (sum cost) {
	if costs == nil {
		return 0
	}
	count := cost(0)
	for _, k := range g.kinds {
		if n.allowed[k] {
			sum, count = sum+costs[k], count+1
		}
	}
	return sum / max(count, 1) >> opportunityCostShift << opportunityCostShift
}

// allocation is what a holder has of a machine: a share of a device, or CPU
// and memory of the host.
type allocation struct {
	machine, device int // device is -1 for the host
	share           Share
	cpu, memory     int64
}

// New is a pool that begins as these nodes, which it does not change. Ids of
// nodes and devices are expected to be unique.
func New(nodes []Node, policy Policy) *Pool {
	pointers := make([]*Node, len(nodes))
	for i := range nodes {
		pointers[i] = &nodes[i]
	}
	return newPool(pointers, policy)
}

func newPool(nodes []*Node, policy Policy) *Pool {
	p := &Pool{position: make(map[int64]int, len(nodes)), allocations: map[int64][]allocation{},
		policy: policy, rankings: map[Demand]*ranking{}, scorer: bestFit{}}
	p.policy.Name = cmp.Or(policy.Name, BestFit)
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	nodes = slices.CompactFunc(nodes, func(a, b *Node) bool { return a.ID == b.ID })
	p.machines, p.nodes, p.journal = make([]*machine, len(nodes)), nodes, newJournal(len(nodes))
	if policy.scorer != nil {
		p.scorer = policy.scorer(p)
	}
	firsts := map[string]int{"": -1}
	for i, n := range nodes {
		m := newMachine(n)
		p.machines[i], p.position[n.ID], m.position = m, i, i
		m.group = p.groupOf(m)
		m.rank = len(p.groups[m.group].machines)
		p.groups[m.group].machines = append(p.groups[m.group].machines, i)
		p.count(m, 1)
		p.scorer.observe(m)
		same := m.fingerprint()
		if _, known := firsts[same]; !known {
			firsts[same] = i
		}
		m.identicalTo = firsts[same]
		for j := range m.devices {
			for _, s := range m.devices[j].Shares {
				p.allocations[s.Holder] = append(p.allocations[s.Holder], allocation{machine: i, device: j, share: s})
			}
		}
	}
	return p
}

// groupOf is the group of a machine; it numbers the kinds of its devices.
func (p *Pool) groupOf(m *machine) int {
	var kinds []int
	for i := range m.devices {
		k := kind{m.devices[i].Model, m.devices[i].Parent != 0}
		number := slices.Index(p.kinds, k)
		if number < 0 {
			number = len(p.kinds)
			p.kinds, p.capacity, p.free = append(p.kinds, k), append(p.capacity, 0), append(p.free, 0)
		}
		m.kinds[i] = number
		if last := len(m.ranges) - 1; last >= 0 && m.ranges[last].kind == number {
			m.ranges[last].to = i + 1
		} else {
			m.ranges = append(m.ranges, deviceRange{kind: number, from: i, to: i + 1})
			kinds = append(kinds, number)
		}
	}
	at := slices.IndexFunc(p.groups, func(g group) bool { return slices.Equal(g.kinds, kinds) })
	if at < 0 {
		at = len(p.groups)
		p.groups = append(p.groups, group{kinds: kinds})
	}
	return at
}

// count adds a machine to the sums (sign 1) or takes it out of them (-1).
func (p *Pool) count(m *machine, sign int64) {
	for i := range m.devices {
		dev := m.devices[i]
		p.free[m.kinds[i]] += sign * int64(m.left[i])
		if dev.Shares = nil; m.node.Accepting && !m.node.Unreachable && !dev.unavailable() {
			p.capacity[m.kinds[i]] += sign * dev.usable() * milli
		}
	}
}

// Update makes the pool as these nodes are, in the order of their ids, in a
// slice that is not changed afterwards: one that is another *Node than before
// has changed, one that is the same has not.
// It answers the pool, or a new one where nodes came, went or have other kinds
// of devices. It is not for a pool that shares were allocations of by [Pool.Allocate].
func (p *Pool) Update(nodes []*Node) *Pool {
	if len(nodes) != len(p.machines) {
		return newPool(nodes, p.policy)
	}
	before := p.nodes
	if p.nodes = nodes; len(nodes) == 0 || &nodes[0] == &before[0] {
		return p
	}
	for i, n := range nodes {
		if n == before[i] {
			continue
		}
		old := p.machines[i]
		m := newMachine(n)
		if n.ID != old.node.ID || !p.sameGroup(m, old.group) {
			return newPool(nodes, p.policy)
		}
		m.position, m.group, m.rank, m.identicalTo = i, old.group, old.rank, -1
		p.count(old, -1)
		p.count(m, 1)
		p.machines[i] = m
		p.scorer.observe(m)
		p.journal.note(i)
	}
	return p
}

// sameGroup tells whether a machine belongs to a group.
func (p *Pool) sameGroup(m *machine, group int) bool {
	kinds, groups := len(p.kinds), len(p.groups)
	at := p.groupOf(m)
	p.kinds, p.capacity, p.free, p.groups = p.kinds[:kinds], p.capacity[:kinds], p.free[:kinds], p.groups[:groups]
	return at == group
}

// allowed tells of each kind of device whether a demand may have it.
func (p *Pool) allowed(d Demand) []bool {
	allowed := make([]bool, len(p.kinds))
	for i, k := range p.kinds {
		allowed[i] = (d.GPUs == 1 || !k.instance) && MatchesModel(k.model, d.Model)
	}
	return allowed
}

func (p *Pool) demandInfo(d Demand) demandInfo {
	n := demandInfo{Demand: d, allowed: p.allowed(d)}
	if d.GPUs > 0 {
		n.milli = int32(d.Cores * milli)
		n.total = int64(n.milli) * int64(d.GPUs)
	}
	return n
}

// Find chooses where a demand goes, or tells that it fits nowhere. On nodes
// whose ids are in without it places nothing. A demand for nothing is met
// without a node. The choice has no explanation yet, see [Pool.Explain].
func (p *Pool) Find(d Demand, without ...int64) (c Choice, ok bool) {
	if !d.valid() || d.empty() {
		return c, d.valid()
	}
	r := p.ranking(d)
	if r.fits == 0 {
		return c, false
	}
	best := -1
	r.without(p, p.positions(without), func() { best, _ = r.best(p) })
	if best < 0 {
		return c, false
	}
	m := p.machines[best]
	devices, _ := p.choose(m, &r.demand)
	c = Choice{Node: m.node.ID, Devices: make([]Grant, len(devices))}
	for at, i := range devices {
		c.Devices[at] = Grant{Device: m.devices[i].ID, Cores: d.Cores, MemoryMiB: d.memoryOn(&m.devices[i])}
	}
	return c, true
}

// Explain says why a demand goes where Find has just said, with the same
// nodes left out.
func (p *Pool) Explain(c Choice, d Demand, without ...int64) Explanation {
	e := Explanation{Policy: p.policy.Name}
	if d.empty() {
		return e
	}
	r, left, best := p.ranking(d), p.positions(without), p.position[c.Node]
	var least, next cost
	second := -1
	r.countDevices(p)
	r.without(p, left, func() {
		e.Nodes, e.Devices = r.fits, r.sum
		_, least = r.best(p)
	})
	r.without(p, append(left, best), func() { second, next = r.best(p) })
	if second >= 0 {
		e.RunnerUp.Node = p.machines[second].node.ID
		e.RunnerUp.LostBy, e.RunnerUp.Margin = differs(p.scorer.fields(), least, next)
	}
	m := p.machines[best]
	var devices []int
	for _, g := range c.Devices {
		i := m.device(g.Device)
		devices = append(devices, i)
		e.LeftoverCores += int64(m.left[i])/milli - g.Cores
		e.LeftoverMemoryMiB = add(e.LeftoverMemoryMiB, m.memoryLeft[i]-g.MemoryMiB)
	}
	e.Unlinked = int(m.amounts(&r.demand, devices).unlinked)
	return e
}

// positions are those of the nodes with these ids.
func (p *Pool) positions(ids []int64) (positions []int) {
	for _, id := range ids {
		if at, known := p.position[id]; known {
			positions = append(positions, at)
		}
	}
	return positions
}

// Allocate gives a holder what was found for a demand.
func (p *Pool) Allocate(c Choice, d Demand, holder int64) {
	at, known := p.position[c.Node]
	if !known {
		return
	}
	m := p.machines[at]
	m.identicalTo = -1
	if d.CPUMilli > 0 || d.HostMemoryMiB > 0 {
		m.cpu, m.memory = m.cpu-d.CPUMilli, m.memory-d.HostMemoryMiB
		p.allocations[holder] = append(p.allocations[holder], allocation{machine: at, device: -1, cpu: d.CPUMilli, memory: d.HostMemoryMiB})
	}
	for _, g := range c.Devices {
		i := m.device(g.Device)
		share := Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, Project: d.Project, Holder: holder}
		m.devices[i].Shares = append(m.devices[i].Shares, share)
		p.allocations[holder] = append(p.allocations[holder], allocation{machine: at, device: i, share: share})
		p.refresh(m, i)
	}
	p.scorer.observe(m)
	p.journal.note(at)
}

// Release ends all allocations of a holder, and returns its shares by device.
func (p *Pool) Release(holder int64) map[int64][]Share {
	shares := map[int64][]Share{}
	for _, a := range p.allocations[holder] {
		m := p.machines[a.machine]
		m.cpu, m.memory = m.cpu+a.cpu, m.memory+a.memory
		if a.device >= 0 {
			dev := &m.devices[a.device]
			dev.Shares = slices.DeleteFunc(slices.Clone(dev.Shares), func(s Share) bool { return s.Holder == holder })
			shares[dev.ID] = append(shares[dev.ID], a.share)
			p.refresh(m, a.device)
		}
		p.scorer.observe(m)
		p.journal.note(a.machine)
	}
	delete(p.allocations, holder)
	return shares
}

func (p *Pool) refresh(m *machine, device int) {
	before := m.left[device]
	m.refresh(device)
	p.free[m.kinds[device]] += int64(m.left[device] - before)
}

// Node is a node as it is now. Its devices belong to the pool.
func (p *Pool) Node(id int64) (n Node, known bool) {
	at, known := p.position[id]
	if !known {
		return n, false
	}
	n = *p.machines[at].node
	m := p.machines[at]
	n.Devices, n.CPUMilli, n.MemoryMiB = m.devices, m.cpu, m.memory
	return n, true
}

// Nodes are all nodes as they are now, by id. Their devices belong to the pool.
func (p *Pool) Nodes() []Node {
	nodes := make([]Node, len(p.machines))
	for i, m := range p.machines {
		nodes[i], _ = p.Node(m.node.ID)
	}
	return nodes
}
