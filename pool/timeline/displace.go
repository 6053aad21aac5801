package timeline

import (
	"cmp"
	"slices"
	"sort"
)

// Reservation is a reservation that has not started. Its QoS level promises that it begins
// by Latest, with at least Least of each device; within that it can be moved and shrunk
// for a request with a higher score.
type Reservation struct {
	Request
	Grants []Grant // all of one span
	Latest int64
	Least  Amount
}

func (r Reservation) overlaps(s Span) bool {
	return r.Grants[0].Span.From < s.Until && s.From < r.Grants[0].Span.Until
}

// Displace grants a request at the beginning of its window by moving, or else shrinking,
// reservations with lower scores: as few as possible, the lowest first. It returns the
// grants of the request and the reservations with their new grants; false, and nothing is
// changed, if that would break what one of them was promised.
func (c *Calendar) Displace(r Request, movable []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	at := r.Demand
	at.Window.Until = at.Window.From + at.Duration
	fits := func() bool {
		grants, ok = c.Earliest(at, r.Preference)
		return ok
	}
	for _, m := range lowest(movable, r.Score, at.Window) {
		if fits() {
			break
		}
		c.Remove(m.Grants)
		moved = append(moved, m)
	}
	if !fits() {
		c.restore(moved)
		return nil, nil, false
	}
	for i := len(moved) - 1; i >= 0; i-- { // the highest score first
		if c.Add(moved[i].Grants); fits() {
			moved = slices.Delete(moved, i, i+1)
		} else {
			c.Remove(moved[i].Grants)
		}
	}
	fits()
	c.Add(grants)
	before := slices.Clone(moved)
	for i := len(moved) - 1; i >= 0; i-- {
		if !c.move(&moved[i]) {
			for _, m := range moved[i+1:] {
				c.Remove(m.Grants)
			}
			c.Remove(grants)
			c.restore(before)
			return nil, nil, false
		}
	}
	return grants, moved, true
}

func (c *Calendar) restore(all []Reservation) {
	for _, m := range all {
		c.Add(m.Grants)
	}
}

// lowest are the reservations of a lower score in a span, the lowest and newest first.
func lowest(movable []Reservation, score float64, s Span) []Reservation {
	list := slices.DeleteFunc(slices.Clone(movable), func(m Reservation) bool { return m.Score >= score || !m.overlaps(s) })
	slices.SortFunc(list, func(a, b Reservation) int { return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(b.ID, a.ID)) })
	return list
}

// move finds the earliest place for a reservation within its promise: whole, or else the
// largest part.
func (c *Calendar) move(m *Reservation) bool {
	d := m.Demand
	d.Window.Until = m.Latest + d.Duration
	if found, ok := c.Earliest(d, m.Preference); ok {
		m.Grants = found
		c.Add(found)
		return true
	}
	least := max(m.Least.Cores, 1)
	if m.Least.MemoryMiB > 0 && d.Each.MemoryMiB > 0 { // the cores that come with the least memory
		least = max(least, (m.Least.MemoryMiB*d.Each.Cores+d.Each.MemoryMiB-1)/d.Each.MemoryMiB)
	}
	place := func(cores int64) ([]Grant, bool) {
		part := d
		part.Each = portion(d.Each, cores)
		return c.Earliest(part, m.Preference)
	}
	if least >= d.Each.Cores {
		return false
	}
	// Whatever has a place leaves one for less.
	less := sort.Search(int(d.Each.Cores-least), func(i int) bool {
		_, ok := place(d.Each.Cores - 1 - int64(i))
		return ok
	})
	found, ok := place(max(d.Each.Cores-1-int64(less), least))
	if !ok {
		return false
	}
	m.Grants = found
	c.Add(found)
	return true
}
