package timeline

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

// What is promised to the holders of reservations holds in random histories: only lower
// scores are displaced, and each of them keeps its window, its latest beginning and its
// least amount. What is refused changes nothing.
func TestDisplace(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 2))
	moves, shrinks, refusals, ends := 0, 0, 0, 0
	for range 20_000 {
		devices := examplePool[:2+r.IntN(4)]
		c, o := NewCalendar(devices), newOracle(devices)
		var movable []Reservation
		for id := range int64(8) {
			q := Request{ID: id, Score: float64(r.IntN(4)) / 4, Demand: randomDemand(r), Preference: randomPreference(r), Later: true}
			x := c.Decide(q)
			o.add(x.Grants)
			if x.Outcome == Refused || r.IntN(5) == 0 { // or is guaranteed
				continue
			}
			least := Amount{1 + r.Int64N(q.Demand.Each.Cores), r.Int64N(q.Demand.Each.MemoryMiB + 1)}
			movable = append(movable, Reservation{q, x.Grants, x.Grants[0].Span.From + r.Int64N(4), least, r.IntN(4) == 0})
		}
		q := Request{ID: 9, Score: float64(r.IntN(4)) / 4, Demand: randomDemand(r), Preference: randomPreference(r)}
		grants, moved, ok := c.displace(q, movable)
		if !ok {
			refusals++
			if len(grants)+len(moved) > 0 {
				t.Fatalf("refused, but granted %v and moved %v", grants, moved)
			}
			for _, m := range movable {
				if _, _, ok := c.displace(q, []Reservation{m}); ok {
					t.Fatalf("%+v is refused, although %+v can be moved for it", q, m)
				}
			}
			o.agrees(t, c)
			continue
		}
		for _, m := range moved {
			i := slices.IndexFunc(movable, func(before Reservation) bool { return before.ID == m.ID })
			before := movable[i]
			movable = slices.Delete(movable, i, i+1)
			for _, g := range before.Grants {
				o.add([]Grant{{g.Device, Amount{}.minus(g.Amount), g.Span}})
			}
			o.add(m.Grants)
			switch first := m.Grants[0]; {
			case m.Started:
				ends++
				for i, g := range m.Grants {
					want := before.Grants[i]
					want.Span.Until = q.Demand.Window.From
					if g != want || g.Span.From >= g.Span.Until || m.Score >= q.Score {
						t.Fatalf("%+v, which has started, became %v", before, m.Grants)
					}
				}
			case m.Score >= q.Score:
				t.Fatalf("a request of %v moves one of %v", q.Score, m.Score)
			case first.Span.From < m.Demand.Window.From || first.Span.From > m.Latest || first.Span.Until-first.Span.From != m.Demand.Duration || len(m.Grants) != m.Demand.GPUs:
				t.Fatalf("%+v was moved to %v", before, m.Grants)
			case first.Amount != m.Demand.Each:
				shrinks++
				if !m.Least.within(first.Amount) || !first.Amount.within(m.Demand.Each) {
					t.Fatalf("%+v was shrunk to %v", before, first.Amount)
				}
			case !reflect.DeepEqual(m.Grants, before.Grants):
				moves++
			}
		}
		o.add(grants)
		if s := (Span{q.Demand.Window.From, q.Demand.Window.From + q.Demand.Duration}); len(grants) != q.Demand.GPUs || grants[0].Span != s {
			t.Fatalf("%+v is granted %v", q, grants)
		}
		o.agrees(t, c)
	}
	if moves < 500 || shrinks < 100 || refusals < 1000 || ends < 100 {
		t.Errorf("%d moves, %d shrinks, %d refusals, %d early ends", moves, shrinks, refusals, ends)
	}
}

// What cannot be moved does not keep what is behind it from being moved, however much of it
// there is.
func TestFixedReservationsShieldNone(t *testing.T) {
	const fixed = 2 * MaxMoved
	var devices []Device
	for id := range int64(fixed + 2) {
		devices = append(devices, Device{ID: id + 1, Node: 1, Capacity: Amount{Cores: 100}})
	}
	c := NewCalendar(devices)
	demand := Demand{GPUs: 1, Each: Amount{Cores: 100}, Duration: 10, Window: Span{0, 30}}
	var movable []Reservation
	for id := range int64(fixed + 2) {
		m := Reservation{Request: Request{ID: id + 1, Score: 0.1, Demand: demand}, Least: demand.Each}
		if m.ID > fixed {
			m.Score, m.Latest = 0.2, 20
		}
		m.Grants = c.Decide(m.Request).Grants
		movable = append(movable, m)
	}
	two := Request{ID: 1000, Score: 0.5, Demand: demand}
	two.Demand.GPUs = 2
	grants, moved, ok := c.displace(two, movable)
	if !ok || len(grants) != 2 || len(moved) != 2 {
		t.Fatalf("granted %v, moved %v, %v", grants, moved, ok)
	}
	for _, m := range moved {
		if m.ID <= fixed || m.Grants[0].Span.From != 10 {
			t.Errorf("%+v", m)
		}
	}
	if _, _, ok := c.displace(Request{ID: 1001, Score: 0.5, Demand: demand}, movable[:fixed]); ok {
		t.Error("a promise was broken")
	}
}

// displace enters in a calendar what Displace finds in it.
func (c *Calendar) displace(r Request, movable []Reservation) (grants []Grant, moved []Reservation, ok bool) {
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

// agrees checks that the calendar has the use that is known, and that no device is overfull.
func (o *oracle) agrees(t *testing.T, c *Calendar) {
	t.Helper()
	for _, d := range o.devices {
		for at, use := range o.used[d.ID] {
			if got := c.devices[d.ID].used.Max(Span{int64(at), int64(at) + 1}); got != use {
				t.Fatalf("device %d has a use of %v at %d, want %v", d.ID, got, at, use)
			}
			if !use.within(d.Capacity) {
				t.Fatalf("device %d is overfull at %d: %v", d.ID, at, use)
			}
		}
	}
}
