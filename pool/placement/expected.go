package placement

import (
	"slices"
	"sync"

	"weir/pool/placement/fleet"
)

// milli is one GPU core in thousandths of a GPU, in which fleet counts.
const milli = fleet.Whole / Whole

// expected is the demands to come, taken to be like those that came.
type expected struct {
	tasks []fleet.Task // their Models are the words of [MatchesModel]

	mu       sync.Mutex
	outlooks map[kind]*fleet.Outlook // remembered, because they cost more than a decision
}

// kind is the devices that serve the same demands.
type kind struct {
	model    string
	instance bool
}

// newExpected learns the typical demands of a history. It is nil where there
// is nothing to learn.
func newExpected(history []Demand) *expected {
	e := &expected{outlooks: map[kind]*fleet.Outlook{}}
	for i := range history {
		if d := &history[i]; d.GPUs > 0 && d.GPUs <= fleet.MaxGPUs && d.valid() {
			e.tasks = append(e.tasks, fleet.Task{GPUs: d.GPUs, GPUMilli: d.Cores * milli, Models: d.Model})
		}
	}
	if len(e.tasks) == 0 {
		return nil
	}
	e.tasks = fleet.Typical(e.tasks)
	return e
}

// outlook is what is expected of a kind of device.
func (e *expected) outlook(k kind) *fleet.Outlook {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o := e.outlooks[k]; o != nil {
		return o
	}
	var tasks []fleet.Task
	for _, t := range e.tasks {
		if (t.GPUs == 1 || !k.instance) && MatchesModel(k.model, t.Models) {
			t.Models = ""
			tasks = append(tasks, t)
		}
	}
	e.outlooks[k] = fleet.NewOutlook(tasks)
	return e.outlooks[k]
}

// foresight is what one decision asks of the demands to come. It looks at
// free cores and not at whose the rest of a device is: shares come and go, and
// where a device that one project has opened counted as lost to the others,
// streams like those of the experiment in the tests had more demands refused.
type foresight struct {
	expected  *expected // nil: nothing is asked
	share     int32     // milli that the demand takes of each device
	prospects []prospect
	spots     []spot // the devices of the node being visited, in its order
	left      []int32
	counted   []loss // of single devices of the node
}

// prospect is what is expected of one kind of device.
type prospect struct {
	kind
	outlook *fleet.Outlook
	before  int64 // the worth of the visited node's devices of this kind
}

// spot is a device as the demands to come see it. Devices whose spots are
// equal are worth the same.
type spot struct {
	prospect     int
	free         int32 // milli
	exclusiveUse bool
	taken        bool // by the devices being counted
}

// loss is what goes when a device that looks like the spot is taken.
type loss struct {
	spot
	lost int64
}

// enter looks at a node whose devices are to be counted.
func (f *foresight) enter(n *Node) {
	f.spots, f.counted = f.spots[:0], f.counted[:0]
	for i := range n.Devices {
		dev := &n.Devices[i]
		free, _ := Free(*dev)
		f.spots = append(f.spots, spot{prospect: f.prospect(dev), free: int32(free * milli), exclusiveUse: dev.exclusiveUse()})
	}
	for i := range f.prospects {
		f.prospects[i].before = f.worth(i)
	}
}

func (f *foresight) prospect(dev *Device) int {
	k := kind{dev.Model, dev.Parent != 0}
	for i := range f.prospects {
		if f.prospects[i].kind == k {
			return i
		}
	}
	f.prospects = append(f.prospects, prospect{kind: k, outlook: f.expected.outlook(k)})
	return len(f.prospects) - 1
}

// worth is what the demands to come could use of the node's devices of one
// kind, without what is taken, in milli-GPU times demands.
func (f *foresight) worth(prospect int) int64 {
	f.left = f.left[:0]
	for i := range f.spots {
		s := &f.spots[i]
		switch {
		case s.prospect != prospect || s.taken && s.exclusiveUse:
		case s.taken:
			f.left = append(f.left, s.free-f.share)
		default:
			f.left = append(f.left, s.free)
		}
	}
	if len(f.left) == 0 {
		return 0
	}
	return f.prospects[prospect].outlook.Worth(f.left)
}

// lost is the worth that goes when the demand takes these devices. Devices
// that look alike come to the same, which saves most of the counting.
func (f *foresight) lost(chosen []candidate) int64 {
	if len(chosen) > 1 {
		return f.count(chosen)
	}
	s := f.spots[chosen[0].place]
	i := slices.IndexFunc(f.counted, func(l loss) bool { return l.spot == s })
	if i < 0 {
		i = len(f.counted)
		f.counted = append(f.counted, loss{s, f.count(chosen)})
	}
	return f.counted[i].lost
}

func (f *foresight) count(chosen []candidate) (lost int64) {
	for i := range chosen {
		f.spots[chosen[i].place].taken = true
	}
	for i := range f.prospects {
		touched := func(c candidate) bool { return f.spots[c.place].prospect == i }
		if slices.ContainsFunc(chosen, touched) {
			lost += f.prospects[i].before - f.worth(i)
		}
	}
	for i := range chosen {
		f.spots[chosen[i].place].taken = false
	}
	return lost
}

// fragmentation is what taking these devices costs the demands to come, less
// what it gives to the one that is here.
func fragmentation(c *contest, chosen []candidate) int64 {
	f := &c.foresight
	if f.expected == nil {
		return 0
	}
	count := int64(len(f.expected.tasks))
	relief := int64(len(chosen))*int64(f.share)*count - f.lost(chosen)
	return int64(100 - fleet.Grade(float64(relief)/float64(count*fleet.Whole)))
}
