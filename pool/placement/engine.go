package placement

import (
	"cmp"
	"slices"
)

// Engine places demands on nodes, one after the other, and follows what is free
// of them. It is incremental: it remembers for every demand what each node
// costs, and Find scores again only the nodes that changed since that demand
// was last placed. It belongs to one goroutine.
type Engine struct {
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

// allocation is what a holder has of a machine: a share of a device, or CPU
// and memory of the host.
type allocation struct {
	machine, device int // device is -1 for the host
	share           Share
	cpu, memory     int64
}

// New is an engine that begins as these nodes, which it does not change. Ids of
// nodes and devices are expected to be unique.
func New(nodes []Node, policy Policy) *Engine {
	pointers := make([]*Node, len(nodes))
	for i := range nodes {
		pointers[i] = &nodes[i]
	}
	return newEngine(pointers, policy)
}

func newEngine(nodes []*Node, policy Policy) *Engine {
	e := &Engine{position: make(map[int64]int, len(nodes)), allocations: map[int64][]allocation{},
		policy: policy, rankings: map[Demand]*ranking{}, scorer: bestFit{}}
	e.policy.Name = cmp.Or(policy.Name, BestFit)
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b *Node) int { return cmp.Compare(a.ID, b.ID) })
	nodes = slices.CompactFunc(nodes, func(a, b *Node) bool { return a.ID == b.ID })
	e.machines, e.nodes, e.journal = make([]*machine, len(nodes)), nodes, newJournal(len(nodes))
	if policy.scorer != nil {
		e.scorer = policy.scorer(e)
	}
	firsts := map[string]int{"": -1}
	for i, n := range nodes {
		m := newMachine(n)
		e.machines[i], e.position[n.ID], m.position = m, i, i
		m.group = e.groupOf(m)
		m.rank = len(e.groups[m.group].machines)
		e.groups[m.group].machines = append(e.groups[m.group].machines, i)
		e.count(m, 1)
		e.scorer.observe(m)
		same := m.fingerprint()
		if _, known := firsts[same]; !known {
			firsts[same] = i
		}
		m.identicalTo = firsts[same]
		for j := range m.devices {
			for _, s := range m.devices[j].Shares {
				e.allocations[s.Holder] = append(e.allocations[s.Holder], allocation{machine: i, device: j, share: s})
			}
		}
	}
	return e
}

// groupOf is the group of a machine; it numbers the kinds of its devices.
func (e *Engine) groupOf(m *machine) int {
	var kinds []int
	for i := range m.devices {
		k := kind{m.devices[i].Model, m.devices[i].Parent != 0}
		number := slices.Index(e.kinds, k)
		if number < 0 {
			number = len(e.kinds)
			e.kinds, e.capacity, e.free = append(e.kinds, k), append(e.capacity, 0), append(e.free, 0)
		}
		m.kinds[i] = number
		if last := len(m.ranges) - 1; last >= 0 && m.ranges[last].kind == number {
			m.ranges[last].to = i + 1
		} else {
			m.ranges = append(m.ranges, deviceRange{kind: number, from: i, to: i + 1})
			kinds = append(kinds, number)
		}
	}
	at := slices.IndexFunc(e.groups, func(g group) bool { return slices.Equal(g.kinds, kinds) })
	if at < 0 {
		at = len(e.groups)
		e.groups = append(e.groups, group{kinds: kinds})
	}
	return at
}

// count adds a machine to the sums (sign 1) or takes it out of them (-1).
func (e *Engine) count(m *machine, sign int64) {
	for i := range m.devices {
		dev := m.devices[i]
		e.free[m.kinds[i]] += sign * int64(m.left[i])
		if dev.Shares = nil; m.node.Accepting && !m.node.Unreachable && !dev.unavailable() {
			e.capacity[m.kinds[i]] += sign * dev.usable() * milli
		}
	}
}

// Update makes the pool as these nodes are, in the order of their ids, in a
// slice that is not changed afterwards: one that is another *Node than before
// has changed, one that is the same has not.
// It answers the pool, or a new one where nodes came, went or have other kinds
// of devices. It is not for a pool that shares were allocations of by [Engine.Allocate].
func (e *Engine) Update(nodes []*Node) *Engine {
	if len(nodes) != len(e.machines) {
		return newEngine(nodes, e.policy)
	}
	before := e.nodes
	if e.nodes = nodes; len(nodes) == 0 || &nodes[0] == &before[0] {
		return e
	}
	for i, n := range nodes {
		if n == before[i] {
			continue
		}
		old := e.machines[i]
		m := newMachine(n)
		if n.ID != old.node.ID || !e.sameGroup(m, old.group) {
			return newEngine(nodes, e.policy)
		}
		m.position, m.group, m.rank, m.identicalTo = i, old.group, old.rank, -1
		e.count(old, -1)
		e.count(m, 1)
		e.machines[i] = m
		e.scorer.observe(m)
		e.journal.note(i)
	}
	return e
}

// sameGroup tells whether a machine belongs to a group.
func (e *Engine) sameGroup(m *machine, group int) bool {
	kinds, groups := len(e.kinds), len(e.groups)
	at := e.groupOf(m)
	e.kinds, e.capacity, e.free, e.groups = e.kinds[:kinds], e.capacity[:kinds], e.free[:kinds], e.groups[:groups]
	return at == group
}

// allowed tells of each kind of device whether a demand may have it.
func (e *Engine) allowed(d Demand) []bool {
	allowed := make([]bool, len(e.kinds))
	for i, k := range e.kinds {
		allowed[i] = (d.GPUs == 1 || !k.instance) && MatchesModel(k.model, d.Model)
	}
	return allowed
}

func (e *Engine) demandInfo(d Demand) demandInfo {
	n := demandInfo{Demand: d, allowed: e.allowed(d)}
	if d.GPUs > 0 {
		n.milli = int32(d.Cores * milli)
		n.total = int64(n.milli) * int64(d.GPUs)
	}
	return n
}

// Allocate gives a holder what was found for a demand.
func (e *Engine) Allocate(c Choice, d Demand, holder int64) {
	at, known := e.position[c.Node]
	if !known {
		return
	}
	m := e.machines[at]
	m.identicalTo = -1
	if d.CPUMilli > 0 || d.HostMemoryMiB > 0 {
		m.cpu, m.memory = m.cpu-d.CPUMilli, m.memory-d.HostMemoryMiB
		e.allocations[holder] = append(e.allocations[holder], allocation{machine: at, device: -1, cpu: d.CPUMilli, memory: d.HostMemoryMiB})
	}
	for _, g := range c.Devices {
		i := m.device(g.Device)
		share := Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, Project: d.Project, Holder: holder}
		m.devices[i].Shares = append(m.devices[i].Shares, share)
		e.allocations[holder] = append(e.allocations[holder], allocation{machine: at, device: i, share: share})
		e.refresh(m, i)
	}
	e.scorer.observe(m)
	e.journal.note(at)
}

// Release ends all allocations of a holder, and returns its shares by device.
func (e *Engine) Release(holder int64) map[int64][]Share {
	shares := map[int64][]Share{}
	for _, a := range e.allocations[holder] {
		m := e.machines[a.machine]
		m.cpu, m.memory = m.cpu+a.cpu, m.memory+a.memory
		if a.device >= 0 {
			dev := &m.devices[a.device]
			dev.Shares = slices.DeleteFunc(slices.Clone(dev.Shares), func(s Share) bool { return s.Holder == holder })
			shares[dev.ID] = append(shares[dev.ID], a.share)
			e.refresh(m, a.device)
		}
		e.scorer.observe(m)
		e.journal.note(a.machine)
	}
	delete(e.allocations, holder)
	return shares
}

func (e *Engine) refresh(m *machine, device int) {
	before := m.left[device]
	m.refresh(device)
	e.free[m.kinds[device]] += int64(m.left[device] - before)
}

// Node is a node as it is now. Its devices belong to the pool.
func (e *Engine) Node(id int64) (n Node, known bool) {
	at, known := e.position[id]
	if !known {
		return n, false
	}
	n = *e.machines[at].node
	m := e.machines[at]
	n.Devices, n.CPUMilli, n.MemoryMiB = m.devices, m.cpu, m.memory
	return n, true
}

// Nodes are all nodes as they are now, by id. Their devices belong to the pool.
func (e *Engine) Nodes() []Node {
	nodes := make([]Node, len(e.machines))
	for i, m := range e.machines {
		nodes[i], _ = e.Node(m.node.ID)
	}
	return nodes
}
