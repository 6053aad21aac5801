package graph

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"weir/models"
)

// fork is a graph of independent branches of one operator each.
func fork(seconds ...float64) (g Graph) {
	for i, s := range seconds {
		g.Branches = append(g.Branches, Branch{Name: string(rune('a' + i)), Operators: []Operator{{Seconds: s}}})
	}
	return g
}

// planned plans a graph that can be planned.
func planned(t *testing.T, g Graph, m []CPU, s Settings) models.GraphPlan {
	t.Helper()
	p, err := Plan(g, m, s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outline is the branches of a plan with the numbers of their CPUs: stages are separated by |.
func outline(p models.GraphPlan) string {
	var stages []string
	for _, s := range p.Stages {
		var shares []string
		for _, one := range s.Shares {
			shares = append(shares, fmt.Sprintf("%s:%d", one.Branch, len(one.CPUs)))
		}
		stages = append(stages, strings.Join(shares, " "))
	}
	return strings.Join(stages, " | ")
}

func TestPlan(t *testing.T) {
	join := fork(10, 20, 30, 40)
	join.Branches[1].After, join.Branches[2].After, join.Branches[3].After = []string{"a"}, []string{"a"}, []string{"b", "c"}
	beside := fork(1, 100, 100)
	beside.Branches[2].After = []string{"a"}
	for _, c := range []struct {
		name     string
		graph    Graph
		cpus     int
		settings Settings
		mode     models.GraphMode
		want     string
		makespan float64
	}{
		{"the example", fork(50, 60), 8, Settings{Utilization: 0.7}, models.GraphReduced, "a:1 b:1", 60},
		{"the example below the second threshold", fork(50, 60), 8, Settings{Utilization: 0.7, SecondThreshold: 0.8, FirstThreshold: 0.9},
			models.GraphParallel, "a:1 b:1", 60},
		{"an idle machine", fork(50, 60), 8, Settings{}, models.GraphParallel, "a:4 b:4", 15},
		{"in proportion", fork(10, 30), 8, Settings{}, models.GraphParallel, "a:2 b:6", 5},
		{"just below the second threshold", fork(10, 30), 8, Settings{Utilization: 0.499}, models.GraphParallel, "a:1 b:3", 10},
		{"at the second threshold", fork(10, 20), 8, Settings{Utilization: 0.5}, models.GraphReduced, "a:1 b:2", 10},
		{"above the first threshold", fork(10, 30), 8, Settings{Utilization: 0.71}, models.GraphSerial, "b:4 | a:4", 10},
		{"a busy machine", fork(10, 30), 8, Settings{Utilization: 1}, models.GraphSerial, "b:4 | a:4", 10},
		{"own presets", fork(10, 30), 8, Settings{Utilization: 0.9, SerialCPUs: 2, ReducedCPUs: 3}, models.GraphSerial, "b:2 | a:2", 20},
		{"waves", fork(1, 5, 4, 3, 2), 2, Settings{}, models.GraphParallel, "b:1 c:1 | d:1 | e:1 | a:2", 7.5},
		{"a chain beside a long branch", beside, 2, Settings{}, models.GraphParallel, "a:1 b:1 | c:1", 101},
		{"not the largest remainder", fork(1.5, 1.5, 1.5, 5.5), 10, Settings{}, models.GraphParallel, "a:2 b:2 c:2 d:4", 1.375},
		{"levels", join, 4, Settings{}, models.GraphParallel, "a:4 | b:2 c:2 | d:4", 27.5},
		{"one CPU", fork(1, 2), 1, Settings{}, models.GraphParallel, "b:1 | a:1", 3},
		{"one busy CPU", fork(1, 2), 1, Settings{Utilization: 0.6}, models.GraphReduced, "b:1 | a:1", 3},
	} {
		p := planned(t, c.graph, Machine(c.cpus), c.settings)
		if got := outline(p); p.Mode != c.mode || got != c.want || math.Abs(p.Makespan-c.makespan) > 1e-9 {
			t.Errorf("%s: %s, %s in %g s, want %s, %s in %g s", c.name, p.Mode, got, p.Makespan, c.mode, c.want, c.makespan)
		}
		if p.Reason == "" || p.Serial < p.Makespan {
			t.Errorf("%s: %q, serial %g s", c.name, p.Reason, p.Serial)
		}
	}
	p := planned(t, fork(50, 60), Machine(8), Settings{Utilization: 0.7, SecondThreshold: 0.8, FirstThreshold: 0.9})
	if a, b := p.Stages[0].Shares[0].Exact, p.Stages[0].Shares[1].Exact; math.Abs(a-12./11) > 1e-9 || math.Abs(b-14.4/11) > 1e-9 {
		t.Errorf("shares of %g and %g CPUs, want 8·0.3·50/110 and 8·0.3·60/110", a, b)
	}
	if p.Serial != 110 || p.Equal != 60 {
		t.Errorf("serial %g s, equal %g s", p.Serial, p.Equal)
	}
}

// The presets of 8 CPUs are 6 and 4, and those of all machines of 3 CPUs or more differ.
func TestPresets(t *testing.T) {
	for n := 1; n <= MaxCPUs; n++ {
		s, err := Settings{}.complete(n)
		if err != nil || n >= 3 && (s.SerialCPUs >= s.ReducedCPUs || s.ReducedCPUs >= n) || s.SerialCPUs < 1 {
			t.Fatalf("%d CPUs: %d and %d: %v", n, s.ReducedCPUs, s.SerialCPUs, err)
		}
		if n == 8 && (s.ReducedCPUs != 6 || s.SerialCPUs != 4) {
			t.Errorf("8 CPUs: %d and %d", s.ReducedCPUs, s.SerialCPUs)
		}
	}
}

// The least loaded CPUs are taken, of one node where it has enough.
func TestLeastLoadedCPUs(t *testing.T) {
	machine := []CPU{{0, 0, 0.1}, {1, 1, 0.2}, {2, 0, 0.9}, {3, 1, 0.3}, {4, 0, 0.5}, {5, 1, 0.9}}
	for _, c := range []struct {
		times []float64
		n     float64
		want  string
	}{
		{[]float64{1}, 5. / 6, "[0]"},
		{[]float64{1}, 4. / 6, "[1 3]"},       // 0.2 + 0.3 on node 1, 0.1 + 0.5 on node 0
		{[]float64{1, 2}, 3. / 6, "[0][1 3]"}, // the larger share first
		{[]float64{1}, 2. / 6, "[0 1 3 4]"},   // no node has 4
		{[]float64{1}, 0, "[0 1 2 3 4 5]"},
	} {
		g := fork(c.times...)
		p := planned(t, g, machine, Settings{Utilization: c.n, SecondThreshold: 0.98, FirstThreshold: 0.99})
		got := ""
		for _, s := range p.Stages[0].Shares {
			got += fmt.Sprint(s.CPUs)
		}
		if got != c.want {
			t.Errorf("utilization %g: %s, want %s", c.n, got, c.want)
		}
	}
}

// Place keeps the sizes of shares and chooses their CPUs by the present load.
func TestPlace(t *testing.T) {
	shares := planned(t, fork(1, 2), Machine(3), Settings{}).Stages[0].Shares
	placed := Place(shares, []CPU{{0, 0, 0.5}, {1, 0, 0.9}, {2, 0, 0}})
	if a, b := placed[0].CPUs, placed[1].CPUs; !slices.Equal(a, []int{1}) || !slices.Equal(b, []int{0, 2}) || !slices.Equal(shares[0].CPUs, []int{2}) {
		t.Errorf("%v and %v, before %v", a, b, shares[0].CPUs)
	}
}

func TestTimes(t *testing.T) {
	one := func(os ...Operator) Graph { return Graph{Branches: []Branch{{Name: "a", Operators: os}}} }
	for _, c := range []struct {
		name              string
		graph             Graph
		seconds           float64
		relative, assumed bool
	}{
		{"measured", one(Operator{Seconds: 2, FLOPs: 9e9}), 2, false, false},
		{"by a rate", Graph{FLOPS: 1e9, Branches: one(Operator{FLOPs: 3e9}).Branches}, 3, false, false},
		{"by the rate of another", one(Operator{Seconds: 2, FLOPs: 4e9}, Operator{FLOPs: 6e9}), 5, false, false},
		{"relative", one(Operator{FLOPs: 3e9}, Operator{FLOPs: 1e9}), 4, true, false},
		{"mean of the others", one(Operator{Seconds: 2}, Operator{Seconds: 4}, Operator{}), 9, false, true},
		{"nothing known", one(Operator{}, Operator{}), 2, true, true},
	} {
		p := planned(t, c.graph, Machine(1), Settings{})
		if s := p.Stages[0].Shares[0]; s.Seconds != c.seconds || s.Assumed != c.assumed || p.Relative != c.relative {
			t.Errorf("%s: %g s, assumed %t, relative %t", c.name, s.Seconds, s.Assumed, p.Relative)
		}
	}
	whole := one(Operator{Name: "x", FLOPs: 1}, Operator{Name: "y"})
	if p := planned(t, whole.With(Times{"a": {Whole(2): 5, Whole(3): 7}}), Machine(1), Settings{}); p.Serial != 5 || p.Relative {
		t.Errorf("%g s of a branch that was measured as a whole", p.Serial)
	}
	g := one(Operator{Seconds: 2}, Operator{Name: "x"}).With(Times{"a": {"1": 5, "x": 7, "y": 9}, "b": {"1": 1}})
	if p := planned(t, g, Machine(1), Settings{}); p.Serial != 12 {
		t.Errorf("%g s with measured times", p.Serial)
	}
}

// After a run of which only some operators have ended, the others are assumed to take, in the
// ratio of their operations, as long as those on average.
func TestSomeTimes(t *testing.T) {
	g := Graph{Branches: []Branch{{Name: "read", Operators: []Operator{{}}}, {Name: "a", Operators: []Operator{{FLOPs: 3e9}}}, {Name: "b", Operators: []Operator{{FLOPs: 1e9}}}}}
	p := planned(t, g.With(Times{"read": {"1": 4}}), Machine(3), Settings{})
	for i, want := range []float64{4, 6, 2} {
		if s := p.Stages[0].Shares[i]; s.Seconds != want || s.Assumed != (i > 0) || p.Relative {
			t.Errorf("%s: %g s, assumed %t, relative %t", s.Branch, s.Seconds, s.Assumed, p.Relative)
		}
	}
}

func TestRefusals(t *testing.T) {
	after := func(g Graph, branch int, names ...string) Graph {
		g.Branches[branch].After = names
		return g
	}
	one := func(o Operator) Graph { return Graph{Branches: []Branch{{Name: "a", Operators: []Operator{o}}}} }
	for _, c := range []struct {
		graph       Graph
		cpus        int
		settings    Settings
		field, says string
	}{
		{Graph{}, 8, Settings{}, "graph", "must have from 1 to 50000 branches; has 0"},
		{Graph{Branches: make([]Branch, 50_001)}, 8, Settings{}, "graph", "has 50001"},
		{Graph{Branches: []Branch{{Name: "a"}}}, 8, Settings{}, "graph", "branch a has no operators"},
		{Graph{Branches: []Branch{{Name: "a", Operators: make([]Operator, 50_001)}}}, 8, Settings{}, "graph", "at most 50000 operators; has 50001"},
		{Graph{Branches: []Branch{{Name: " a", Operators: make([]Operator, 1)}}}, 8, Settings{}, "graph", "space"},
		{Graph{Branches: append(fork(1).Branches, fork(1).Branches...)}, 8, Settings{}, "graph", "branch a: another one has this name"},
		{one(Operator{Seconds: -1}), 8, Settings{}, "graph", "branch a, operator 1: seconds must be from 0 to 1e+24"},
		{one(Operator{FLOPs: math.NaN()}), 8, Settings{}, "graph", "flops must be"},
		{one(Operator{Retries: 101}), 8, Settings{}, "graph", "retries must be from 0 to 100"},
		{Graph{FLOPS: 1e-300, Branches: fork(1).Branches}, 8, Settings{}, "graph", "flops_per_second must be 0, or from 1"},
		{Graph{FLOPS: math.Inf(1), Branches: fork(1).Branches}, 8, Settings{}, "graph", "flops_per_second must be"},
		{after(fork(1, 2), 0, "z"), 8, Settings{}, "graph", "branch a waits for z, which does not exist"},
		{after(after(fork(1, 2), 0, "b"), 1, "a"), 8, Settings{}, "graph", "branch b waits for a, which waits for it"},
		{after(fork(1), 0, "a"), 8, Settings{}, "graph", "waits for a"},
		{Graph{Branches: []Branch{{Name: "a", Operators: []Operator{{Seconds: 1}, {FLOPs: 1}}}}}, 8, Settings{}, "graph", "flops_per_second is required"},
		{after(fork(1, 2), 1, slices.Repeat([]string{"a"}, 200_001)...), 8, Settings{}, "graph", "must wait for others at most 200000 times"},
		{fork(1), 0, Settings{}, "cpus", "from 1 to 1024"},
		{fork(1), 1025, Settings{}, "cpus", "from 1 to 1024"},
		{fork(1), 8, Settings{Utilization: 1.1}, "utilization", "from 0% to 100%"},
		{fork(1), 8, Settings{Utilization: math.NaN()}, "utilization", "from 0% to 100%"},
		{fork(1), 8, Settings{SecondThreshold: 0.001}, "second_threshold", "from 1% to 100%"},
		{fork(1), 8, Settings{FirstThreshold: 2}, "first_threshold", "from 1% to 100%"},
		{fork(1), 8, Settings{SecondThreshold: 0.7}, "second_threshold", "less than the first threshold, 70%"},
		{fork(1), 8, Settings{ReducedCPUs: 8}, "reduced_cpus", "from 1 to 7"},
		{fork(1), 8, Settings{SerialCPUs: 6}, "serial_cpus", "from 1 to 5"},
		{fork(1), 8, Settings{SerialCPUs: -1}, "serial_cpus", "from 1 to 5"},
	} {
		_, err := Plan(c.graph, Machine(c.cpus), c.settings)
		e, ok := err.(*models.Error)
		if !ok || e.Fields[0].Name != c.field || !strings.Contains(e.Fields[0].Reason.String(), c.says) {
			t.Errorf("got %v, want %s: %s", err, c.field, c.says)
		}
	}
}

func TestRevise(t *testing.T) {
	g := Graph{Branches: []Branch{
		{Name: "a", Operators: []Operator{{Seconds: 8}, {Seconds: 8}}},
		{Name: "b", Operators: []Operator{{Seconds: 8}, {Seconds: 24}}},
		{Name: "c", After: []string{"a"}, Operators: []Operator{{Seconds: 8}}},
	}}
	p := planned(t, g, Machine(8), Settings{Utilization: 0.1})
	if got := outline(p); got != "b:4 a:3 | c:3" { // a has less time, and c after it
		t.Fatalf("planned %s", got)
	}
	for _, c := range []struct {
		name  string
		ended map[string]int
		n     float64
		want  string
	}{
		{"the same mode", map[string]int{"a": 1, "b": 1}, 0.4, ""},
		{"shares shrink", map[string]int{"a": 1, "b": 1}, 0.5, "a:1 b:2 | c:3"},
		{"one after another", map[string]int{"a": 1, "b": 1}, 0.9, "b:4 | a:4 | c:4"},
		{"of what is over nothing remains", map[string]int{"a": 2, "b": 1}, 0.5, "b:2 c:1"},
		{"nothing remains", map[string]int{"a": 2, "b": 2, "c": 1}, 0.9, ""},
	} {
		revised, changed, err := Revise(p, g, c.ended, Machine(8), Settings{Utilization: c.n})
		if err != nil || changed != (c.want != "") || changed && outline(revised) != c.want {
			t.Errorf("%s: %t, %s: %v, want %s", c.name, changed, outline(revised), err, c.want)
		}
	}
	if len(g.Branches[0].Operators) != 2 || !slices.Equal(g.Branches[2].After, []string{"a"}) {
		t.Errorf("the graph was changed: %v", g)
	}
	if _, _, err := Revise(p, g, nil, Machine(8), Settings{Utilization: 2}); err == nil {
		t.Error("no error")
	}
}
