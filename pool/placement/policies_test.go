package placement

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
)

func named(t *testing.T, name string, history ...Demand) Policy {
	t.Helper()
	p, err := PolicyNamed(name, history)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func placed(t *testing.T, s Snapshot, d Demand, p Policy) Choice {
	t.Helper()
	choice, refusal := Place(s, d, p)
	if refusal != nil {
		t.Fatalf("refused: %+v", *refusal)
	}
	return choice
}

func devices(c Choice) (ids []int64) {
	for _, g := range c.Devices {
		ids = append(ids, g.Device)
	}
	return ids
}

func TestPoliciesByName(t *testing.T) {
	for _, name := range Policies() {
		if p := named(t, name, want(nil)); p.Name != name {
			t.Errorf("%s calls itself %s", name, p.Name)
		}
	}
	if p := named(t, "", want(nil)); p.Name != Default {
		t.Errorf("without a name it is %s", p.Name)
	}
	if p := named(t, ""); p.Name != BestFit {
		t.Errorf("without a past it is %s", p.Name)
	}
	if _, err := PolicyNamed("fgd", nil); err == nil || !strings.Contains(err.Error(), "best-fit") {
		t.Errorf("an unknown name: %v", err)
	}
}

// Each policy has its own idea of the same pool.
func TestPoliciesChoose(t *testing.T) {
	whole := func(device int64) Device { return gpu(device, inUse(7, 100)) }
	for name, c := range map[string]struct {
		policy Policy
		pool   Snapshot
		demand Demand
		node   int64
	}{
		"weir keeps whole nodes for those who need them": {named(t, Weir, Demand{GPUs: 2, Cores: 100}),
			pool(node(1, gpu(11), gpu(12)), node(2, gpu(21), whole(22))), want(nil), 2},
		"weir leaves a remainder that can be used": {named(t, Weir, Demand{GPUs: 1, Cores: 40}),
			pool(node(1, gpu(11, inUse(7, 35))), node(2, gpu(21, inUse(7, 20)))), want(cores(40)), 2},
		"tightest fit does not": {Policy{},
			pool(node(1, gpu(11, inUse(7, 35))), node(2, gpu(21, inUse(7, 20)))), want(cores(40)), 1},
		"weir keeps whole nodes even of linked devices": {named(t, Weir, Demand{GPUs: 4, Cores: 100}),
			pool(linked(node(1, gpu(11), gpu(12), gpu(13), gpu(14)), []int64{11, 12}), node(2, gpu(21), gpu(22))), want(gpus(2, 100)), 2},
		"weir prefers what the project has opened": {named(t, Weir, Demand{GPUs: 1, Cores: 40}),
			pool(node(1, mixed(gpu(11, inUse(8, 20)))), node(2, gpu(21, inUse(7, 35)))), want(cores(40)), 2},
		"weir spends no exclusive device on a fraction": {named(t, Weir, Demand{GPUs: 1, Cores: 40}),
			pool(node(1, exclusive(gpu(11))), node(2, gpu(21))), want(cores(40)), 2},
		"weir without a past takes tightest fit": {named(t, Weir),
			pool(node(1, gpu(11, inUse(7, 20))), node(2, gpu(21, inUse(7, 35)))), want(cores(40)), 2},
		"weir without a past, too, spends no exclusive device": {named(t, Weir),
			pool(node(1, exclusive(gpu(11))), node(2, gpu(21))), want(cores(40)), 2},
		"what cannot have been demanded teaches nothing": {named(t, Weir, Demand{GPUs: 1, Cores: 101}, Demand{}),
			pool(node(1, gpu(11, inUse(7, 20))), node(2, gpu(21, inUse(7, 35)))), want(cores(40)), 2},
		"several GPUs are not expected of instances": {named(t, Weir, Demand{GPUs: 2, Cores: 28}, Demand{GPUs: 1, Cores: 20}),
			pool(node(1, limited(28, gpu(11)), limited(28, gpu(12))), node(2, instance(21, 28), instance(22, 28))), want(cores(28)), 2},
		"demands for another model do not count": {named(t, Weir, Demand{GPUs: 2, Cores: 100, Model: "a100"}, Demand{GPUs: 1, Cores: 90}),
			pool(node(1, as(a100, gpu(11)), as(a100, gpu(12))), node(2, gpu(21), gpu(22))), want(nil), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if choice := placed(t, c.pool, c.demand, c.policy); choice.Node != c.node {
				t.Errorf("node %d, want %d: %+v", choice.Node, c.node, choice.Explanation)
			}
		})
	}
}

// Whatever was placed before by the same policy, for whomever.
func TestManyMayUseAPolicyAtOnce(t *testing.T) {
	s := pool(node(1, gpu(11), as(a100, gpu(12))), node(2, gpu(21), instance(22, 40)))
	p := named(t, Weir, Demand{GPUs: 1, Cores: 40}, Demand{GPUs: 2, Cores: 100})
	var all sync.WaitGroup
	choices := make([]Choice, 8)
	for i := range choices {
		all.Go(func() { choices[i], _ = Place(s, want(nil), p) })
	}
	all.Wait()
	for _, c := range choices {
		if len(c.Devices) != 1 || !reflect.DeepEqual(c, choices[0]) {
			t.Errorf("%+v and %+v", c, choices[0])
		}
	}
}

// linked links all devices of each group with each other.
func linked(n Node, groups ...[]int64) Node {
	for i := range n.Devices {
		for _, group := range groups {
			if slices.Contains(group, n.Devices[i].ID) {
				n.Devices[i].Peers = group
			}
		}
	}
	return n
}

func TestLinks(t *testing.T) {
	four := func(id int64) Node {
		return node(id, gpu(10*id+1), gpu(10*id+2), gpu(10*id+3), gpu(10*id+4))
	}
	past := []Demand{{GPUs: 2, Cores: 100}, {GPUs: 1, Cores: 50}}
	for name, c := range map[string]struct {
		pool     Snapshot
		demand   Demand
		devices  []int64
		unlinked int
	}{
		"without links the first":      {pool(four(1)), want(gpus(2, 100)), []int64{11, 12}, 1},
		"a linked pair":                {pool(linked(four(1), []int64{12, 14})), want(gpus(2, 100)), []int64{12, 14}, 0},
		"as many links as there are":   {pool(linked(four(1), []int64{11, 14}, []int64{12, 13})), want(gpus(3, 100)), []int64{11, 12, 13}, 2},
		"the node that has them":       {pool(four(1), linked(four(2), []int64{22, 23})), want(gpus(2, 100)), []int64{22, 23}, 0},
		"one device asks for no links": {pool(linked(four(1), []int64{12, 14})), want(cores(100)), []int64{11}, 0},
	} {
		for _, p := range []Policy{Policy{}, named(t, Weir, past...)} {
			t.Run(name+"/"+p.Name, func(t *testing.T) {
				choice := placed(t, c.pool, c.demand, p)
				if !slices.Equal(slices.Sorted(slices.Values(devices(choice))), c.devices) || choice.Explanation.Unlinked != c.unlinked {
					t.Errorf("devices %v with %d pairs unlinked, want %v with %d",
						devices(choice), choice.Explanation.Unlinked, c.devices, c.unlinked)
				}
			})
		}
	}
}

// Half of 20 devices can be chosen in more ways than are compared.
func TestLinksOfManyDevices(t *testing.T) {
	n, even := node(1), []int64(nil)
	for i := range int64(20) {
		n.Devices = append(n.Devices, Device{ID: 100 + i, Index: int(i), Model: h100, MemoryMiB: 80_000, Healthy: true})
		if i%2 == 0 {
			even = append(even, 100+i)
		}
	}
	choice := placed(t, pool(linked(n, even)), want(gpus(10, 100)), Policy{})
	if choice.Explanation.Unlinked != 0 || !slices.Equal(slices.Sorted(slices.Values(devices(choice))), even) {
		t.Errorf("devices %v with %d pairs unlinked", devices(choice), choice.Explanation.Unlinked)
	}
}

// instance is a MIG instance of device 19.
func instance(id, cores int64, shares ...Share) Device {
	dev := gpu(id, shares...)
	dev.Parent, dev.Cores, dev.MemoryMiB = 19, cores, 800*cores
	return dev
}

func TestDevicesThatCostTheSameAloneAreNotAlike(t *testing.T) {
	s := pool(node(1, exclusive(gpu(11)), gpu(12), gpu(13)))
	choice := placed(t, s, want(gpus(2, 50)), named(t, Weir, Demand{GPUs: 1, Cores: 50}))
	if !slices.Equal(devices(choice), []int64{12, 13}) {
		t.Errorf("devices %v, although the remainder of the exclusive one is lost", devices(choice))
	}
}

func TestInstances(t *testing.T) {
	s := pool(node(1, instance(11, 42), instance(12, 28, Share{Cores: 28, MemoryMiB: 22_400, Project: 8}), instance(13, 28)), node(2, gpu(21)))
	if c := placed(t, s, want(cores(28)), Policy{}); !slices.Equal(c.Devices, []Grant{{13, 28, 22_400}}) {
		t.Errorf("28 cores are %+v; the instance of that size, with all its memory, is wanted", c.Devices)
	}
	if c := placed(t, s, want(cores(60)), Policy{}); c.Node != 2 {
		t.Errorf("60 cores are on node %d, whose instances have 42", c.Node)
	}
	if _, refusal := Place(pool(s.Nodes[0]), want(gpus(2, 10)), Policy{}); refusal == nil || refusal.Reason != OneGPU {
		t.Errorf("two GPUs of instances: %+v", refusal)
	}
	got := Capacity(s)
	if got.GPUs != 2 || got.Cores != 198 || got.FreeCores != 170 || got.CoresInUse != 28 {
		t.Errorf("capacity %+v", got)
	}
	if cores, _ := Largest(pool(s.Nodes[0]), want(cores(90))); cores != 42 {
		t.Errorf("%d cores are the largest share of instances of 42 and 28", cores)
	}
}
