package timeline

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

const horizon = 16 // all reservations of the tests have ended by then

// oracle is the use of each device at each time. It tries everything.
type oracle struct {
	devices []Device
	used    map[int64]*[4 * horizon]Amount
}

func newOracle(devices []Device) *oracle {
	o := &oracle{devices, map[int64]*[4 * horizon]Amount{}}
	for _, d := range devices {
		o.used[d.ID] = new([4 * horizon]Amount)
	}
	return o
}

func (o *oracle) add(grants []Grant) {
	for _, g := range grants {
		for at := g.Span.From; at < g.Span.Until; at++ {
			o.used[g.Device][at] = o.used[g.Device][at].plus(g.Amount)
		}
	}
}

// left is the least that a device has left in a span.
func (o *oracle) left(d Device, s Span) Amount {
	left := d.Capacity
	for at := s.From; at < s.Until; at++ {
		free := d.Capacity.minus(o.used[d.ID][at])
		left = Amount{min(left.Cores, free.Cores), min(left.MemoryMiB, free.MemoryMiB)}
	}
	return left
}

// way is how well a set of devices meets a demand from a time; false if it does not.
func (o *oracle) way(set []Device, d Demand, p Preference, at int64) (way [3]int64, ok bool) {
	if len(d.Ranks) > 0 {
		rank, ok := d.Ranks[set[0].Model]
		if way[0] = int64(rank); !ok {
			way[0] = -1
		}
	}
	for _, dev := range set {
		left := o.left(dev, Span{at, at + d.Duration}).minus(d.Each)
		if left.Cores < 0 || left.MemoryMiB < 0 || dev.Node != set[0].Node || dev.Model != set[0].Model || way[0] < 0 {
			return way, false
		}
		switch p.Objective {
		case Pack:
			way[2] += left.Cores
		case Spread:
			way[2] -= left.Cores
		}
	}
	if p.Distance != nil {
		way[1] = math.MaxInt64
		if distance, ok := p.Distance[set[0].Node]; ok {
			way[1] = distance
		}
	}
	return way, true
}

// earliest is the first time at which a set of devices meets a demand, and the best way then.
func (o *oracle) earliest(d Demand, p Preference) (at int64, best [3]int64, ok bool) {
	for at = d.Window.From; at+d.Duration <= min(d.Window.Until, 3*horizon); at++ {
		for bits := 1; bits < 1<<len(o.devices); bits++ {
			var set []Device
			for i, dev := range o.devices {
				if bits>>i&1 == 1 {
					set = append(set, dev)
				}
			}
			if len(set) != d.GPUs {
				continue
			}
			if way, fits := o.way(set, d, p, at); fits && (!ok || slices.Compare(way[:], best[:]) < 0) {
				best, ok = way, true
			}
		}
		if ok {
			return at, best, true
		}
	}
	return 0, best, false
}

// hold checks that what was found is what the oracle finds.
func (o *oracle) hold(t *testing.T, d Demand, p Preference, grants []Grant, found bool) {
	t.Helper()
	at, best, ok := o.earliest(d, p)
	if found != ok {
		t.Fatalf("%+v %+v: found %t %v, want %t at %d", d, p, found, grants, ok, at)
	}
	if !ok {
		return
	}
	var set []Device
	for _, g := range grants {
		i := slices.IndexFunc(o.devices, func(dev Device) bool { return dev.ID == g.Device })
		set = append(set, o.devices[i])
		if want := (Span{at, at + d.Duration}); g.Span != want || g.Amount != d.Each {
			t.Fatalf("%+v: granted %+v, want %v", d, g, want)
		}
	}
	slices.SortFunc(set, func(a, b Device) int { return int(a.ID - b.ID) })
	if len(slices.Compact(set)) != d.GPUs {
		t.Fatalf("%+v: granted %v", d, grants)
	}
	if way, fits := o.way(set, d, p, at); !fits || way != best {
		t.Fatalf("%+v %+v: granted %v, as %v %t, want %v", d, p, grants, way, fits, best)
	}
}

var examplePool = []Device{
	{ID: 1, Node: 1, Model: "A", Capacity: Amount{4, 8}}, {ID: 2, Node: 1, Model: "B", Capacity: Amount{4, 6}},
	{ID: 3, Node: 1, Model: "A", Capacity: Amount{4, 8}}, {ID: 4, Node: 2, Model: "A", Capacity: Amount{4, 8}},
	{ID: 5, Node: 2, Model: "A", Capacity: Amount{4, 8}},
}

func randomDemand(r *rand.Rand) Demand {
	d := Demand{GPUs: 1 + r.IntN(5)/3, Each: Amount{1 + r.Int64N(4), r.Int64N(9)}, Duration: 1 + r.Int64N(4)}
	d.Ranks = []map[string]int{nil, nil, {"A": 0}, {"B": 1}, {"B": 0, "A": 1}, {"A": 1, "B": 1}, {"C": 0}}[r.IntN(7)]
	d.Window.From = r.Int64N(6)
	d.Window.Until = d.Window.From + d.Duration + r.Int64N(8)
	return d
}

func randomPreference(r *rand.Rand) Preference {
	p := Preference{Objective: Objective(r.IntN(2))}
	if r.IntN(3) > 0 {
		p.Distance = map[int64]int64{int64(1 + r.IntN(2)): r.Int64N(3)}
	}
	return p
}

// decideAll decides requests as the broker does, the one with the highest score first.
func (c *Calendar) decideAll(requests []Request) (decisions []Decision) {
	order := slices.Clone(requests)
	slices.SortFunc(order, func(a, b Request) int { return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID)) })
	for _, r := range order {
		decisions = append(decisions, c.Decide(r))
	}
	return decisions
}

// Every answer in 100,000 random histories is that of the oracle: when, in what way, how
// large the part, when the rest. At no instant is a device overfull.
func TestDecisionsAgainstAnOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 1))
	seen := map[Outcome]int{}
	histories := 100_000
	if testing.Short() {
		histories = 5_000
	}
	for range histories {
		devices := examplePool[:2+r.IntN(4)]
		c, o := NewCalendar(devices), newOracle(devices)
		requests := make([]Request, 2+r.IntN(4))
		for i := range requests {
			requests[i] = Request{ID: int64(i), Score: float64(r.IntN(3)) / 2, Demand: randomDemand(r), Preference: randomPreference(r), Part: r.IntN(2) == 0, Later: r.IntN(2) == 0}
		}
		again := NewCalendar(devices)
		decisions := c.decideAll(requests)
		if second := again.decideAll(requests); !reflect.DeepEqual(decisions, second) {
			t.Fatalf("the same requests are decided as %+v and as %+v", decisions, second)
		}
		for _, x := range decisions {
			seen[x.Outcome]++
			o.decide(t, requests[x.Request], x)
		}
		for _, d := range devices {
			if left := o.left(d, Span{0, 4 * horizon}); left.Cores < 0 || left.MemoryMiB < 0 {
				t.Fatalf("device %d has %v left", d.ID, left)
			}
		}
	}
	for x := range outcomes {
		if seen[x] < histories/100 {
			t.Errorf("only %d requests are %s", seen[x], x)
		}
	}
}

// decide checks a decision and enters it.
func (o *oracle) decide(t *testing.T, r Request, x Decision) {
	t.Helper()
	d := r.Demand
	at, _, ok := o.earliest(d, r.Preference)
	first, rest, parts := o.parts(r)
	switch {
	case ok && at == d.Window.From:
		if x.Outcome != Granted {
			t.Fatalf("%+v can be granted, and is %s", r, x.Outcome)
		}
		o.hold(t, d, r.Preference, x.Grants, true)
	case r.Part && parts:
		if x.Outcome != Partial {
			t.Fatalf("%+v can be granted in parts, and is %s", r, x.Outcome)
		}
		o.hold(t, first, r.Preference, x.Grants[:first.GPUs], true)
		o.add(x.Grants[:first.GPUs])
		o.hold(t, rest, r.Preference, x.Grants[first.GPUs:], true)
		o.add(x.Grants[first.GPUs:])
		return
	case ok && r.Later:
		if x.Outcome != Delayed {
			t.Fatalf("%+v can be granted at %d, and is %s", r, at, x.Outcome)
		}
		o.hold(t, d, r.Preference, x.Grants, true)
	default:
		d.Window.Until = math.MaxInt64
		at, _, ok := o.earliest(d, r.Preference)
		if !ok {
			at = math.MaxInt64
		}
		if x.Outcome != Refused || len(x.Grants) > 0 || x.Earliest != at {
			t.Fatalf("%+v is %+v, want refused and the earliest at %d", r, x, at)
		}
	}
	o.add(x.Grants)
}

// parts are the largest part that fits at the beginning of the window, and the rest; false
// if there is no part, or the rest does not fit in the window.
func (o *oracle) parts(r Request) (first, rest Demand, ok bool) {
	first, rest = r.Demand, r.Demand
	first.Window.Until = first.Window.From + first.Duration
	shrink := func() bool {
		if r.Demand.GPUs > 1 {
			first.GPUs--
			rest.GPUs = r.Demand.GPUs - first.GPUs
			return first.GPUs > 0
		}
		cores := first.Each.Cores - 1
		if cores == 0 {
			return false
		}
		first.Each = Amount{cores, int64(math.Ceil(float64(r.Demand.Each.MemoryMiB) * float64(cores) / float64(r.Demand.Each.Cores)))}
		rest.Each = r.Demand.Each.minus(first.Each)
		return true
	}
	for shrink() {
		if _, _, ok := o.earliest(first, r.Preference); ok {
			return first, rest, o.restFits(r, first, rest)
		}
	}
	return first, rest, false
}

// restFits tries the rest beside the part that the calendar takes by the preference.
func (o *oracle) restFits(r Request, first, rest Demand) bool {
	c := NewCalendar(o.devices)
	for id, uses := range o.used {
		for at, use := range uses {
			c.Add([]Grant{{id, use, Span{int64(at), int64(at) + 1}}})
		}
	}
	part, _ := c.Earliest(first, r.Preference)
	beside := newOracle(o.devices)
	for id, uses := range o.used {
		*beside.used[id] = *uses
	}
	beside.add(part)
	_, _, ok := beside.earliest(rest, r.Preference)
	return ok
}
