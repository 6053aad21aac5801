package placement

import (
	"math"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var someModels = []string{"A", "B", "C"}

// someNodes are machines with CPU, some with devices of two models.
func someNodes(r *rand.Rand) []Node {
	nodes := make([]Node, 1+r.Intn(8))
	for i := range nodes {
		n := Node{ID: int64(i + 1), Accepting: true, CPUMilli: 1000 * r.Int63n(40), MemoryMiB: 100 * r.Int63n(40)}
		model := someModels[r.Intn(3)]
		for j := range r.Intn(5) {
			if r.Intn(8) == 0 {
				model = someModels[r.Intn(3)]
			}
			n.Devices = append(n.Devices, Device{ID: int64(10*(i+1) + j), Index: j, Model: model, Mixed: r.Intn(4) > 0, Healthy: true, Exclusive: r.Intn(8) == 0})
		}
		nodes[i] = n
	}
	return nodes
}

func someDemand(r *rand.Rand) Demand {
	d := Demand{CPUMilli: 1000 * r.Int63n(8), HostMemoryMiB: 100 * r.Int63n(8), GPUs: r.Intn(4), Project: r.Int63n(3)}
	switch {
	case d.GPUs > 0 && r.Intn(2) == 0:
		d.Cores = 10 * (1 + r.Int63n(10))
	case d.GPUs > 0:
		d.Cores = Whole
	}
	if r.Intn(3) == 0 {
		d.Model = someModels[r.Intn(3)] + "|" + someModels[r.Intn(3)]
	}
	return d
}

func someHistory(r *rand.Rand) (demands []Demand) {
	var kinds []Demand
	for range 6 {
		kinds = append(kinds, someDemand(r))
	}
	for range 40 {
		demands = append(demands, kinds[min(r.Intn(6), r.Intn(6))])
	}
	return demands
}

// Whatever is placed, released and changed, in whatever order, the incremental
// choice is that of a pool that is made anew, and what is free stays true.
func TestIncrementalIsAnew(t *testing.T) {
	for _, name := range Policies() {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(150) {
				r := rand.New(rand.NewSource(seed))
				history := someHistory(r)
				policy, err := PolicyNamed(name, history)
				if err != nil {
					t.Fatal(err)
				}
				compareWithAnew(t, New(someNodes(r), policy), policy, history, r)
			}
		})
	}
}

func compareWithAnew(t *testing.T, engine *Engine, policy Policy, history []Demand, r *rand.Rand) {
	t.Helper()
	var holders []int64
	for step := range int64(80) {
		if len(holders) > 0 && r.Intn(3) == 0 {
			i := r.Intn(len(holders))
			engine.Release(holders[i])
			holders = slices.Delete(holders, i, i+1)
			continue
		}
		d := history[r.Intn(len(history))]
		var without []int64
		if r.Intn(4) == 0 {
			without = []int64{int64(1 + r.Intn(9))}
		}
		anew := slices.DeleteFunc(engine.Nodes(), func(n Node) bool { return slices.Contains(without, n.ID) })
		fresh := New(anew, policy)
		if o, ok := fresh.scorer.(*lookahead); ok { // what the whole pool has decides
			copyCapacity(o, fresh, engine)
		}
		want, fits := fresh.Find(d)
		got, ok := engine.Find(d, without...)
		if ok != fits || !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d, %+v: %+v (%v), anew %+v (%v)", step, d, got, ok, want, fits)
		}
		if ok != (Refuse(Snapshot{Nodes: anew}, d) == nil) {
			t.Fatalf("%+v: found %v, but refused %+v", d, ok, Refuse(Snapshot{Nodes: anew}, d))
		}
		if ok && !d.empty() {
			if e := engine.Explain(got, d, without...); !reflect.DeepEqual(e, fresh.Explain(want, d)) || e.Nodes < 1 {
				t.Fatalf("%+v: %+v, anew %+v", d, e, fresh.Explain(want, d))
			}
			engine.Allocate(got, d, step)
			holders = append(holders, step)
		}
	}
}

// copyCapacity lets a pool without some nodes count what all of them have.
func copyCapacity(o *lookahead, fresh, e *Engine) {
	for i, k := range fresh.kinds {
		at := slices.Index(e.kinds, k)
		fresh.capacity[i], fresh.free[i] = e.capacity[at], e.free[at]
	}
	for i, k := range e.kinds {
		if !slices.Contains(fresh.kinds, k) {
			fresh.kinds, fresh.capacity, fresh.free = append(fresh.kinds, k), append(fresh.capacity, e.capacity[i]), append(fresh.free, e.free[i])
		}
	}
	o.reserve.capacity = nil
}

// A pool that is told which nodes have changed answers as one made of them.
func TestUpdateIsAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		nodes := make([]*Node, len(s.Nodes))
		for i := range s.Nodes {
			nodes[i] = &s.Nodes[i]
		}
		policy := mustPolicy(t, rapid.SampledFrom(Policies()).Draw(t, "policy"), []Demand{{GPUs: 1, Cores: 30}, {GPUs: 2, Cores: 50, Model: "h100"}})
		e := newEngine(nil, policy)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			e = e.Update(nodes)
			d := drawDemand(t)
			got, ok := e.Find(d)
			want, refusal := Place(s, d, policy)
			want.Explanation = Explanation{}
			if ok != (refusal == nil) || ok && !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v: %+v (%v), anew %+v (%v)", d, got, ok, want, refusal)
			}
			if len(nodes) == 0 {
				return
			}
			i := rapid.IntRange(0, len(nodes)-1).Draw(t, "changed")
			changed := Node{ID: nodes[i].ID, Accepting: rapid.Bool().Draw(t, "accepting")}
			for _, dev := range nodes[i].Devices {
				if rapid.IntRange(0, 3).Draw(t, "other") == 0 {
					dev = drawDevice(t, dev.ID)
				}
				changed.Devices = append(changed.Devices, dev)
			}
			nodes = slices.Clone(nodes)
			nodes[i] = &changed
			s = Snapshot{Nodes: slices.Clone(s.Nodes)}
			s.Nodes[i] = changed
		}
	})
}

// What Weir's policy says a machine is worth is what its definition says.
func TestOutlook(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		history := someHistory(r)
		policy, err := PolicyNamed(Weir, history)
		if err != nil {
			t.Fatal(err)
		}
		e := New(someNodes(r), policy)
		for _, m := range e.machines {
			for j := range m.left {
				m.left[j] = 100 * r.Int31n(11)
			}
			e.scorer.observe(m)
			if want := worthPlainly(history, e, m); math.Abs(m.expectedUse-want) > 1e-6 {
				t.Fatalf("seed %d: worth %v, not %v", seed, m.expectedUse, want)
			}
		}
	}
}

// worthPlainly adds up over all demands of the past and kinds of devices.
func worthPlainly(history []Demand, e *Engine, m *machine) (worth float64) {
	count := 0.0
	for _, d := range history {
		if d.empty() {
			continue
		}
		count++
		for k, allowed := range e.allowed(d) {
			enough, usable := 0, 0.0
			for i, left := range m.left {
				if m.kinds[i] == k && int64(left) >= milli*d.Cores {
					enough, usable = enough+1, usable+float64(left)
				}
			}
			if !allowed || d.GPUs == 0 || enough < d.GPUs || m.cpu < d.CPUMilli {
				continue
			}
			if d.CPUMilli > 0 {
				usable = min(usable, cpuOvercommit*float64(m.cpu)*float64(int64(d.GPUs)*d.Cores*milli)/float64(d.CPUMilli))
			}
			worth += usable
		}
	}
	return worth / max(count, 1)
}

// Demands that allow every model leave the last GPUs of a model to those that
// need it.
func TestReserve(t *testing.T) {
	machineOf := func(id int64, model string, gpus int64) Node {
		n := Node{ID: id, Accepting: true, CPUMilli: 16_000}
		for j := range gpus {
			n.Devices = append(n.Devices, Device{ID: 10*id + j, Index: int(j), Model: model, Mixed: true, Healthy: true})
		}
		return n
	}
	anyModel := Demand{CPUMilli: 1000, GPUs: 1, Cores: Whole}
	picky := anyModel
	picky.Model = "T4"
	policy, _ := PolicyNamed(Weir, []Demand{anyModel, anyModel, picky})
	e := New([]Node{machineOf(1, "T4", 2), machineOf(2, "T4", 2), machineOf(3, "G2", 8), machineOf(4, "G2", 8)}, policy)
	place := func(d Demand) int64 {
		c, ok := e.Find(d)
		if !ok {
			t.Fatalf("%+v fits nowhere", d)
		}
		e.Allocate(c, d, 1)
		return c.Node
	}
	for range 12 {
		if place(anyModel) < 3 {
			t.Errorf("a demand that any model suits went to a T4, of which there are few")
		}
	}
	for range 4 {
		place(picky)
	}
}

func BenchmarkFind(b *testing.B) {
	for _, name := range Policies() {
		for _, count := range []int{1000, 10_000} {
			b.Run(name+"/"+map[int]string{1000: "1000", 10_000: "10000"}[count], func(b *testing.B) { benchmarkFind(b, name, count) })
		}
	}
}

// benchmarkFind places demands on a pool that stays about full.
func benchmarkFind(b *testing.B, name string, count int) {
	r := rand.New(rand.NewSource(1))
	nodes := make([]Node, count)
	for i := range nodes {
		nodes[i] = Node{ID: int64(i + 1), Accepting: true, CPUMilli: 96_000}
		for j := range 2 + 6*r.Intn(2) {
			nodes[i].Devices = append(nodes[i].Devices, Device{ID: int64(10*i + j), Index: j, Model: someModels[i%2], Mixed: true, Healthy: true})
		}
	}
	history := make([]Demand, 1000)
	for i := range history {
		history[i] = Demand{CPUMilli: 1000 * (1 + r.Int63n(10)), GPUs: 1, Cores: 10 * (1 + r.Int63n(10))}
	}
	policy, err := PolicyNamed(name, history)
	if err != nil {
		b.Fatal(err)
	}
	e, holders, holder := New(nodes, policy), []int64(nil), int64(0)
	next := func() {
		d := history[r.Intn(len(history))]
		if c, ok := e.Find(d); ok {
			holder++
			e.Allocate(c, d, holder)
			holders = append(holders, holder)
			return
		}
		for range 10 {
			i := r.Intn(len(holders))
			e.Release(holders[i])
			holders[i] = holders[len(holders)-1]
			holders = holders[:len(holders)-1]
		}
	}
	for range count * 10 {
		next()
	}
	b.ReportAllocs()
	for b.Loop() {
		next()
	}
}
