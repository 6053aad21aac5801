package estimates

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/pool/placement"
)

const (
	h100 = "NVIDIA H100 80GB HBM3"
	a100 = "NVIDIA A100-SXM4-40GB"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

// gpu is a device whose holders have these cores each, for project 1.
func gpu(id int64, holders ...int64) placement.Device {
	d := placement.Device{ID: id, Index: int(id % 10), Model: h100, MemoryMiB: 1000, Healthy: true}
	for i := 0; i+1 < len(holders); i += 2 {
		d.Shares = append(d.Shares, placement.Share{Holder: holders[i], Cores: holders[i+1], Project: 1})
	}
	return d
}

func as(model string, d placement.Device) placement.Device { d.Model = model; return d }

func node(id int64, devices ...placement.Device) placement.Node {
	return placement.Node{ID: id, Accepting: true, Devices: devices}
}

// leaves is an end in so many minutes, known by a rule.
func leaves(holder int64, in int) End {
	return End{Holder: holder, At: now.Add(minutes(in)), Known: true}
}

func guess(e End) End { e.Known = false; return e }

// asks is holder's request for GPUs with these cores each.
func asks(holder int64, gpus int, cores int64, change ...func(*Waiting)) Waiting {
	w := Waiting{Holder: holder, Demand: placement.Demand{GPUs: gpus, Cores: cores, Project: 1}}
	for _, c := range change {
		c(&w)
	}
	return w
}

func lasts(n int) func(*Waiting)      { return func(w *Waiting) { w.Lasts = minutes(n) } }
func firm(in int) func(*Waiting)      { return func(w *Waiting) { w.Firm = now.Add(minutes(in)) } }
func model(m string) func(*Waiting)   { return func(w *Waiting) { w.Demand.Model = m } }
func of(project int64) func(*Waiting) { return func(w *Waiting) { w.Demand.Project = project } }
func lentTo(project int64, n placement.Node) placement.Node {
	n.Projects = []int64{project}
	return n
}
func say(estimates []Estimate) string             { return strings.Join(words(estimates), ", ") }
func pool(n ...placement.Node) placement.Snapshot { return placement.Snapshot{Nodes: n} }

// words is an estimate as “101 in 5 after [1 2]”, with ~ for one that no rule
// knows.
func words(estimates []Estimate) (list []string) {
	for _, e := range estimates {
		s := fmt.Sprintf("%d %s", e.Holder, e.Outcome)
		if e.Outcome == Placed {
			s = fmt.Sprintf("%d in %v", e.Holder, e.At.Sub(now).Minutes())
			if !e.Known {
				s += "~"
			}
		}
		if len(e.After) > 0 {
			s += fmt.Sprintf(" after %v", e.After)
		}
		list = append(list, s)
	}
	return list
}

func TestForecast(t *testing.T) {
	shared := pool(node(1, gpu(11, 1, 60, 2, 40), gpu(12, 3, 100)))
	changing := gpu(11)
	changing.Changing = true
	for name, c := range map[string]struct {
		pool    placement.Snapshot
		ends    []End
		waiting []Waiting
		want    string
	}{
		"nobody waits":    {shared, nil, nil, ""},
		"now":             {pool(node(1, gpu(11))), nil, []Waiting{asks(101, 1, 100)}, "101 in 0"},
		"without a GPU":   {pool(), nil, []Waiting{asks(101, 0, 1)}, "101 in 0"},
		"never":           {shared, nil, []Waiting{asks(101, 3, 10), asks(102, 1, 10, model("b200")), asks(103, 1, 101)}, "101 never, 102 never, 103 never"},
		"when one leaves": {shared, []End{leaves(1, 5), leaves(3, 9)}, []Waiting{asks(101, 1, 60)}, "101 in 5 after [1]"},
		"two leave":       {shared, []End{leaves(1, 5), guess(leaves(2, 7)), leaves(3, 9)}, []Waiting{asks(101, 1, 100)}, "101 in 7~ after [1 2]"},
		"two devices":     {shared, []End{leaves(1, 5), leaves(2, 7), leaves(3, 9)}, []Waiting{asks(101, 2, 100)}, "101 in 9 after [1 2 3]"},
		"who left without need is not named": {pool(node(1, gpu(11, 1, 10, 2, 50, 3, 40))),
			[]End{leaves(1, 1), leaves(2, 2)}, []Waiting{asks(101, 1, 50)}, "101 in 2 after [2]"},
		"overdue":                {shared, []End{leaves(3, -5)}, []Waiting{asks(101, 1, 100)}, "101 in 0 after [3]"},
		"overdue, in order":      {shared, []End{leaves(3, 0)}, []Waiting{asks(101, 1, 100), asks(102, 1, 10)}, "101 in 0 after [3], 102 unknown after [101]"},
		"an end nobody knows":    {shared, []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100)}, "101 unknown after [3]"},
		"the fewest in the way":  {pool(node(1, gpu(11, 1, 50, 2, 50)), node(2, gpu(21, 3, 100))), nil, []Waiting{asks(101, 1, 100)}, "101 unknown after [3]"},
		"the last end counts":    {shared, []End{leaves(3, 9), leaves(3, 4)}, []Waiting{asks(101, 1, 100)}, "101 in 9 after [3]"},
		"ends of nobody":         {shared, []End{leaves(77, 1), leaves(3, 9)}, []Waiting{asks(101, 1, 100)}, "101 in 9 after [3]"},
		"one after the other":    {pool(node(1, gpu(11, 1, 100))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100, lasts(10)), asks(102, 1, 60, lasts(3)), asks(103, 1, 40)}, "101 in 5 after [1], 102 in 15~ after [1 101], 103 in 15~ after [1 101]"},
		"behind one who stays":   {pool(node(1, gpu(11, 1, 100))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100), asks(102, 1, 60)}, "101 in 5 after [1], 102 unknown after [101]"},
		"a later one fits first": {shared, []End{leaves(1, 5), leaves(3, 9)}, []Waiting{asks(101, 2, 60), asks(102, 1, 50)}, "101 unknown after [102], 102 in 5 after [1]"},
		"a small one passes":     {pool(node(1, gpu(11, 1, 60))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100), asks(102, 1, 40)}, "101 unknown after [102], 102 in 0"},
		"but not a firm one":     {pool(node(1, gpu(11, 1, 60))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100, firm(0), lasts(10)), asks(102, 1, 40)}, "101 in 5 after [1], 102 in 15~ after [101]"},
		"before it is firm":      {pool(node(1, gpu(11, 1, 60))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100, firm(1)), asks(102, 1, 40, lasts(7))}, "101 in 7~ after [1 102], 102 in 0"},
		"firm for other models": {pool(node(1, gpu(11, 1, 60), as(a100, gpu(12)))), []End{leaves(1, 5)},
			[]Waiting{asks(101, 1, 100, firm(0), model("h100")), asks(102, 1, 40, model("a100")), asks(103, 1, 1)}, "101 in 5 after [1], 102 in 0, 103 in 5 after [101]"},
		"firm by a guess": {pool(node(1, gpu(11, 1, 60), as(a100, gpu(12)))), []End{guess(leaves(1, 5))},
			[]Waiting{asks(101, 1, 100, firm(0), model("h100")), asks(103, 1, 1)}, "101 in 5~ after [1], 103 in 5~ after [101]"},
		"kept at first, then refused": {pool(node(1, gpu(11, 1, 100), gpu(12, 3, 100))), []End{leaves(1, 5)},
			[]Waiting{asks(101, 1, 100, firm(0), lasts(10)), asks(102, 2, 100)}, "101 in 5 after [1], 102 unknown after [3]"},
		"lent to one and not to another": {pool(lentTo(1, node(1, gpu(11)))), nil, []Waiting{asks(101, 1, 50, of(1)), asks(102, 1, 50, of(2))}, "101 in 0, 102 never"},
		"firm without end":               {shared, nil, []Waiting{asks(101, 1, 100, firm(0)), asks(102, 1, 1)}, "101 unknown after [3], 102 unknown after [101]"},
		"not lent":                       {pool(lentTo(2, node(1, gpu(11))), lentTo(1, node(2, gpu(21, 1, 100)))), []End{leaves(1, 5)}, []Waiting{asks(101, 1, 100, of(1)), asks(102, 1, 100, of(3))}, "101 in 5 after [1], 102 never"},
		"not lent, without end": {pool(lentTo(2, node(1, gpu(11, 2, 100))), lentTo(1, node(2, gpu(21, 1, 100)))), nil,
			[]Waiting{asks(101, 1, 100, of(1))}, "101 unknown after [1]"},
		"a device that is changing": {pool(node(1, changing)), nil, []Waiting{asks(101, 1, 100)}, "101 unknown"},
	} {
		if got := say(EstimateEach(c.pool, c.ends, c.waiting, now, placement.Policy{})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestOutcomeNames(t *testing.T) {
	for o, want := range map[Outcome]string{Unknown: "unknown", Never: "never", -1: "invalid", outcomeCount: "invalid"} {
		if got := o.String(); got != want {
			t.Errorf("%d: %s", o, got)
		}
	}
}

func TestRemaining(t *testing.T) {
	spans := func(list ...int) (s []time.Duration) {
		for _, n := range list {
			s = append(s, minutes(n))
		}
		return s
	}
	for name, c := range map[string]struct {
		age   int
		spans []time.Duration
		rest  time.Duration
		ok    bool
	}{
		"of five":             {0, spans(50, 10, 40, 20, 30), minutes(30), true},
		"of six":              {0, spans(10, 20, 30, 40, 50, 60), minutes(35), true},
		"what is left":        {5, spans(1, 2, 5, 10, 20, 30, 40, 50), minutes(25), true},
		"the old last longer": {100, spans(1, 2, 3, 101, 200, 300, 400, 500), minutes(200), true},
		"too few":             {10, spans(5, 10, 20, 30, 40, 50), minutes(7), false},
		"none":                {0, nil, minutes(7), false},
	} {
		before := slices.Clone(c.spans)
		if rest, ok := Remaining(minutes(c.age), c.spans, minutes(7)); rest != c.rest || ok != c.ok {
			t.Errorf("%s: %v %v, want %v %v", name, rest, ok, c.rest, c.ok)
		}
		if !slices.Equal(c.spans, before) {
			t.Errorf("%s: the sample has changed", name)
		}
	}
}
