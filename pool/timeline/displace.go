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

func ids(list []Reservation) []int64 {
	all := make([]int64, len(list))
	for i, r := range list {
		all[i] = r.ID
	}
	return all
}

// Displace grants a request at the beginning of its window by moving, or else shrinking,
// reservations with lower scores, the lowest first: no more of them than are necessary. It
// returns the grants of the request and the reservations with their new grants, and enters
// nothing; false if that would break what one of them was promised.
//
// A reservation that turns out to have no other place counts as fixed, and the search goes
// on without it, for at most MaxMoved such reservations. Those whose promise leaves only
// other devices for the same span seldom have a place: they are considered last.
func Displace(place Place, r Request, movable []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	at := r
	at.Demand.Window.Until = at.Demand.Window.From + at.Demand.Duration
	lower := lowest(movable, r.Score, at.Demand.Window)
	flexible := slices.DeleteFunc(slices.Clone(lower), Reservation.rigid)
	if grants, moved, ok = place.displace(at, flexible); ok || len(flexible) == len(lower) {
		return grants, moved, ok
	}
	return place.displace(at, lower)
}

// displace grants a request in its window by changes of reservations, the lowest first.
func (place Place) displace(r Request, lower []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	for range MaxMoved {
		if grants, moved, ok = place.fewest(r, lower); !ok {
			return nil, nil, false
		}
		fixed := place.rearrange(r, grants, moved)
		if fixed < 0 {
			return grants, moved, true
		}
		lower = slices.DeleteFunc(lower, func(m Reservation) bool { return m.ID == moved[fixed].ID })
	}
	return nil, nil, false
}

// fewest are reservations without which a request has a place, none of which can stay: as
// low as possible, the highest of them first. What has a place keeps it without more of
// them, so each is found by bisection.
func (place Place) fewest(r Request, lower []Reservation) (grants []Grant, moved []Reservation, ok bool) {
	if _, ok = place(r, ids(lower), nil); !ok {
		return nil, nil, false
	}
	for len(moved) <= MaxMoved {
		if grants, ok = place(r, ids(moved), nil); ok || len(lower) == 0 {
			return grants, moved, ok
		}
		last := sort.Search(len(lower)-1, func(i int) bool {
			_, ok := place(r, slices.Concat(ids(moved), ids(lower[:i+1])), nil)
			return ok
		})
		moved, lower = append(moved, lower[last]), lower[:last]
	}
	return nil, nil, false
}

// rearrange gives reservations new grants beside those of a request. It returns the index
// of one for which there are none, or -1.
func (place Place) rearrange(r Request, grants []Grant, moved []Reservation) (fixed int) {
	without, with := ids(moved), []Reservation{{Request: r, Grants: grants}}
	for i := range moved {
		if m := &moved[i]; m.Started {
			m.end(r.Demand.Window.From)
			with = append(with, *m)
		}
	}
	for i := range moved {
		m := &moved[i]
		if m.Started {
			continue
		}
		found, ok := place.move(*m, without, with)
		if !ok {
			return i
		}
		m.Grants = found
		with = append(with, *m)
	}
	return -1
}

// end ends a reservation early.
func (r *Reservation) end(at int64) {
	r.Grants = slices.Clone(r.Grants)
	for i := range r.Grants {
		r.Grants[i].Span.Until = at
	}
}

// lowest are the reservations of a lower score in a span, the lowest and newest first.
func lowest(movable []Reservation, score float64, s Span) []Reservation {
	list := slices.DeleteFunc(slices.Clone(movable), func(m Reservation) bool {
		return m.Score >= score || !m.overlaps(s) || m.Started && m.Grants[0].Span.From >= s.From
	})
	slices.SortFunc(list, func(a, b Reservation) int { return cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(b.ID, a.ID)) })
	return list
}

// leastCores are the fewest cores that a reservation can be shrunk to: they come with its
// least memory.
func (r Reservation) leastCores() int64 {
	least, each := max(r.Least.Cores, 1), r.Demand.Each
	if r.Least.MemoryMiB > 0 && each.MemoryMiB > 0 {
		least = max(least, (r.Least.MemoryMiB*each.Cores+each.MemoryMiB-1)/each.MemoryMiB)
	}
	return least
}

// rigid reports whether a reservation can neither begin later nor shrink nor end early.
func (r Reservation) rigid() bool {
	return !r.Started && r.Latest <= r.Grants[0].Span.From && r.leastCores() >= r.Demand.Each.Cores
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
	least := m.leastCores()
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
