package timeline

import (
	"cmp"
	"math"
	"slices"
)

// Device is a device of the pool.
type Device struct {
	ID, Node int64 // unique; the devices of a request are of one node
	Model    string
	Capacity Amount // what can be reserved
	Whole    bool   // every use takes all of it
	Mixed    bool   // others use it beside those for whom the calendar is
}

// Taken is what a use takes of the device; others are not those for whom the calendar is.
func (d Device) Taken(a Amount, others bool) Amount {
	if d.Whole || others && !d.Mixed {
		return d.Capacity
	}
	return a
}

// Calendar is what is reserved of the devices of a pool.
type Calendar struct {
	nodes   []*node
	devices map[int64]*device
}

type node struct {
	id      int64
	devices []*device
}

type device struct {
	Device
	used Timeline
}

// NewCalendar is a calendar without reservations.
func NewCalendar(devices []Device) *Calendar {
	c := &Calendar{devices: map[int64]*device{}}
	nodes := map[int64]*node{}
	for _, d := range slices.SortedFunc(slices.Values(devices),
		func(a, b Device) int { return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.ID, b.ID)) }) {
		n := nodes[d.Node]
		if n == nil {
			n = &node{id: d.Node}
			nodes[d.Node] = n
			c.nodes = append(c.nodes, n)
		}
		c.devices[d.ID] = &device{Device: d}
		n.devices = append(n.devices, c.devices[d.ID])
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	return c
}

// Grant is an amount of a device for a span.
type Grant struct {
	Device int64
	Amount Amount
	Span   Span
}

// Add enters grants, and Remove takes them out; those of unknown devices are left out.
func (c *Calendar) Add(grants []Grant) {
	for _, g := range grants {
		if d := c.devices[g.Device]; d != nil {
			d.used.Add(g.Span, g.Amount)
		}
	}
}

// Use enters a use of a device, by others or by those for whom the calendar is.
func (c *Calendar) Use(g Grant, others bool) {
	if d := c.devices[g.Device]; d != nil {
		d.used.Add(g.Span, d.Taken(g.Amount, others))
	}
}

// Remove takes out grants that Add has entered.
func (c *Calendar) Remove(grants []Grant) {
	for _, g := range grants {
		if d := c.devices[g.Device]; d != nil {
			d.used.Add(g.Span, Amount{}.minus(g.Amount))
		}
	}
}

// FreeUntil is the end of the longest part of a grant's span, from its beginning, for
// which the grant can be entered.
func (c *Calendar) FreeUntil(g Grant) int64 {
	d := c.devices[g.Device]
	if d == nil || g.Span.From >= g.Span.Until {
		return g.Span.From
	}
	limit := d.Capacity.minus(g.Amount)
	low, high := g.Span.From, g.Span.Until // free until low; not known beyond high
	for low < high {
		if mid := high - (high-low)/2; d.used.Max(Span{g.Span.From, mid}).within(limit) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// Demand is what is to be reserved: an amount of each of some devices of one node, all for
// the same span within the window.
type Demand struct {
	GPUs     int // at least 1
	Each     Amount
	Ranks    map[string]int // of the acceptable models, the best has the lowest; none: all alike
	Duration int64          // microseconds
	Window   Span
}

// Objective is what decides between devices that are free at the same time.
type Objective int

// Objectives.
const (
	Pack   Objective = iota // the devices with the least left, so that others stay whole
	Spread                  // the devices with the most left
)

// Preference orders choices that begin at the same time: by the ranks of models, by
// distance, by the objective, and by IDs.
type Preference struct {
	Distance  map[int64]int64 // of nodes; those without one are the farthest; none: all alike
	Objective Objective
}

// distance is that of a node.
func (p Preference) distance(node int64) int64 {
	if len(p.Distance) == 0 {
		return 0
	}
	if distance, known := p.Distance[node]; known {
		return distance
	}
	return math.MaxInt64
}

// choice is a way to meet a demand.
type choice struct {
	from     int64
	rank     int // of the model
	distance int64
	cost     int64 // by the objective
	devices  []*device
}

func (a choice) compare(b choice) int {
	return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.rank, b.rank), cmp.Compare(a.distance, b.distance),
		cmp.Compare(a.cost, b.cost), cmp.Compare(a.devices[0].ID, b.devices[0].ID))
}

// Earliest finds the earliest span for a demand, and the devices that the preference
// names among those that are free then; nothing if the window has none.
func (c *Calendar) Earliest(d Demand, p Preference) ([]Grant, bool) {
	var best choice
	for _, n := range c.nodes {
		if found, ok := n.earliest(d, p, best); ok && (best.devices == nil || found.compare(best) < 0) {
			best = found
		}
	}
	if best.devices == nil {
		return nil, false
	}
	grants := make([]Grant, len(best.devices))
	for i, dev := range best.devices {
		grants[i] = Grant{dev.ID, d.Each, Span{best.from, best.from + d.Duration}}
	}
	return grants, true
}

// earliest is the node's best choice, if it can be as early as the best of others. A demand
// takes devices of one model.
func (n *node) earliest(d Demand, p Preference, best choice) (choice, bool) {
	if best.devices != nil { // what begins later is of no use
		d.Window.Until = min(d.Window.Until, best.from+d.Duration)
	}
	var own choice
	for i := 0; i < len(n.devices); {
		model, from := n.devices[i].Model, i
		for i < len(n.devices) && n.devices[i].Model == model {
			i++
		}
		alike := n.devices[from:i]
		rank := d.rank(model)
		if rank < 0 || len(alike) < d.GPUs {
			continue
		}
		at, ok := together(alike, d)
		if !ok {
			continue
		}
		found := choice{from: at, rank: rank, distance: p.distance(n.id)}
		found.devices, found.cost = p.choose(alike, d, at)
		if own.devices == nil || found.compare(own) < 0 {
			own = found
		}
	}
	return own, own.devices != nil
}

// rank is the place of a model in a demand, or -1.
func (d Demand) rank(model string) int {
	if len(d.Ranks) == 0 {
		return 0
	}
	rank, ok := d.Ranks[model]
	if !ok {
		return -1
	}
	return rank
}

// limit is how much of a device may be used beside a demand.
func (d *device) limit(each Amount) Amount { return d.Capacity.minus(each) }

// together is the earliest time at which enough of the devices are free. No time before
// that of the last but enough can do, because then too few are free; so the search goes on
// from there until it stays.
func together(devices []*device, d Demand) (int64, bool) {
	times := make([]int64, len(devices))
	for {
		for i, dev := range devices {
			at, ok := dev.used.Earliest(dev.limit(d.Each), d.Duration, d.Window)
			if times[i] = at; !ok {
				times[i] = math.MaxInt64
			}
		}
		slices.Sort(times)
		switch at := times[d.GPUs-1]; at {
		case math.MaxInt64:
			return 0, false
		case times[0]:
			return at, true
		default:
			d.Window.From = at
		}
	}
}

// choose takes the devices that are free at a time by the preference.
func (p Preference) choose(devices []*device, d Demand, from int64) ([]*device, int64) {
	type candidate struct {
		*device
		left int64
	}
	var free []candidate
	for _, dev := range devices {
		if used := dev.used.Max(Span{from, from + d.Duration}); used.within(dev.limit(d.Each)) {
			free = append(free, candidate{dev, dev.limit(d.Each).Cores - used.Cores})
		}
	}
	sign := int64(1)
	if p.Objective == Spread {
		sign = -1
	}
	slices.SortFunc(free, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(sign*a.left, sign*b.left), cmp.Compare(a.ID, b.ID))
	})
	chosen, cost := make([]*device, d.GPUs), int64(0)
	for i, f := range free[:d.GPUs] {
		chosen[i], cost = f.device, cost+sign*f.left
	}
	return chosen, cost
}
