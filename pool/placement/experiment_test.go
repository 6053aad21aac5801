package placement

import (
	"cmp"
	"math/rand"
	"slices"
	"testing"
)

// The experiment behind the order of weir's criteria: projects, each with its
// own kinds of demands, ask for shares, hold them for a while and leave. What
// cannot be placed is refused, or waits and is tried again, in order, whenever
// somebody leaves.

// population is who asks for what.
type population struct {
	kinds  [][]Demand
	weight []float64 // of the projects so far
}

var shapes = []Demand{{GPUs: 1, Cores: 10}, {GPUs: 1, Cores: 20}, {GPUs: 1, Cores: 25}, {GPUs: 1, Cores: 30},
	{GPUs: 1, Cores: 40}, {GPUs: 1, Cores: 50}, {GPUs: 1, Cores: 70}, {GPUs: 1, Cores: 100}, {GPUs: 1, Cores: 100},
	{GPUs: 2, Cores: 50}, {GPUs: 2, Cores: 100}, {GPUs: 4, Cores: 100}, {GPUs: 8, Cores: 100, Model: "h100"}}

func newPopulation(r *rand.Rand, projects int) population {
	var p population
	sum := 0.0
	for project := range projects {
		var kinds []Demand
		for range 2 + r.Intn(3) {
			d := shapes[r.Intn(len(shapes))]
			d.Project = int64(project + 1)
			d.Model = cmp.Or(d.Model, []string{"", "", "h100", "a100"}[r.Intn(4)])
			kinds = append(kinds, d)
		}
		p.kinds = append(p.kinds, kinds)
		sum += 1 / float64(project+1)
		p.weight = append(p.weight, sum)
	}
	return p
}

func (p population) stream(r *rand.Rand, n int) []Demand {
	demands := make([]Demand, n)
	for i := range demands {
		at := r.Float64() * p.weight[len(p.weight)-1]
		project, _ := slices.BinarySearch(p.weight, at)
		demands[i] = p.kinds[project][r.Intn(len(p.kinds[project]))]
	}
	return demands
}

// office is the pool: 16 machines of 8 devices, 16 of 3 or 4; one device in
// ten is exclusive, another one mixed.
func office(r *rand.Rand) Snapshot {
	var s Snapshot
	for i := range int64(32) {
		n := Node{ID: i + 1, Accepting: true}
		count, model := int64(8), h100
		if i%2 == 1 {
			count, model = 3+i/2%2, a100
		}
		for j := range count {
			dev := as(model, gpu(10*i+j))
			lot := r.Intn(10)
			dev.Exclusive, dev.Mixed = lot == 0, lot == 1
			n.Devices = append(n.Devices, dev)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// guest is a demand that came, and if it could not be placed at once, since
// when it waits.
type guest struct {
	demand        Demand
	holder        int64
	since, stays  float64
	leaves, worth float64
}

// stay is a stream being played.
type stay struct {
	pool    *Engine
	now     float64
	guests  []guest // by when they leave
	waiting []guest
	lost    float64 // cores refused, or core-time waited
}

func (s *stay) lease(g guest) bool {
	choice, ok := s.pool.Find(g.demand)
	if !ok {
		return false
	}
	s.pool.Allocate(choice, g.demand, g.holder)
	g.leaves = s.now + g.stays
	at, _ := slices.BinarySearchFunc(s.guests, g.leaves, func(g guest, t float64) int { return cmp.Compare(g.leaves, t) })
	s.guests = slices.Insert(s.guests, at, g)
	return true
}

// until lets everybody leave who is due, and those who wait try again.
func (s *stay) until(t float64) {
	for len(s.guests) > 0 && s.guests[0].leaves <= t {
		s.now = s.guests[0].leaves
		s.pool.Release(s.guests[0].holder)
		s.guests = s.guests[1:]
		s.waiting = slices.DeleteFunc(s.waiting, func(g guest) bool {
			seated := s.lease(g)
			if seated {
				s.lost += (s.now - g.since) * g.worth
			}
			return seated
		})
	}
	s.now = t
}

// play is, per mille of the cores asked for, those refused, or, where they
// are patient, their mean waiting time in units of the mean stay.
func play(policy string, seed int64, load float64, patient bool, demands int) float64 {
	r := rand.New(rand.NewSource(seed))
	who := newPopulation(r, 12)
	nodes := office(r)
	by, _ := PolicyNamed(policy, who.stream(r, 500))
	s := stay{pool: New(nodes.Nodes, by)}
	stream, asked := who.stream(r, demands), 0.0
	for _, d := range stream {
		asked += float64(int64(d.GPUs) * d.Cores)
	}
	gap := asked / float64(demands) / (load * float64(Capacity(nodes).Cores))
	arrival := 0.0
	for i, d := range stream {
		arrival += r.ExpFloat64() * gap
		s.until(arrival)
		g := guest{demand: d, holder: int64(i + 1), since: arrival, stays: r.ExpFloat64(), worth: float64(int64(d.GPUs) * d.Cores)}
		switch {
		case s.lease(g):
		case patient:
			s.waiting = append(s.waiting, g)
		default:
			s.lost += g.worth
		}
	}
	for _, g := range s.waiting {
		s.lost += (s.now - g.since) * g.worth
	}
	return 1000 * s.lost / asked
}

// TestExperiment holds that the default refuses less and lets wait less than
// the tightest fit does. With -v it prints the figures of all policies.
func TestExperiment(t *testing.T) {
	const seeds, demands = 6, 500
	t.Logf("%-12s %10s %10s %10s", "per mille", "refused", "refused", "waited")
	t.Logf("%-12s %10s %10s %10s", "at load", "0.8", "1.0", "0.7")
	figures := map[string][3]float64{}
	for _, name := range Policies() {
		var f [3]float64
		for seed := range int64(seeds) {
			f[0] += play(name, seed, 0.8, false, demands) / seeds
			f[1] += play(name, seed, 1.0, false, demands) / seeds
			f[2] += play(name, seed, 0.7, true, demands) / seeds
		}
		figures[name] = f
		t.Logf("%-12s %10.1f %10.1f %10.1f", name, f[0], f[1], f[2])
	}
	for i, f := range figures["weir"] {
		if tightest := figures["best-fit"][i]; f > tightest {
			t.Errorf("column %d: weir %.1f, tightest fit %.1f", i+1, f, tightest)
		}
	}
}
