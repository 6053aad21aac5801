package fleet

import (
	"math"
	"math/rand"
	"slices"
	"testing"
)

func newFleet(t *testing.T, policy string, workload []Task, nodes ...Node) *Fleet {
	t.Helper()
	f, err := New(nodes, policy, workload, rand.New(rand.NewSource(1)))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func place(t *testing.T, f *Fleet, task Task) Grant {
	t.Helper()
	g, ok := f.Place(task)
	if !ok {
		t.Fatalf("%+v fits nowhere", task)
	}
	return g
}

var (
	small = Node{CPUMilli: 16_000, MemoryMiB: 1000, GPUs: 2, Model: "T4"}
	large = Node{CPUMilli: 96_000, MemoryMiB: 1000, GPUs: 8, Model: "G2"}
	half  = Task{CPUMilli: 4000, GPUs: 1, GPUMilli: 500}
	one   = Task{CPUMilli: 4000, GPUs: 1, GPUMilli: Whole}
	four  = Task{CPUMilli: 4000, GPUs: 4, GPUMilli: Whole}
)

func TestScores(t *testing.T) {
	for name, c := range map[string]struct {
		score  func(*machine, *need) int32
		before []Task // on the node already
		node   Node
		task   Task
		want   int32
	}{
		"best fit, idle":                  {bestFit, nil, large, one, 20},          // 100·(1 − ½·92/128 − ½·7/8)
		"dot product, idle":               {dotProduct, nil, large, one, 92},       // 100·(1 − ½·(96·4/128² + 8·1/8²))
		"packing, idle node":              {packing, nil, large, one, 25},          // 33 − 8
		"packing, idle GPU":               {packing, []Task{one}, large, four, 46}, // 50 − 4
		"packing, used GPU":               {packing, []Task{half}, large, half, 95},
		"clustering, idle":                {clustering, nil, large, one, 25},
		"clustering, its class":           {clustering, []Task{one}, large, one, 78},
		"clustering, its class too":       {clustering, []Task{one, four}, large, one, 65},
		"clustering, another class":       {clustering, []Task{four}, large, half, 12},
		"clustering, no GPU":              {clustering, []Task{four}, large, Task{CPUMilli: 1}, 0},
		"packing, no GPU":                 {packing, []Task{four}, large, Task{CPUMilli: 1}, 0},
		"clustering, CPU tasks count not": {clustering, []Task{{CPUMilli: 1}}, large, one, 25},
	} {
		f := newFleet(t, Packing, nil, c.node)
		for _, task := range c.before {
			place(t, f, task)
		}
		n := f.need(c.task)
		if got := c.score(&f.machines[0], &n); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

func TestTightest(t *testing.T) {
	m := &machine{left: []int32{1000, 300, 500, 300, 200}}
	for _, c := range []struct {
		task Task
		want []int
	}{
		{Task{GPUs: 1, GPUMilli: 250}, []int{1}},
		{Task{GPUs: 3, GPUMilli: 300}, []int{1, 3, 2}},
		{Task{GPUs: 1, GPUMilli: 1000}, []int{0}},
	} {
		n := need{Task: c.task, milli: int32(c.task.GPUMilli)}
		if got := tightest(m, &n); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, not %v", c.task, got, c.want)
		}
	}
}

// A random placement takes every fitting node about as often as any other.
func TestRandomIsFair(t *testing.T) {
	f := newFleet(t, Random, nil, small, large, small, Node{Model: "none"}, small)
	counts := make([]int, 5)
	for range 4000 {
		g := place(t, f, half)
		counts[g.Node]++
		f.shift(g, -1)
	}
	for node, n := range counts {
		if fits := node != 3; fits && math.Abs(float64(n)-1000) > 120 || !fits && n > 0 {
			t.Errorf("node %d: %d times of 4000", node, n)
		}
	}
}

// Tasks that allow every model leave the last GPUs of a model to those that
// need it.
func TestReserve(t *testing.T) {
	picky := one
	picky.Models = "T4"
	workload := []Task{one, one, picky}
	f := newFleet(t, Weir, workload, small, small, large, large)
	for range 12 {
		if g := place(t, f, one); g.Node < 2 {
			t.Errorf("a task that any model suits went to a T4, of which there are few")
		}
	}
	for range 4 {
		place(t, f, picky)
	}
}

func TestHostileInput(t *testing.T) {
	huge := int64(math.MaxInt64)
	for _, n := range []Node{{CPUMilli: -1}, {CPUMilli: huge}, {MemoryMiB: -1}, {MemoryMiB: huge}, {GPUs: -1}, {GPUs: MaxGPUs + 1}} {
		if _, err := New([]Node{n}, BestFit, nil, nil); err == nil {
			t.Errorf("a node %+v", n)
		}
	}
	for _, task := range []Task{{CPUMilli: -1}, {MemoryMiB: huge}, {GPUs: 1}, {GPUMilli: 1}, {GPUs: -1, GPUMilli: 1},
		{GPUs: 1, GPUMilli: Whole + 1}, {GPUs: MaxGPUs + 1, GPUMilli: 1}} {
		if _, err := New(nil, Weir, []Task{task}, nil); err == nil {
			t.Errorf("a task %+v", task)
		}
		if _, ok := newFleet(t, Weir, nil, small).Place(task); ok {
			t.Errorf("placed %+v", task)
		}
	}
	if _, err := New(nil, "nosuch", nil, nil); err == nil {
		t.Error("a policy that does not exist")
	}
	for _, policy := range Policies() {
		if _, ok := newFleet(t, policy, nil).Place(one); ok {
			t.Errorf("%s placed a task on no node", policy)
		}
		place(t, newFleet(t, policy, nil, small), half) // nothing is expected to come
		f := newFleet(t, policy, nil, Node{CPUMilli: 5000, Model: "none"})
		place(t, f, Task{CPUMilli: 1}) // a node without GPUs
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, policy := range Policies() {
		for _, nodes := range []int{1000, 10_000} {
			b.Run(policy+"/"+map[int]string{1000: "1000", 10_000: "10000"}[nodes], func(b *testing.B) { benchmark(b, policy, nodes) })
		}
	}
}

// benchmark places tasks on a fleet that is kept about full.
func benchmark(b *testing.B, policy string, count int) {
	r := rand.New(rand.NewSource(1))
	nodes := make([]Node, count)
	for i := range nodes {
		nodes[i] = []Node{small, large}[r.Intn(2)]
	}
	workload := make([]Task, 1000)
	for i := range workload {
		workload[i] = Task{CPUMilli: 1000 * (1 + r.Int63n(10)), GPUs: 1, GPUMilli: 100 * (1 + r.Int63n(10))}
	}
	f, err := New(nodes, policy, workload, r)
	if err != nil {
		b.Fatal(err)
	}
	var inUse []Grant
	next := func() {
		if g, ok := f.Place(workload[r.Intn(len(workload))]); ok {
			inUse = append(inUse, g)
			return
		}
		for range 10 {
			i := r.Intn(len(inUse))
			f.shift(inUse[i], -1)
			inUse[i] = inUse[len(inUse)-1]
			inUse = inUse[:len(inUse)-1]
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
