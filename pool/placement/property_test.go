package placement

import (
	"math"
	"math/rand"
	"reflect"
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
			case cores > 100:
				t.Fatalf("%d cores on device %d", cores, dev.ID)
			case memory > dev.MemoryMiB:
				t.Fatalf("%d of %d MiB on device %d", memory, dev.MemoryMiB, dev.ID)
			case dev.Exclusive && len(dev.Shares) > 1:
				t.Fatalf("%d holders of exclusive device %d", len(dev.Shares), dev.ID)
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
		found := false
		for i := range s.Nodes[c.Node-1].Devices {
			if dev := &s.Nodes[c.Node-1].Devices[i]; dev.ID == g.Device {
				found = true
				dev.Shares = append(dev.Shares, Share{g.Cores, g.MemoryMiB, d.Project, holder})
			}
		}
		if !found {
			t.Fatalf("device %d is not on node %d", g.Device, c.Node)
		}
	}
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

func TestRulesHoldUnderPlacingAndReleasing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawPool(t)
		for i := range s.Nodes {
			for j := range s.Nodes[i].Devices {
				s.Nodes[i].Devices[j].Shares = nil
			}
		}
		idle := Capacity(s)
		holder := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if rapid.IntRange(0, 3).Draw(t, "step") == 0 {
				release(s, rapid.Int64Range(1, holder+1).Draw(t, "released"))
				continue
			}
			d := drawDemand(t)
			choice, refusal := Place(s, d, BestFit())
			if refusal != nil {
				if d.Cores, d.MemoryMiB = Largest(s, d); d.Cores == 0 {
					continue
				}
				if choice, refusal = Place(s, d, BestFit()); refusal != nil {
					t.Fatalf("%+v was offered and then refused: %+v", d, *refusal)
				}
			}
			if d.GPUs > 0 {
				holder++
				take(t, s, d, choice, holder)
			}
			checkRules(t, s)
		}
		for h := range holder {
			release(s, h+1)
		}
		if after := Capacity(s); after != idle {
			t.Fatalf("after everything was released %+v, before %+v", after, idle)
		}
	})
}

func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		choice, refusal := Place(s, d, BestFit())
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		r.Shuffle(len(s.Nodes), func(i, j int) { s.Nodes[i], s.Nodes[j] = s.Nodes[j], s.Nodes[i] })
		for _, n := range s.Nodes {
			r.Shuffle(len(n.Devices), func(i, j int) { n.Devices[i], n.Devices[j] = n.Devices[j], n.Devices[i] })
		}
		again, refusedAgain := Place(s, d, BestFit())
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
		choice, _ := Place(s, d, BestFit())
		for _, g := range choice.Devices {
			if f := free[g.Device]; g.Cores < 1 || g.Cores > f[0] || g.MemoryMiB < 0 || g.MemoryMiB > f[1] {
				t.Fatalf("granted %+v of %v", g, f)
			}
		}
		if cores, memory := Largest(s, d); cores < 0 || memory < 0 || cores > max(d.Cores, 0) {
			t.Fatalf("offered %d cores %d MiB for %+v", cores, memory, d)
		}
		if c := Capacity(s); c.FreeCores < 0 || c.HeldCores < 0 || c.MemoryMiB < 0 || c.FreeMemoryMiB < 0 || c.HeldMemoryMiB < 0 {
			t.Fatalf("capacity %+v", c)
		}
	})
}
