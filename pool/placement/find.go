package placement

// Find chooses where a demand goes, or tells that it fits nowhere. On nodes
// whose ids are in without it places nothing. A demand for nothing is met
// without a node. The choice has no explanation yet, see [Engine.Explain].
func (e *Engine) Find(d Demand, without ...int64) (c Choice, ok bool) {
	if !d.valid() || d.empty() {
		return c, d.valid()
	}
	r := e.ranking(d)
	if r.fits == 0 {
		return c, false
	}
	best := -1
	r.without(e, e.positions(without), func() { best, _ = r.best(e) })
	if best < 0 {
		return c, false
	}
	m := e.machines[best]
	devices, _ := e.choose(m, &r.demand)
	c = Choice{Node: m.node.ID, Devices: make([]Grant, len(devices))}
	for at, i := range devices {
		c.Devices[at] = Grant{Device: m.devices[i].ID, Cores: d.Cores, MemoryMiB: d.memoryOn(&m.devices[i])}
	}
	return c, true
}

// Explain says why a demand goes where Find has just said, with the same
// nodes left out.
func (engine *Engine) Explain(c Choice, d Demand, without ...int64) Explanation {
	e := Explanation{Policy: engine.policy.Name}
	if d.empty() {
		return e
	}
	r, left, best := engine.ranking(d), engine.positions(without), engine.position[c.Node]
	var least, next cost
	second := -1
	r.countDevices(engine)
	r.without(engine, left, func() {
		e.Nodes, e.Devices = r.fits, r.sum
		_, least = r.best(engine)
	})
	r.without(engine, append(left, best), func() { second, next = r.best(engine) })
	if second >= 0 {
		e.RunnerUp.Node = engine.machines[second].node.ID
		e.RunnerUp.LostBy, e.RunnerUp.Margin = differs(engine.scorer.fields(), least, next)
	}
	m := engine.machines[best]
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
func (e *Engine) positions(ids []int64) (positions []int) {
	for _, id := range ids {
		if at, known := e.position[id]; known {
			positions = append(positions, at)
		}
	}
	return positions
}
