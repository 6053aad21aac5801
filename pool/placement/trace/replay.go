package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"time"

	"weir/pool/placement"
	"weir/pool/placement/baselines"
)

// Marks are the percentages of the GPU capacity, as asked for by the tasks
// that arrived, at which the allocation is reported.
var Marks = []int{90, 95, 100, 110, 120, 130}

// milliPerGPU is one GPU in the unit of traces.
const milliPerGPU = 1000

// MaxArrivals bounds a replay.
const MaxArrivals = 50_000_000

// Trace is machines and the tasks that ran on them.
type Trace struct {
	Nodes []placement.Node
	Pods  []Pod
}

// GPUs is how many GPUs the machines have.
func (t Trace) GPUs() (n int) {
	for _, node := range t.Nodes {
		n += len(node.Devices)
	}
	return n
}

// Times is the trace with each machine n times; tasks are as many as before,
// because a replay draws as many as it needs.
func (t Trace) Times(n int) Trace {
	return Trace{Nodes: slices.Repeat(t.Nodes, n), Pods: t.Pods}
}

// renumbered gives the machines and devices the ids 1, 2, … in their order.
func renumbered(nodes []placement.Node) []placement.Node {
	device := int64(0)
	for i := range nodes {
		n := &nodes[i]
		n.ID, n.Devices = int64(i+1), slices.Clone(n.Devices)
		for j := range n.Devices {
			device++
			n.Devices[j].ID = device
		}
	}
	return nodes
}

// Outcome is one replay.
type Outcome struct {
	// Allocated is, for each of Marks that was reached, the mean percentage
	// of the GPU capacity that was allocated around then.
	Allocated map[int]float64
	Decisions int
	Placed    int
	Elapsed   time.Duration // spent on decisions
}

// Replay lets the trace's tasks arrive in an order drawn from seed, until they
// have asked for inflate times the GPUs there are, and places each by the
// policy. Beside the clock's reading, the outcome depends on nothing else.
func (t Trace) Replay(ctx context.Context, policy string, seed int64, inflate float64, clock func() time.Time) (Outcome, error) {
	// The published simulator's generator, and the draws in its order, so that
	// a seed means the very arrivals of the published runs.
	random := rand.New(rand.NewSource(seed))
	random.Int()
	arrivals, err := t.arrivals(random, inflate)
	if err != nil {
		return Outcome{}, err
	}
	nodes := make([]placement.Node, len(t.Nodes))
	for i, j := range random.Perm(len(nodes)) {
		nodes[j] = t.Nodes[i]
	}
	workload := make([]placement.Demand, len(t.Pods))
	for i, p := range t.Pods {
		workload[i] = p.Demand
	}
	by, err := baselines.Policy(policy, workload, random)
	if err != nil {
		return Outcome{}, err
	}
	o, curve, err := replay(ctx, placement.New(renumbered(nodes), by), arrivals, float64(t.GPUs()*placement.Whole), clock)
	o.Allocated = curve.atMarks(int(math.Round(100 * inflate)))
	return o, err
}

// coresOf is the GPU cores of all GPUs of a demand.
func coresOf(d placement.Demand) int64 { return int64(d.GPUs) * d.Cores }

// arrivals are the trace's tasks in random order, and after them copies drawn
// at random until enough is asked for. Of a copy only one GPU counts towards
// that, as in the published runs.
func (t Trace) arrivals(random *rand.Rand, inflate float64) ([]placement.Demand, error) {
	sorted := slices.Clone(t.Pods)
	slices.SortStableFunc(sorted, func(a, b Pod) int { return cmp.Compare(a.Name, b.Name) })
	tasks := make([]placement.Demand, len(sorted))
	asked, perCopy := int64(0), int64(0)
	for i, p := range sorted {
		tasks[i] = p.Demand
		asked += coresOf(p.Demand)
		perCopy += p.Cores
	}
	wanted := inflate * float64(t.GPUs()*placement.Whole)
	switch missing := (wanted - float64(asked)) / float64(perCopy) * float64(len(tasks)); {
	case t.GPUs() == 0:
		return nil, errors.New("the machines have no GPU")
	case perCopy == 0:
		return nil, errors.New("no task asks for a GPU")
	case missing > MaxArrivals:
		return nil, fmt.Errorf("it would take about %.0f tasks to fill the machines; at most %d", missing, MaxArrivals)
	}
	random.Shuffle(len(tasks), func(i, j int) { tasks[i], tasks[j] = tasks[j], tasks[i] })
	for {
		drawn := sorted[random.Intn(len(sorted))].Demand
		if float64(asked+drawn.Cores) > wanted {
			return tasks, nil
		}
		tasks = append(tasks, drawn)
		asked += coresOf(drawn)
	}
}

func replay(ctx context.Context, e *placement.Engine, arrivals []placement.Demand, capacity float64, clock func() time.Time) (Outcome,
	curve, error) {
	var arrived, allocated int64
	c := newCurve()
	o := Outcome{Decisions: len(arrivals)}
	start := clock()
	for i, task := range arrivals {
		if i%4096 == 0 && ctx.Err() != nil {
			return Outcome{}, c, ctx.Err()
		}
		arrived += coresOf(task)
		if choice, placed := e.Find(task); placed {
			e.Allocate(choice, task, int64(i))
			allocated += coresOf(task)
			o.Placed++
		}
		c.add(100*float64(arrived)/capacity, 100*float64(allocated)/capacity)
	}
	o.Elapsed = clock().Sub(start)
	return o, c, nil
}

// curve is the mean percentage allocated at each whole percentage arrived.
type curve struct {
	sum   map[int]float64
	count map[int]int
}

func newCurve() curve { return curve{map[int]float64{}, map[int]int{}} }

func (c curve) add(arrived, allocated float64) {
	at := int(math.Round(arrived))
	c.sum[at] += allocated
	c.count[at]++
}

// atMarks is the curve at the marks up to which tasks were to arrive. Where no
// task brings it to a mark, because a large one skips it or the next would have
// gone beyond the end, the last point before holds.
func (c curve) atMarks(end int) map[int]float64 {
	marks := map[int]float64{}
	last, at := 0.0, 0
	for _, mark := range Marks {
		for ; at <= mark; at++ {
			if c.count[at] > 0 {
				last = c.sum[at] / float64(c.count[at])
			}
		}
		if mark <= end {
			marks[mark] = last
		}
	}
	return marks
}
