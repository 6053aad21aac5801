package fleet

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
)

// Whole is one GPU in milli.
const Whole = 1000

// Limits of what a fleet takes, so that no sum of it can overflow.
const (
	MaxNodes  = 1 << 20
	MaxGPUs   = 1 << 10 // on one node
	MaxAmount = 1 << 40 // of CPU milli, and of memory MiB
)

// Node is an empty machine.
type Node struct {
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int
	Model     string
}

// Task asks for CPU and memory and for GPUMilli of each of GPUs different
// GPUs of one node.
type Task struct {
	CPUMilli  int64
	MemoryMiB int64
	GPUs      int
	GPUMilli  int64
	// Models are those allowed, in the form of [JoinModels]; empty allows all.
	Models string
}

// TotalMilli is what the task takes of all its GPUs.
func (t Task) TotalMilli() int64 { return int64(t.GPUs) * t.GPUMilli }

// JoinModels gives a set of models the one form that equal sets share.
func JoinModels(models []string) string {
	models = slices.Sorted(slices.Values(models))
	return strings.Join(slices.Compact(models), "|")
}

// Grant is where a task runs: a node by its number in the order given to
// [New], and its GPUs by their numbers on it.
type Grant struct {
	Node int
	GPUs []int
	Task Task
}

// machine is a node with what is free of it.
type machine struct {
	cpu, memory int64
	model       int     // number in Fleet.models
	rank        int     // among the nodes of its model
	left        []int32 // milli free on each GPU
	total       int64   // their sum
	running     []int32 // tasks by size class, see need.class
}

// need is a kind of task as the fleet sees it.
type need struct {
	Task
	milli   int32
	allowed []bool // by model number; nil allows all
	class   int    // 0 a fraction of one GPU, else the number of GPUs
}

// fits tells whether a machine could take a task now.
func (m *machine) fits(n *need) bool {
	if m.cpu < n.CPUMilli || m.memory < n.MemoryMiB || m.total < n.TotalMilli() || !n.allows(m.model) {
		return false
	}
	missing := n.GPUs
	for i := 0; missing > 0 && i < len(m.left); i++ {
		if m.left[i] >= n.milli {
			missing--
		}
	}
	return missing <= 0
}

func (n *need) allows(model int) bool { return n.allowed == nil || n.allowed[model] }

// fraction tells whether the task wants a part of one GPU.
func (n *need) fraction() bool { return n.GPUs == 1 && n.milli < Whole }

// Fleet is machines and what runs on them. It is not safe for concurrent use.
type Fleet struct {
	machines []machine
	models   []string
	nodes    [][]int // the nodes of each model, in order
	free     []int64 // milli-GPU of each model
	policy   policy
	rankings map[Task]*ranking
	journal  journal
}

// New is an empty fleet. The policy is one of [Policies]; what it expects to
// come, it learns from workload, where a task that stands twice is twice as
// likely. A policy that draws lots draws them from random.
func New(nodes []Node, policyName string, workload []Task, random *rand.Rand) (*Fleet, error) {
	i := slices.IndexFunc(makers, func(m maker) bool { return m.name == policyName })
	if i < 0 {
		return nil, fmt.Errorf("there is no policy %q; there are %s", policyName, strings.Join(Policies(), ", "))
	}
	if len(nodes) > MaxNodes {
		return nil, fmt.Errorf("%d nodes; at most %d", len(nodes), MaxNodes)
	}
	f := &Fleet{rankings: map[Task]*ranking{}, machines: make([]machine, len(nodes))}
	for j, n := range nodes {
		if err := n.Check(); err != nil {
			return nil, fmt.Errorf("node %d: %w", j, err)
		}
		f.machines[j] = f.machine(n)
		f.enrol(j)
	}
	for j, t := range workload {
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("task %d: %w", j, err)
		}
	}
	f.journal = newJournal(len(nodes))
	f.policy = makers[i].make(f, workload, random)
	return f, nil
}

func (f *Fleet) machine(n Node) machine {
	model := slices.Index(f.models, n.Model)
	if model < 0 {
		model = len(f.models)
		f.models = append(f.models, n.Model)
		f.nodes = append(f.nodes, nil)
		f.free = append(f.free, 0)
	}
	m := machine{cpu: n.CPUMilli, memory: n.MemoryMiB, model: model,
		left: make([]int32, n.GPUs), total: int64(n.GPUs) * Whole, running: make([]int32, n.GPUs+1)}
	for i := range m.left {
		m.left[i] = Whole
	}
	return m
}

// enrol gives a machine its place among those of its model.
func (f *Fleet) enrol(node int) {
	m := &f.machines[node]
	f.free[m.model] += m.total
	m.rank = len(f.nodes[m.model])
	f.nodes[m.model] = append(f.nodes[m.model], node)
}

func (f *Fleet) need(t Task) need {
	n := need{Task: t, milli: int32(t.GPUMilli)}
	if t.GPUMilli == Whole {
		n.class = t.GPUs
	}
	if t.Models != "" {
		n.allowed = make([]bool, len(f.models))
		for _, name := range strings.Split(t.Models, "|") {
			if i := slices.Index(f.models, name); i >= 0 {
				n.allowed[i] = true
			}
		}
	}
	return n
}

// Place puts a task on the node that the policy likes best, or tells that it
// fits nowhere.
func (f *Fleet) Place(t Task) (Grant, bool) {
	if t.Check() != nil {
		return Grant{}, false
	}
	r := f.rankings[t]
	if r == nil {
		r = f.newRanking(f.need(t))
		f.rankings[t] = r
	}
	r.update(f)
	best, ok := r.best(f)
	if !ok {
		return Grant{}, false
	}
	g := Grant{Node: best, Task: t}
	if t.GPUs > 0 {
		g.GPUs = f.policy.pick(&f.machines[best], &r.need)
	}
	f.shift(g, 1)
	return g, true
}

// shift takes a grant's resources (sign 1) or gives them back (sign -1).
func (f *Fleet) shift(g Grant, sign int64) {
	m, n := &f.machines[g.Node], f.rankings[g.Task].need
	m.cpu -= sign * g.Task.CPUMilli
	m.memory -= sign * g.Task.MemoryMiB
	f.free[m.model] -= sign * g.Task.TotalMilli()
	m.total -= sign * g.Task.TotalMilli()
	for _, gpu := range g.GPUs {
		m.left[gpu] -= int32(sign) * n.milli
	}
	if g.Task.GPUs > 0 {
		m.running[n.class] += int32(sign)
	}
	f.journal.note(g.Node)
}

// Check tells what is wrong with a node's numbers.
func (n Node) Check() error {
	switch {
	case n.CPUMilli < 0 || n.CPUMilli > MaxAmount:
		return fmt.Errorf("CPU of %d milli is not in 0..%d", n.CPUMilli, int64(MaxAmount))
	case n.MemoryMiB < 0 || n.MemoryMiB > MaxAmount:
		return fmt.Errorf("memory of %d MiB is not in 0..%d", n.MemoryMiB, int64(MaxAmount))
	case n.GPUs < 0 || n.GPUs > MaxGPUs:
		return fmt.Errorf("%d GPUs are not in 0..%d", n.GPUs, MaxGPUs)
	}
	return nil
}

// Check tells what is wrong with a task's numbers.
func (t Task) Check() error {
	switch {
	case t.CPUMilli < 0 || t.CPUMilli > MaxAmount:
		return fmt.Errorf("CPU of %d milli is not in 0..%d", t.CPUMilli, int64(MaxAmount))
	case t.MemoryMiB < 0 || t.MemoryMiB > MaxAmount:
		return fmt.Errorf("memory of %d MiB is not in 0..%d", t.MemoryMiB, int64(MaxAmount))
	case t.GPUs < 0 || t.GPUs > MaxGPUs:
		return fmt.Errorf("%d GPUs are not in 0..%d", t.GPUs, MaxGPUs)
	case t.GPUMilli < 0 || t.GPUMilli > Whole:
		return fmt.Errorf("%d milli of a GPU are not in 0..%d", t.GPUMilli, Whole)
	case t.GPUs == 0 != (t.GPUMilli == 0):
		return fmt.Errorf("%d GPUs with %d milli each: both or neither must be 0", t.GPUs, t.GPUMilli)
	}
	return nil
}
