package timeline

import (
	"cmp"
	"slices"
	"sort"
)

// Reservation is a reservation that a request with a higher score may change. Its QoS level
// promises that it begins by Latest, with at least Least of each device; within that it can
// be moved and shrunk. One that has Started, and is preemptible, can only end early.
type Reservation struct {
	Request
	Grants  []Grant // all of one span
	Latest  int64
	Least   Amount
	Started bool
}

// MaxMoved is the most reservations that are changed for one request: its decision takes
// time for each of them.
const MaxMoved = 16

// Place finds grants for a request in its window as if some reservations, by ID, were not
// there and others were. A project may see the use of another differently, so that only
// the caller knows the calendar of each.
type Place func(r Request, without []int64, with []Reservation) ([]Grant, bool)

func (r Reservation) overlaps(s Span) bool {
	return r.Grants[0].Span.From < s.Until && s.From < r.Grants[0].Span.Until
}

// Displace grants a request at the beginning of its window by moving, or else shrinking,
// reservations with lower scores, the lowest first: no more of them than are necessary. It returns the
// grants of the request and the reservations with their new grants; false, and nothing is
// changed, if that would break what one of them was promised.
func (c *Calendar) Displace(r Request, movable []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	before := map[int64][]Grant{}
	for _, m := range movable {
		before[m.ID] = m.Grants
	}
	grants, moved, ok = Displace(func(r Request, without []int64, with []Reservation) (found []Grant, ok bool) {
		c.exchange(before, without, with)
		found, ok = c.Earliest(r.Demand, r.Preference)
		for _, m := range with {
			c.Remove(m.Grants)
		}
		for _, id := range without {
			c.Add(before[id])
		}
		return found, ok
	}, r, movable)
	if ok {
		c.exchange(before, ids(moved), moved)
		c.Add(grants)
	}
	return grants, moved, ok
}

func (c *Calendar) exchange(before map[int64][]Grant, without []int64, with []Reservation) {
	for _, id := range without {
		c.Remove(before[id])
	}
	for _, m := range with {
		c.Add(m.Grants)
	}
}

func ids(list []Reservation) []int64 {
	all := make([]int64, len(list))
	for i, r := range list {
		all[i] = r.ID
	}
	return all
}

// Displace is Calendar.Displace over whatever finds places. It enters nothing.
func Displace(place Place, r Request, movable []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	at := r
	at.Demand.Window.Until = at.Demand.Window.From + at.Demand.Duration
	moved = lowest(movable, r.Score, at.Demand.Window)
	if grants, ok = place(at, ids(moved), nil); !ok {
		return nil, nil, false
	}
	for i := len(moved) - 1; i >= 0; i-- { // the highest score first
		fewer := slices.Delete(slices.Clone(moved), i, i+1)
		if found, fits := place(at, ids(fewer), nil); fits {
			grants, moved = found, fewer
		}
	}
	without, with := ids(moved), []Reservation{{Request: r, Grants: grants}}
	for i := range moved {
		if m := &moved[i]; m.Started {
			m.end(at.Demand.Window.From)
			with = append(with, *m)
		}
	}
	for i := len(moved) - 1; i >= 0; i-- {
		m := &moved[i]
		if m.Started {
			continue
		}
		if m.Grants, ok = place.move(*m, without, with); !ok {
			return nil, nil, false
		}
		with = append(with, *m)
	}
	return grants, moved, true
}

// end ends a reservation early.
func (r *Reservation) end(at int64) {
	r.Grants = slices.Clone(r.Grants)
	for i := range r.Grants {
		r.Grants[i].Span.Until = at
	}
}

// lowest are the reservations of a lower score in a span, the lowest and newest first, at
// most MaxMoved.
func lowest(movable []Reservation, score float64, s Span) []Reservation {
	list := slices.DeleteFunc(slices.Clone(movable), func(m Reservation) bool {
		return m.Score >= score || !m.overlaps(s) || m.Started && m.Grants[0].Span.From >= s.From
	})
	slices.SortFunc(list, func(a, b Reservation) int { return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(b.ID, a.ID)) })
	return list[:min(len(list), MaxMoved)]
}

// move finds the earliest place for a reservation within its promise: whole, or else the
// largest part.
func (place Place) move(m Reservation, without []int64, with []Reservation) ([]Grant, bool) {
	d := m.Demand
	d.Window.Until = m.Latest + d.Duration
	part := func(cores int64) ([]Grant, bool) {
		r := m.Request
		if r.Demand = d; cores < d.Each.Cores {
			r.Demand.Each = portion(d.Each, cores)
		}
		return place(r, without, with)
	}
	if found, ok := part(d.Each.Cores); ok {
		return found, true
	}
	least := max(m.Least.Cores, 1)
	if m.Least.MemoryMiB > 0 && d.Each.MemoryMiB > 0 { // the cores that come with the least memory
		least = max(least, (m.Least.MemoryMiB*d.Each.Cores+d.Each.MemoryMiB-1)/d.Each.MemoryMiB)
	}
	if least >= d.Each.Cores {
		return nil, false
	}
	// Whatever has a place leaves one for less.
	less := sort.Search(int(d.Each.Cores-least), func(i int) bool {
		_, ok := part(d.Each.Cores - 1 - int64(i))
		return ok
	})
	return part(max(d.Each.Cores-1-int64(less), least))
}
