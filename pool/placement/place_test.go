package placement

import (
	"reflect"
	"testing"
)

const (
	h100 = "NVIDIA H100 80GB HBM3"
	a100 = "Mock NVIDIA A100-SXM4-40GB"
)

// gpu is a healthy, shared device with 80 000 MiB and the given shares.
func gpu(id int64, shares ...Share) Device {
	return Device{ID: id, Index: int(id % 10), Model: h100, MemoryMiB: 80_000, Healthy: true, Shares: shares}
}

func exclusive(d Device) Device { d.Exclusive = true; return d }
func mixed(d Device) Device     { d.Mixed = true; return d }
func changing(d Device) Device  { d.Changing = true; return d }
func notLent(d Device) Device   { d.NotLent = true; return d }
func broken(d Device) Device    { d.Healthy = false; return d }
func as(model string, d Device) Device {
	d.Model = model
	return d
}

// inUse is a share with memory in proportion to 80 000 MiB.
func inUse(project, cores int64) Share {
	return Share{Cores: cores, MemoryMiB: 800 * cores, Project: project, Holder: 1}
}

func node(id int64, devices ...Device) Node {
	return Node{ID: id, Accepting: true, Devices: devices}
}

func closed(n Node) Node      { n.Accepting = false; return n }
func unreachable(n Node) Node { n.Unreachable = true; return n }

// limited is a device of which only some cores may be used.
func limited(cores int64, d Device) Device { d.Cores = cores; return d }

func pool(nodes ...Node) Snapshot { return Snapshot{Nodes: nodes} }

// want is 30 cores of one GPU for project 7, changed by the cases.
func want(change func(*Demand)) Demand {
	d := Demand{GPUs: 1, Cores: 30, Project: 7}
	if change != nil {
		change(&d)
	}
	return d
}

func cores(n int64) func(*Demand) { return func(d *Demand) { d.Cores = n } }

func gpus(n int, cores int64) func(*Demand) {
	return func(d *Demand) { d.GPUs, d.Cores = n, cores }
}

func TestPlacement(t *testing.T) {
	for name, c := range map[string]struct {
		pool    Snapshot
		demand  Demand
		node    int64
		devices []int64
	}{
		"first of equals": {
			pool(node(2, gpu(20)), node(1, gpu(12), gpu(11))), want(nil), 1, []int64{11}},
		"tightest fit": {
			pool(node(1, gpu(11, inUse(7, 20)), gpu(12, inUse(7, 65)), gpu(13, inUse(7, 80)))), want(nil), 1, []int64{12}},
		"tightest node": {
			pool(node(1, gpu(11, inUse(7, 20))), node(2, gpu(21, inUse(7, 60)))), want(nil), 2, []int64{21}},
		"used before idle": {
			pool(node(1, gpu(11)), node(2, gpu(21, inUse(7, 1)))), want(nil), 2, []int64{21}},
		"tightest in memory among equals": {
			pool(node(1, gpu(11, Share{Cores: 50, MemoryMiB: 10, Project: 7}), gpu(12, Share{Cores: 50, MemoryMiB: 90, Project: 7}))),
			want(nil), 1, []int64{12}},
		"the project's own device before a tighter one": {
			pool(node(1, mixed(gpu(11, inUse(8, 70))), mixed(gpu(12, inUse(7, 50))))), want(nil), 1, []int64{12}},
		"an exclusive device is not spent on a fraction": {
			pool(node(1, exclusive(gpu(11)), gpu(12))), want(nil), 1, []int64{12}},
		"an exclusive device takes a fraction if there is nothing else": {
			pool(node(1, exclusive(gpu(11)))), want(nil), 1, []int64{11}},
		"an exclusive device is as good as any for a whole one": {
			pool(node(1, exclusive(gpu(11)), gpu(12))), want(cores(100)), 1, []int64{11}},
		"first by index, not by id": {
			pool(node(1, gpu(15), gpu(21))), want(nil), 1, []int64{21}},
		"another project's device if mixing is allowed": {
			pool(node(1, mixed(gpu(11, inUse(8, 70))), gpu(12))), want(nil), 1, []int64{11}},
		"all of a device": {
			pool(node(1, gpu(11, inUse(7, 1)), gpu(12))), want(cores(100)), 1, []int64{12}},
		"several devices of one node": {
			pool(node(1, gpu(11), gpu(12, inUse(7, 80))), node(2, gpu(21, inUse(7, 10)), gpu(22), gpu(23, inUse(7, 40)))),
			want(gpus(2, 50)), 2, []int64{23, 21}},
		"the node with the least left over": {
			pool(node(1, gpu(11, inUse(7, 50)), gpu(12, inUse(7, 10))), node(2, gpu(21, inUse(7, 40)), gpu(22, inUse(7, 40)))),
			want(gpus(2, 30)), 2, []int64{21, 22}},
		"model by its words": {
			pool(node(1, gpu(11)), node(2, as(a100, gpu(21)))),
			want(func(d *Demand) { d.Model = "nvidia a100" }), 2, []int64{21}},
		"nothing asked": {
			pool(), want(gpus(0, -5)), 0, nil},
		"a device listed twice is one": {
			pool(node(1, gpu(11), gpu(11), gpu(12))), want(gpus(2, 50)), 1, []int64{11, 12}},
	} {
		t.Run(name, func(t *testing.T) {
			choice, refusal := Place(c.pool, c.demand, Policy{})
			if refusal != nil {
				t.Fatalf("refused: %+v", *refusal)
			}
			var devices []int64
			for _, g := range choice.Devices {
				devices = append(devices, g.Device)
			}
			if choice.Node != c.node || !reflect.DeepEqual(devices, c.devices) {
				t.Errorf("node %d devices %v, want node %d devices %v", choice.Node, devices, c.node, c.devices)
			}
		})
	}
}

func TestRefusal(t *testing.T) {
	counts := func(pairs ...int) (c [reasonCount]int) {
		for i := 0; i < len(pairs); i += 2 {
			c[pairs[i]] = pairs[i+1]
		}
		return c
	}
	for name, c := range map[string]struct {
		pool   Snapshot
		demand Demand
		want   Refusal
	}{
		"empty pool": {
			pool(), want(nil), Refusal{Reason: NoDevices, Needed: 1}},
		"no cores asked": {
			pool(node(1, gpu(11))), want(cores(0)), Refusal{Reason: Invalid, Needed: 1}},
		"more than a device has": {
			pool(node(1, gpu(11))), want(cores(101)), Refusal{Reason: Invalid, Needed: 1}},
		"less than no GPU": {
			pool(node(1, gpu(11))), want(gpus(-1, 30)), Refusal{Reason: Invalid, Needed: -1}},
		"less than no memory": {
			pool(node(1, gpu(11))), want(func(d *Demand) { d.MemoryMiB = -1 }), Refusal{Reason: Invalid, Needed: 1}},
		"node closed": {
			pool(closed(node(1, gpu(11), gpu(12)))), want(nil),
			Refusal{Reason: NodeNotAccepting, Counts: counts(int(NodeNotAccepting), 2), Needed: 1}},
		"one device for each reason": {
			pool(closed(node(1, gpu(11))),
				node(2, as(a100, gpu(21)), broken(gpu(22)), exclusive(gpu(23, inUse(7, 10))), gpu(24, inUse(8, 10)),
					gpu(25, inUse(7, 71)), gpu(26, Share{Cores: 1, MemoryMiB: 70_000, Project: 7}), changing(gpu(27)), notLent(gpu(28))),
				unreachable(node(3, gpu(31)))),
			want(func(d *Demand) { d.Model = "h100" }),
			Refusal{Reason: TooLittleMemory, Needed: 1, BestCores: 29, BestMemoryMiB: 10_000,
				Counts: counts(int(NodeNotAccepting), 1, int(Unreachable), 1, int(NotLent), 1, int(Changing), 1, int(WrongModel), 1, int(Unhealthy), 1, int(ExclusiveInUse), 1,
					int(OtherProject), 1, int(TooFewCores), 1, int(TooLittleMemory), 1)}},
		"less may be used than is asked": {
			pool(node(1, limited(20, gpu(11)), limited(25, gpu(12)))), want(nil),
			Refusal{Reason: TooFewCores, Needed: 1, BestCores: 25, Counts: counts(int(TooFewCores), 2)}},
		"the reason nearest to fitting": {
			pool(unreachable(node(1, gpu(11))), node(2, notLent(gpu(21)), changing(gpu(22)))), want(nil),
			Refusal{Reason: Changing, Needed: 1, Counts: counts(int(Unreachable), 1, int(NotLent), 1, int(Changing), 1)}},
		"too few cores": {
			pool(node(1, gpu(11, inUse(7, 80)), gpu(12, inUse(7, 75)))), want(nil),
			Refusal{Reason: TooFewCores, Needed: 1, BestCores: 25, Counts: counts(int(TooFewCores), 2)}},
		"too few devices": {
			pool(node(2, gpu(21), gpu(22)), node(1, gpu(11), gpu(12)), node(3, gpu(31))), want(gpus(3, 40)),
			Refusal{Reason: TooFewDevices, Needed: 3, BestDevices: 2, BestNode: 1,
				Counts: counts(int(TooFewDevices), 5)}},
	} {
		t.Run(name, func(t *testing.T) {
			choice, refusal := Place(c.pool, c.demand, Policy{})
			if refusal == nil {
				t.Fatalf("placed: %+v", choice)
			}
			if *refusal != c.want {
				t.Errorf("got  %+v\nwant %+v", *refusal, c.want)
			}
		})
	}
}

func TestExplanation(t *testing.T) {
	two := func(first, second Device) Snapshot { return pool(node(1, first), node(2, second)) }
	for name, c := range map[string]struct {
		pool Snapshot
		want Explanation
	}{
		"alone": {
			pool(node(1, gpu(11), gpu(12)), closed(node(2, gpu(21)))),
			Explanation{Nodes: 1, Devices: 2, LeftoverCores: 70, LeftoverMemoryMiB: 56_000}},
		"lost by splitting an idle device": {
			two(gpu(11), gpu(21, inUse(7, 10))),
			Explanation{Nodes: 2, Devices: 2, LeftoverCores: 60, LeftoverMemoryMiB: 48_000, RunnerUp: RunnerUp{1, SplitsIdle, 1}}},
		"lost by being new to the project": {
			two(mixed(gpu(11, inUse(8, 20))), gpu(21, inUse(7, 10))),
			Explanation{Nodes: 2, Devices: 2, LeftoverCores: 60, LeftoverMemoryMiB: 48_000, RunnerUp: RunnerUp{1, NewToProject, 1}}},
		"lost by cores": {
			two(gpu(11, inUse(7, 20)), gpu(21, inUse(7, 10))),
			Explanation{Nodes: 2, Devices: 2, LeftoverCores: 50, LeftoverMemoryMiB: 40_000, RunnerUp: RunnerUp{2, LeftoverCores, 10}}},
		"lost by memory": {
			two(gpu(11, Share{Cores: 10, Project: 7}), gpu(21, inUse(7, 10))),
			Explanation{Nodes: 2, Devices: 2, LeftoverCores: 60, LeftoverMemoryMiB: 48_000, RunnerUp: RunnerUp{1, LeftoverMemory, 8_000}}},
		"lost by order": {
			two(gpu(11), gpu(21)),
			Explanation{Nodes: 2, Devices: 2, LeftoverCores: 70, LeftoverMemoryMiB: 56_000, RunnerUp: RunnerUp{2, Order, 0}}},
		"the better of two losers": {
			pool(node(1, gpu(11)), node(3, gpu(31, inUse(7, 20))), node(2, gpu(21, inUse(7, 10)))),
			Explanation{Nodes: 3, Devices: 3, LeftoverCores: 50, LeftoverMemoryMiB: 40_000, RunnerUp: RunnerUp{2, LeftoverCores, 10}}},
	} {
		t.Run(name, func(t *testing.T) {
			choice, refusal := Place(c.pool, want(nil), Policy{})
			if refusal != nil {
				t.Fatalf("refused: %+v", *refusal)
			}
			c.want.Policy = "best-fit"
			if choice.Explanation != c.want {
				t.Errorf("got  %+v\nwant %+v", choice.Explanation, c.want)
			}
		})
	}
}

func TestMatchesModel(t *testing.T) {
	for _, c := range []struct {
		model, asked string
		want         bool
	}{
		{h100, "", true},
		{h100, "H100", true},
		{h100, "h100 80gb", true},
		{h100, " NVIDIA  H100-80GB ", true},
		{h100, "HBM3 H100", true},
		{h100, "h10", false},
		{h100, "a100", false},
		{h100, "h100 94gb", false},
		{h100, "a100|h100", true},
		{h100, "a100|b200", false},
		{h100, "a100|", false},
		{h100, "|", true},
		{a100, "a100", true},
		{a100, "nvidia a100-sxm4-40gb", true},
		{"NVIDIA GH200 480GB", "h200", false},
		{"Tesla V100-SXM2-16GB", "nvidia v100", true},
		{"", "h100", false},
		{"", "", true},
		{"GPU Ж", "ж", true},
		{"GPU Ж", "Я", false},
	} {
		if got := MatchesModel(c.model, c.asked); got != c.want {
			t.Errorf("MatchesModel(%q, %q) = %v", c.model, c.asked, got)
		}
	}
}

// Place chooses the node and the devices that take a demand. It returns
// either the choice and nil, or why there is none.
func Place(s Snapshot, d Demand, policy Policy) (Choice, *Refusal) {
	e := New(s.Nodes, policy)
	c, ok := e.Find(d)
	if !ok {
		return c, Refuse(s, d)
	}
	c.Explanation = e.Explain(c, d)
	return c, nil
}
