package placement

import "slices"

// maxRankings is for how many demands the costs of all nodes are remembered,
// so that memory stays bounded.
const maxRankings = 1 << 10

// ranking has the costs of all machines for one demand, the machines of each
// group among themselves: what the kinds of devices of a group are worth to
// the demand may change with every decision.
type ranking struct {
	demand demandInfo
	seen   int // entries of the journal, -1 before the first scoring
	groups []tournament
	fits   int // machines that can take the demand
	// plain is the ranking of the same demand for any model and without memory
	// of the host. These decide where a demand fits and, where all devices of a
	// machine are of one kind, not what it costs. It is nil where this is it.
	plain *ranking
	// devices are those of each machine that can take their part, where it can
	// take all, and sum is their sum; nil until the first explanation.
	devices []int
	sum     int
}

// ranking is that of a demand, as things are now.
func (e *Engine) ranking(d Demand) *ranking {
	r := e.rankings[d]
	if r == nil {
		if len(e.rankings) >= maxRankings {
			clear(e.rankings)
		}
		r = &ranking{demand: e.demandInfo(d), seen: -1, groups: make([]tournament, len(e.groups))}
		for i, g := range e.groups {
			if r.demand.allowsAny(g.kinds) {
				r.groups[i] = newTournament(len(g.machines))
			}
		}
		if plain := d; d.HostMemoryMiB > 0 || d.Model != "" {
			plain.HostMemoryMiB, plain.Model = 0, ""
			r.plain = e.ranking(plain)
		}
		e.rankings[d] = r
	}
	r.update(e)
	return r
}

// update scores the machines that changed since the ranking was last asked.
func (r *ranking) update(e *Engine) {
	if r.plain != nil {
		r.plain.update(e)
	}
	j := &e.journal
	if r.seen < j.start {
		for i := range e.machines {
			m := e.machines[i]
			if sameAs := m.identicalTo; sameAs >= 0 && sameAs < i && e.machines[sameAs].identicalTo == sameAs && r.groups[m.group] != nil {
				r.set(m, r.groups[m.group].leaf(e.machines[sameAs].rank))
			} else {
				r.score(e, m)
			}
		}
	} else {
		j.round++
		for _, i := range j.entries[r.seen-j.start:] {
			if j.mark[i] != j.round {
				j.mark[i] = j.round
				r.score(e, e.machines[i])
			}
		}
	}
	r.seen = j.end()
}

// score asks the policy what a machine costs.
func (r *ranking) score(e *Engine, m *machine) {
	if r.groups[m.group] == nil {
		return
	}
	c := unfit
	switch shared := r.plain != nil && len(m.ranges) <= 1; {
	case shared && m.memory >= r.demand.HostMemoryMiB:
		c = r.plain.groups[m.group].leaf(m.rank)
	case !shared && m.fits(&r.demand):
		_, c = e.choose(m, &r.demand)
	}
	r.set(m, c)
}

// set notes what a machine costs.
func (r *ranking) set(m *machine, c cost) {
	t := r.groups[m.group]
	if t.leaf(m.rank) != unfit {
		r.fits--
	}
	if c != unfit {
		r.fits++
	}
	t.set(m.rank, c)
	if r.devices != nil {
		count := 0
		for j := 0; c != unfit && j < len(m.devices); j++ {
			if m.fitsDevice(&r.demand, j) {
				count++
			}
		}
		r.sum += count - r.devices[m.position]
		r.devices[m.position] = count
	}
}

// countDevices begins to count the devices that can take their part of the
// demand, on the machines that can take all of it.
func (r *ranking) countDevices(e *Engine) {
	if r.devices != nil {
		return
	}
	r.devices, r.sum = make([]int, len(e.machines)), 0
	for _, m := range e.machines {
		if t := r.groups[m.group]; t != nil {
			r.set(m, t.leaf(m.rank))
		}
	}
}

// best is the first of the machines with the lowest cost, or any of them where
// the policy draws lots; -1 where the demand fits none.
func (r *ranking) best(e *Engine) (machine int, least cost) {
	if e.policy.random != nil {
		return r.draw(e)
	}
	extra := e.scorer.opportunityCosts(&r.demand)
	machine, least = -1, unfit
	for i, t := range r.groups {
		if t == nil || t.top() == unfit {
			continue
		}
		c, first := t.top()+e.groups[i].opportunityCost(&r.demand, extra), e.groups[i].machines[t.first()]
		if c < least || c == least && first < machine {
			machine, least = first, c
		}
	}
	return machine, least
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

// draw is any machine that fits; a policy that draws lots scores all alike.
func (r *ranking) draw(e *Engine) (machine int, c cost) {
	if r.fits == 0 {
		return -1, unfit
	}
	lot := e.policy.random.Intn(r.fits)
	for i, t := range r.groups {
		for rank := range e.groups[i].machines {
			if t == nil || t.leaf(rank) == unfit {
				continue
			}
			if lot--; lot < 0 {
				return e.groups[i].machines[rank], t.leaf(rank)
			}
		}
	}
	return -1, unfit
}

// without calls look as if some machines were not there.
func (r *ranking) without(e *Engine, machines []int, fn func()) {
	costs := make([]cost, len(machines))
	for i, at := range machines {
		if m := e.machines[at]; r.groups[m.group] != nil {
			costs[i] = r.groups[m.group].leaf(m.rank)
			r.set(m, unfit)
		}
	}
	fn()
	for i, at := range slices.Backward(machines) {
		if m := e.machines[at]; r.groups[m.group] != nil {
			r.set(m, costs[i])
		}
	}
}
