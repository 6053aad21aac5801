package fleet

import (
	"math"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// Scan is what Place would choose, found by looking at every node anew and by
// the methods' definitions, slow and plain.
func (f *Fleet) Scan(name string, workload []Task, t Task) (node int, ok bool) {
	n := f.need(t)
	var premiums []float64
	if f.policy.premiums != nil {
		premiums = f.policy.premiums(&n)
	}
	kinds := f.typical(workload)
	best := math.Inf(-1)
	for i := range f.machines {
		m := &f.machines[i]
		if !fitsPlainly(m, f.models[m.model], t) {
			continue
		}
		score := f.scorePlainly(name, kinds, m, &n)
		if premiums != nil {
			score += premiums[m.model]
		}
		if score > best {
			node, best, ok = i, score, true
		}
	}
	return node, ok
}

func fitsPlainly(m *machine, model string, t Task) bool {
	enough := 0
	for _, left := range m.left {
		if int64(left) >= t.GPUMilli {
			enough++
		}
	}
	allowed := t.Models == "" || slices.Contains(strings.Split(t.Models, "|"), model)
	return allowed && m.cpu >= t.CPUMilli && m.memory >= t.MemoryMiB && enough >= t.GPUs
}

func (f *Fleet) scorePlainly(name string, kinds []likelihood, m *machine, n *need) float64 {
	if name != FGD {
		return float64(f.policy.score(m, n))
	}
	before := fragmentationPlainly(kinds, m)
	best := math.Inf(-1)
	for _, gpus := range choicesPlainly(m, n) {
		after := *m
		after.cpu -= n.CPUMilli
		after.left = slices.Clone(m.left)
		for _, gpu := range gpus {
			after.left[gpu] -= n.milli
		}
		delta := before - fragmentationPlainly(kinds, &after)
		best = max(best, math.Trunc(100/(1+math.Exp(-delta/1000))))
	}
	return best
}

// choicesPlainly are the sets of GPUs that FGD considers.
func choicesPlainly(m *machine, n *need) (choices [][]int) {
	if !n.fraction() {
		return [][]int{tightest(m, n)}
	}
	for i, left := range m.left {
		if left >= n.milli {
			choices = append(choices, []int{i})
		}
	}
	return choices
}

// fragmentationPlainly is F_n(M) of Weng et al., in milli-GPU.
func fragmentationPlainly(kinds []likelihood, m *machine) float64 {
	tasks, milli := int64(0), int64(0)
	for _, k := range kinds {
		tasks += k.count
		all, small, enough := int64(0), int64(0), 0
		for _, left := range m.left {
			all += int64(left)
			if left < k.milli {
				small += int64(left)
			} else {
				enough++
			}
		}
		if k.GPUs == 0 || !k.allows(m.model) || m.cpu < k.CPUMilli || enough < k.GPUs {
			milli += k.count * all
		} else {
			milli += k.count * small
		}
	}
	return float64(milli) / float64(tasks)
}

var someModels = []string{"A", "B", "C"}

func someNodes(r *rand.Rand) []Node {
	nodes := make([]Node, 1+r.Intn(8))
	for i := range nodes {
		nodes[i] = Node{CPUMilli: 1000 * r.Int63n(40), MemoryMiB: 100 * r.Int63n(40), GPUs: r.Intn(5), Model: someModels[r.Intn(3)]}
	}
	return nodes
}

func someTask(r *rand.Rand) Task {
	t := Task{CPUMilli: 1000 * r.Int63n(8), MemoryMiB: 100 * r.Int63n(8), GPUs: r.Intn(4)}
	switch {
	case t.GPUs > 0 && r.Intn(2) == 0:
		t.GPUMilli = 100 * (1 + r.Int63n(10))
	case t.GPUs > 0:
		t.GPUMilli = Whole
	}
	if r.Intn(3) == 0 {
		t.Models = JoinModels([]string{someModels[r.Intn(3)], someModels[r.Intn(3)]})
	}
	return t
}

func someWorkload(r *rand.Rand) []Task {
	var kinds, tasks []Task
	for range 6 {
		kinds = append(kinds, someTask(r))
	}
	for range 40 {
		tasks = append(tasks, kinds[min(r.Intn(6), r.Intn(6))])
	}
	return tasks
}

// Whatever is placed and released, in whatever order, the incremental choice
// is that of a full scan, and what is free stays true.
func TestPlaceIsTheFullScan(t *testing.T) {
	for _, name := range Policies() {
		t.Run(name, func(t *testing.T) {
			for seed := range int64(150) {
				r := rand.New(rand.NewSource(seed))
				workload := someWorkload(r)
				f, err := New(someNodes(r), name, workload, r)
				if err != nil {
					t.Fatal(err)
				}
				compareWithScan(t, f, name, workload, r)
			}
		})
	}
}

func compareWithScan(t *testing.T, f *Fleet, name string, workload []Task, r *rand.Rand) {
	t.Helper()
	var inUse []Grant
	for range 80 {
		if len(inUse) > 0 && r.Intn(3) == 0 {
			i := r.Intn(len(inUse))
			f.shift(inUse[i], -1)
			inUse = slices.Delete(inUse, i, i+1)
			continue
		}
		task := workload[r.Intn(len(workload))]
		node, fits := f.Scan(name, workload, task)
		g, ok := f.Place(task)
		if ok != fits || ok && name != Random && g.Node != node {
			t.Fatalf("%+v: placed on %d (%v), the scan says %d (%v)", task, g.Node, ok, node, fits)
		}
		if ok {
			inUse = append(inUse, g)
		}
		checkBooks(t, f, inUse)
	}
}

// checkBooks fails if a device is overcommitted, a grant is not what was asked
// for, or the fleet's sums are not those of the grants.
func checkBooks(t *testing.T, f *Fleet, inUse []Grant) {
	t.Helper()
	used := make([]machine, len(f.machines))
	for i := range used {
		used[i].left = make([]int32, len(f.machines[i].left))
	}
	for _, g := range inUse {
		if len(g.GPUs) != g.Task.GPUs || len(slices.Compact(slices.Sorted(slices.Values(g.GPUs)))) != len(g.GPUs) {
			t.Fatalf("%+v was given GPUs %v", g.Task, g.GPUs)
		}
		for _, gpu := range g.GPUs {
			used[g.Node].left[gpu] += int32(g.Task.GPUMilli)
		}
	}
	free := make([]int64, len(f.models))
	for i := range used {
		m, total := &f.machines[i], int64(0)
		for gpu, milli := range used[i].left {
			if milli > Whole || m.left[gpu] != Whole-milli {
				t.Fatalf("node %d GPU %d: %d milli in use, %d free", i, gpu, milli, m.left[gpu])
			}
			total += int64(m.left[gpu])
		}
		if m.cpu < 0 || m.memory < 0 || m.total != total {
			t.Fatalf("node %d: %+v", i, *m)
		}
		free[m.model] += total
	}
	if !slices.Equal(free, f.free) {
		t.Fatalf("free by model %v, not %v", f.free, free)
	}
}

// What Weir's policy says a placement is worth is what its definition says.
func TestProspect(t *testing.T) {
	for seed := range int64(300) {
		r := rand.New(rand.NewSource(seed))
		workload := someWorkload(r)
		f, err := New(someNodes(r), Weir, workload, r)
		if err != nil {
			t.Fatal(err)
		}
		prospects := f.prospects(workload)
		for i := range f.machines {
			m := &f.machines[i]
			for j := range m.left {
				m.left[j] = 100 * r.Int31n(11)
			}
			got, want := prospects[m.model].worth(m.cpu, m.left), worthPlainly(f.models[m.model], workload, m)
			if math.Abs(got-want) > 1e-6 {
				t.Fatalf("seed %d: worth %v, not %v", seed, got, want)
			}
		}
	}
}

func worthPlainly(model string, workload []Task, m *machine) (worth float64) {
	for _, t := range workload {
		t.MemoryMiB = 0
		if t.GPUs == 0 || !fitsPlainly(m, model, t) {
			continue
		}
		usable := 0.0
		for _, left := range m.left {
			if int64(left) >= t.GPUMilli {
				usable += float64(left)
			}
		}
		if t.CPUMilli > 0 {
			usable = min(usable, feed*float64(m.cpu)*float64(t.TotalMilli())/float64(t.CPUMilli))
		}
		worth += usable / float64(len(workload))
	}
	return worth
}
