package placement

import (
	"math"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// checkRules fails if a device breaks what must hold at every instant.
func checkRules(t *rapid.T, s Snapshot) {
	for _, n := range s.Nodes {
		for _, dev := range n.Devices {
			var cores, memory int64
			projects := map[int64]bool{}
			for _, share := range dev.Shares {
				cores, memory = cores+share.Cores, memory+share.MemoryMiB
				projects[share.Project] = true
			}
			switch {
			case cores > limit(dev):
				t.Fatalf("%d of %d cores on device %d", cores, limit(dev), dev.ID)
			case memory > dev.MemoryMiB:
				t.Fatalf("%d of %d MiB on device %d", memory, dev.MemoryMiB, dev.ID)
			case (dev.Exclusive || dev.Parent != 0) && len(dev.Shares) > 1:
				t.Fatalf("%d holders of device %d, which has one", len(dev.Shares), dev.ID)
			case !dev.Mixed && len(projects) > 1:
				t.Fatalf("%d projects on device %d", len(projects), dev.ID)
			}
		}
	}
}

// take adds a choice to the pool as the shares of a holder.
func take(t *rapid.T, s Snapshot, d Demand, c Choice, holder int64) {
	if len(c.Devices) != d.GPUs {
		t.Fatalf("%d devices granted, %d wanted", len(c.Devices), d.GPUs)
	}
	seen := map[int64]bool{}
	for _, g := range c.Devices {
		if seen[g.Device] || g.Cores != d.Cores || d.MemoryMiB > 0 && g.MemoryMiB != d.MemoryMiB {
			t.Fatalf("grants %+v for %+v", c.Devices, d)
		}
		seen[g.Device] = true
	}
	if hold(s, d, c, holder) != d.GPUs {
		t.Fatalf("%+v are not all on node %d", c.Devices, c.Node)
	}
}

// hold makes grants shares of a holder, and tells how many there were.
func hold(s Snapshot, d Demand, c Choice, holder int64) (inUse int) {
	n := &s.Nodes[c.Node-1]
	for i := range n.Devices {
		for _, g := range c.Devices {
			if g.Device == n.Devices[i].ID {
				n.Devices[i].Shares = append(n.Devices[i].Shares, Share{g.Cores, g.MemoryMiB, d.Project, holder})
				inUse++
			}
		}
	}
	return inUse
}

func release(s Snapshot, holder int64) {
	for i := range s.Nodes {
		for j := range s.Nodes[i].Devices {
			dev := &s.Nodes[i].Devices[j]
			var kept []Share
			for _, share := range dev.Shares {
				if share.Holder != holder {
					kept = append(kept, share)
				}
			}
			dev.Shares = kept
		}
	}
}

// life is a pool in which things happen.
type life struct {
	pool   Snapshot
	policy Policy
	whole  map[int64]Device // what the instances of a device were before
	holder int64
}

// anyNode is one of the nodes, or nil.
func (l *life) anyNode(t *rapid.T) *Node {
	if len(l.pool.Nodes) == 0 {
		return nil
	}
	return &l.pool.Nodes[rapid.IntRange(0, len(l.pool.Nodes)-1).Draw(t, "node")]
}

// place takes what is demanded, or as much as is offered instead.
func (l *life) place(t *rapid.T) {
	d := drawDemand(t)
	choice, refusal := Place(l.pool, d, l.policy)
	if refusal != nil {
		if d.Cores, d.MemoryMiB = Largest(l.pool, d); d.Cores == 0 {
			return
		}
		if choice, refusal = Place(l.pool, d, l.policy); refusal != nil {
			t.Fatalf("%+v was offered and then refused: %+v", d, *refusal)
		}
	}
	if d.GPUs > 0 {
		if n := l.pool.Nodes[choice.Node-1]; !n.Accepting || n.Unreachable {
			t.Fatalf("placed on node %+v", n)
		}
		l.holder++
		take(t, l.pool, d, choice, l.holder)
	}
}

func (l *life) release(t *rapid.T) {
	release(l.pool, rapid.Int64Range(1, l.holder+1).Draw(t, "released"))
}

// lose makes a node silent, with what runs there, or lets it come back.
func (l *life) lose(t *rapid.T) {
	if n := l.anyNode(t); n != nil {
		n.Accepting = !n.Accepting
	}
}

// recall takes a node away from everybody.
func (l *life) recall(t *rapid.T) {
	n := l.anyNode(t)
	if n == nil {
		return
	}
	n.Accepting = false
	for i := range n.Devices {
		n.Devices[i].Shares = nil
	}
}

// cut replaces an idle device by MIG instances, or idle instances by theirs.
func (l *life) cut(t *rapid.T) {
	n := l.anyNode(t)
	if n == nil || len(n.Devices) == 0 {
		return
	}
	dev := n.Devices[rapid.IntRange(0, len(n.Devices)-1).Draw(t, "device")]
	if whole, cut := l.whole[dev.Parent]; cut {
		l.fuse(n, whole)
	} else if len(dev.Shares) == 0 && dev.Parent == 0 {
		l.whole[dev.ID] = dev
		n.Devices = slices.DeleteFunc(n.Devices, func(d Device) bool { return d.ID == dev.ID })
		for i := range rapid.Int64Range(1, 3).Draw(t, "instances") {
			part := dev
			part.ID, part.Parent, part.Cores, part.MemoryMiB = 1000*dev.ID+i, dev.ID, 28, dev.MemoryMiB/4
			n.Devices = append(n.Devices, part)
		}
	}
}

// fuse makes idle instances one device again.
func (l *life) fuse(n *Node, whole Device) {
	part := func(d Device) bool { return d.Parent == whole.ID }
	if slices.ContainsFunc(n.Devices, func(d Device) bool { return part(d) && len(d.Shares) > 0 }) {
		return
	}
	n.Devices = append(slices.DeleteFunc(n.Devices, part), whole)
	delete(l.whole, whole.ID)
}

// end makes everything as it was.
func (l *life) end(accepting []bool) {
	for h := range l.holder {
		release(l.pool, h+1)
	}
	for i := range l.pool.Nodes {
		n := &l.pool.Nodes[i]
		n.Accepting = accepting[i]
		for _, dev := range slices.Clone(n.Devices) {
			if whole, cut := l.whole[dev.Parent]; cut {
				l.fuse(n, whole)
			}
		}
	}
}

func TestRulesHoldWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := life{pool: drawPool(t), whole: map[int64]Device{}}
		name := rapid.SampledFrom(Policies()).Draw(t, "policy")
		l.policy, _ = PolicyNamed(name, []Demand{{GPUs: 1, Cores: 30}, {GPUs: 2, Cores: 50}})
		var accepting []bool
		for i := range l.pool.Nodes {
			n := &l.pool.Nodes[i]
			accepting = append(accepting, n.Accepting)
			for j := range n.Devices {
				n.Devices[j].Shares, n.Devices[j].Parent = nil, 0
			}
		}
		idle := Capacity(l.pool)
		steps := []func(*rapid.T){l.place, l.place, l.place, l.place, l.release, l.lose, l.recall, l.cut}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			rapid.SampledFrom(steps).Draw(t, "step")(t)
			checkRules(t, l.pool)
		}
		l.end(accepting)
		if after := Capacity(l.pool); after != idle {
			t.Fatalf("after everything was released %+v, before %+v", after, idle)
		}
	})
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		policy, _ := PolicyNamed(rapid.SampledFrom(Policies()).Draw(t, "policy"), []Demand{{GPUs: 1, Cores: 30}, {GPUs: 2, Cores: 50}})
		choice, refusal := Place(s, d, policy)
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
		for _, n := range s.Nodes {
			r.Shuffle(len(n.Devices), func(i, j int) { n.Devices[i], n.Devices[j] = n.Devices[j], n.Devices[i] })
		}
		again, refusedAgain := Place(s, d, policy)
		if !reflect.DeepEqual(choice, again) || !reflect.DeepEqual(refusal, refusedAgain) {
			t.Fatalf("%+v %+v, then %+v %+v", choice, refusal, again, refusedAgain)
		}
	})
}

// TestHostileNumbers feeds any numbers at all: nothing may panic, overflow
// into a grant, or be granted beyond what is free.
func TestHostileNumbers(t *testing.T) {
	number := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2, 101),
		rapid.SampledFrom([]int64{math.MaxInt64, math.MinInt64, math.MaxInt64 - 1}))
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		free := map[int64][2]int64{}
		for i := range s.Nodes {
			s.Nodes[i].ID = rapid.Int64Range(1, 2).Draw(t, "node id")
			for j := range s.Nodes[i].Devices {
				dev := &s.Nodes[i].Devices[j]
				dev.MemoryMiB = number.Draw(t, "device memory")
				dev.Cores = number.Draw(t, "usable cores")
				for k := range dev.Shares {
					dev.Shares[k].Cores = number.Draw(t, "share cores")
					dev.Shares[k].MemoryMiB = number.Draw(t, "share memory")
				}
				cores, memory := Free(*dev)
				free[dev.ID] = [2]int64{cores, memory}
			}
		}
		d := drawDemand(t)
		d.GPUs = int(number.Draw(t, "gpus wanted"))
		d.Cores, d.MemoryMiB = number.Draw(t, "cores wanted"), number.Draw(t, "memory wanted")
		policy, _ := PolicyNamed(rapid.SampledFrom(Policies()).Draw(t, "policy"),
			[]Demand{{GPUs: 2, Cores: 50}, {GPUs: int(number.Draw(t, "past gpus")), Cores: number.Draw(t, "past cores")}})
		choice, _ := Place(s, d, policy)
		for _, g := range choice.Devices {
			if f := free[g.Device]; g.Cores < 1 || g.Cores > f[0] || g.MemoryMiB < 0 || g.MemoryMiB > f[1] {
				t.Fatalf("granted %+v of %v", g, f)
			}
		}
		if cores, memory := Largest(s, d); cores < 0 || memory < 0 || cores > max(d.Cores, 0) {
			t.Fatalf("offered %d cores %d MiB for %+v", cores, memory, d)
		}
		if c := Capacity(s); c.FreeCores < 0 || c.CoresInUse < 0 || c.MemoryMiB < 0 || c.FreeMemoryMiB < 0 || c.MemoryMiBInUse < 0 {
			t.Fatalf("capacity %+v", c)
		}
	})
}
