package baselines

import (
	"math"
	"math/rand"
	"slices"
	"testing"

	"weir/pool/placement"
)

func node(id, cpu int64, gpus int, model string) placement.Node {
	n := placement.Node{ID: id, Accepting: true, CPUMilli: cpu, MemoryMiB: 1000}
	for i := range gpus {
		n.Devices = append(n.Devices, placement.Device{ID: 100*id + int64(i), Index: i, Model: model, Mixed: true, Healthy: true})
	}
	return n
}

func policy(t *testing.T, name string, history []placement.Demand, seed int64) placement.Policy {
	t.Helper()
	p, err := Policy(name, history, rand.New(rand.NewSource(seed)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var (
	half = placement.Demand{CPUMilli: 4000, GPUs: 1, Cores: 50}
	one  = placement.Demand{CPUMilli: 4000, GPUs: 1, Cores: 100}
	four = placement.Demand{CPUMilli: 4000, GPUs: 4, Cores: 100}
	cpu  = placement.Demand{CPUMilli: 1}
)

func TestScores(t *testing.T) {
	for name, c := range map[string]struct {
		score  func(placement.Machine, placement.Demand) int32
		before []placement.Demand // on the node already
		demand placement.Demand
		want   int32
	}{
		"best fit, idle":                  {bestFit, nil, one, 20},                       // 100·(1 − ½·92/128 − ½·7/8)
		"dot product, idle":               {dotProduct, nil, one, 92},                    // 100·(1 − ½·(96·4/128² + 8·1/8²))
		"packing, idle node":              {packing, nil, one, 25},                       // 33 − 8
		"packing, idle GPU":               {packing, []placement.Demand{one}, four, 46},  // 50 − 4
		"packing, used GPU":               {packing, []placement.Demand{half}, half, 95}, // 100 − 50/10
		"clustering, idle":                {clustering, nil, one, 25},
		"clustering, its class":           {clustering, []placement.Demand{one}, one, 78},
		"clustering, its class too":       {clustering, []placement.Demand{one, four}, one, 65},
		"clustering, another class":       {clustering, []placement.Demand{four}, half, 12},
		"clustering, no GPU":              {clustering, []placement.Demand{four}, cpu, 0},
		"packing, no GPU":                 {packing, []placement.Demand{four}, cpu, 0},
		"clustering, CPU tasks count not": {clustering, []placement.Demand{cpu}, one, 25},
	} {
		t.Run(name, func(t *testing.T) {
			var seen placement.Machine
			look := placement.Scored("look", func(m placement.Machine, _ placement.Demand) (int32, int) { seen = m; return 0, -1 }, nil)
			e := placement.New([]placement.Node{node(1, 96_000, 8, "G2")}, look)
			for i, d := range append(c.before, cpu) {
				choice, ok := e.Find(d)
				if !ok {
					t.Fatalf("%+v fits nowhere", d)
				}
				if i < len(c.before) {
					e.Allocate(choice, d, int64(i+1))
				}
			}
			seen.CPUMilli = 96_000
			if got := c.score(seen, c.demand); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

// A random placement takes every fitting node about as often as any other.
func TestRandomIsFair(t *testing.T) {
	nodes := []placement.Node{node(1, 16_000, 2, "T4"), node(2, 96_000, 8, "G2"), node(3, 16_000, 2, "T4"), node(4, 96_000, 0, ""), node(5, 16_000, 2, "T4")}
	e := placement.New(nodes, policy(t, Random, nil, 1))
	counts := make([]int, 6)
	for range 4000 {
		c, _ := e.Find(half)
		counts[c.Node]++
	}
	for id, n := range counts[1:] {
		if fits := id != 3; fits && math.Abs(float64(n)-1000) > 120 || !fits && n > 0 {
			t.Errorf("node %d: %d times of 4000", id+1, n)
		}
	}
}

func TestPolicies(t *testing.T) {
	for _, name := range Policies() {
		if p := policy(t, name, []placement.Demand{half}, 1); p.Name != name {
			t.Errorf("%s calls itself %s", name, p.Name)
		}
		e := placement.New([]placement.Node{node(1, 5000, 2, "T4")}, policy(t, name, nil, 1)) // nothing is expected to come
		if c, ok := e.Find(half); !ok || len(c.Devices) != 1 {
			t.Errorf("%s: %+v, %v", name, c, ok)
		}
		if _, ok := placement.New([]placement.Node{node(1, 5000, 0, "")}, policy(t, name, nil, 1)).Find(cpu); !ok {
			t.Errorf("%s: nothing for CPU alone", name)
		}
	}
	if _, err := Policy("best_fit", nil, nil); err == nil {
		t.Error("a policy that does not exist")
	}
}

var someModels = []string{"A", "B", "C"}

func someDemand(r *rand.Rand) placement.Demand {
	d := placement.Demand{CPUMilli: 1000 * r.Int63n(8), GPUs: r.Intn(4)}
	switch {
	case d.GPUs > 0 && r.Intn(2) == 0:
		d.Cores = 10 * (1 + r.Int63n(10))
	case d.GPUs > 0:
		d.Cores = placement.Whole
	}
	if r.Intn(3) == 0 {
		d.Model = someModels[r.Intn(3)] + "|" + someModels[r.Intn(3)]
	}
	return d
}

// What FGD gives a machine is what its definition says, and it takes the node
// that has the most of it.
func TestFGDIsItsDefinition(t *testing.T) {
	for seed := range int64(150) {
		r := rand.New(rand.NewSource(seed))
		var history []placement.Demand
		for range 40 {
			history = append(history, someDemand(r))
		}
		var nodes []placement.Node
		for i := range 1 + r.Intn(8) {
			nodes = append(nodes, node(int64(i+1), 1000*r.Int63n(40), r.Intn(5), someModels[r.Intn(3)]))
		}
		e := placement.New(nodes, policy(t, FGD, history, 1))
		for step := range int64(40) {
			d := history[r.Intn(len(history))]
			best, want := math.Inf(-1), int64(0)
			for _, n := range e.Nodes() {
				if score, fits := scorePlainly(typical(history), n, d); fits && score > best {
					best, want = score, n.ID
				}
			}
			c, ok := e.Find(d)
			if d.GPUs == 0 && d.CPUMilli == 0 { // it needs no node
				continue
			}
			if ok != (want > 0) || ok && c.Node != want {
				t.Fatalf("seed %d, %+v: on %d (%v), by the definition on %d", seed, d, c.Node, ok, want)
			}
			if ok {
				e.Allocate(c, d, step)
			}
		}
	}
}

// scorePlainly is the best score that a node gives a demand.
func scorePlainly(kinds []demandFrequency, n placement.Node, d placement.Demand) (score float64, fits bool) {
	if placement.Refuse(placement.Snapshot{Nodes: []placement.Node{n}}, d) != nil {
		return 0, false
	}
	left := func(n placement.Node) (left []int32) {
		for _, dev := range n.Devices {
			cores, _ := placement.Free(dev)
			left = append(left, int32(10*cores))
		}
		return left
	}
	m := placement.Machine{CPUMilli: n.CPUMilli, Left: left(n)}
	choices := [][]int{tightest(m, d)}
	if d.GPUs == 1 && d.Cores < placement.Whole {
		choices = nil
		for i, milli := range m.Left {
			if milli >= milliOf(d) {
				choices = append(choices, []int{i})
			}
		}
	}
	score = math.Inf(-1)
	for _, gpus := range choices {
		after := slices.Clone(m.Left)
		for _, gpu := range gpus {
			after[gpu] -= milliOf(d)
		}
		delta := fragmentation(kinds, n, m.CPUMilli, m.Left) - fragmentation(kinds, n, m.CPUMilli-d.CPUMilli, after)
		score = max(score, math.Trunc(100/(1+math.Exp(-delta/1000))))
	}
	return score, true
}

// fragmentation is F_n(M) of Weng et al., in milli-GPU.
func fragmentation(kinds []demandFrequency, n placement.Node, cpu int64, left []int32) float64 {
	demands, milli := int64(0), int64(0)
	for _, k := range kinds {
		demands += k.count
		all, small, enough := int64(0), int64(0), 0
		for _, l := range left {
			all += int64(l)
			if l < milliOf(k.Demand) {
				small += int64(l)
			} else {
				enough++
			}
		}
		allowed := len(n.Devices) > 0 && placement.MatchesModel(n.Devices[0].Model, k.Model)
		if k.GPUs == 0 || !allowed || cpu < k.CPUMilli || enough < k.GPUs {
			milli += k.count * all
		} else {
			milli += k.count * small
		}
	}
	return float64(milli) / float64(demands)
}
