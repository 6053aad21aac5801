package placement

import (
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The oracle knows only the rules: it tries every set of devices, adds the
// shares, and looks whether the rules still hold.

func drawDevice(t *rapid.T, id int64) Device {
	d := Device{
		ID:        id,
		Index:     rapid.IntRange(0, 2).Draw(t, "index"),
		Model:     rapid.SampledFrom([]string{h100, h100, a100}).Draw(t, "model"),
		MemoryMiB: rapid.Int64Range(0, 200).Draw(t, "memory"),
		Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
		Mixed:     rapid.Bool().Draw(t, "mixed"),
		Healthy:   rapid.IntRange(0, 5).Draw(t, "healthy") > 0,
		NotLent:   rapid.IntRange(0, 7).Draw(t, "not lent") == 0,
		Changing:  rapid.IntRange(0, 7).Draw(t, "changing") == 0,
		Cores:     rapid.SampledFrom([]int64{0, 0, 0, 100, 71, 42, 14}).Draw(t, "usable"),
		Single:    rapid.IntRange(0, 7).Draw(t, "single") == 0,
		Parent:    rapid.SampledFrom([]int64{0, 0, 0, 900}).Draw(t, "parent"),
	}
	for range rapid.IntRange(0, 2).Draw(t, "shares") {
		d.Shares = append(d.Shares, Share{
			Cores:     rapid.Int64Range(0, 60).Draw(t, "in use cores"),
			MemoryMiB: rapid.Int64Range(0, 120).Draw(t, "in use memory"),
			Project:   rapid.Int64Range(1, 2).Draw(t, "in use by"),
		})
	}
	return d
}

// drawLinks links some pairs of a node's devices, said by either side.
func drawLinks(t *rapid.T, n Node) {
	if len(n.Devices) == 0 || rapid.Bool().Draw(t, "no links") {
		return
	}
	for i := range n.Devices {
		for j := range n.Devices {
			if i != j && rapid.Bool().Draw(t, "linked") {
				n.Devices[i].Peers = append(n.Devices[i].Peers, n.Devices[j].ID)
			}
		}
	}
}

func drawPool(t *rapid.T) Snapshot {
	var s Snapshot
	for i := range rapid.Int64Range(0, 3).Draw(t, "nodes") {
		n := Node{ID: i + 1, Accepting: rapid.IntRange(0, 4).Draw(t, "accepting") > 0}
		for j := range rapid.Int64Range(0, 4).Draw(t, "devices") {
			n.Devices = append(n.Devices, drawDevice(t, 10*(i+1)+j))
		}
		n.Unreachable = rapid.IntRange(0, 7).Draw(t, "unreachable") == 0
		drawLinks(t, n)
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// open lets most devices of a pool fit, so that there is something to choose.
func open(s Snapshot) {
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.Accepting, n.Unreachable = true, false
		for j := range n.Devices {
			dev := &n.Devices[j]
			dev.Model, dev.MemoryMiB, dev.Healthy, dev.Mixed, dev.NotLent, dev.Changing = h100, 1000, true, true, false, false
			if len(dev.Shares) == 2 {
				dev.Shares = nil
			}
		}
	}
}

func drawDemand(t *rapid.T) Demand {
	return Demand{
		GPUs:      rapid.IntRange(0, 3).Draw(t, "gpus"),
		Cores:     rapid.Int64Range(1, 100).Draw(t, "cores"),
		MemoryMiB: rapid.SampledFrom([]int64{0, 0, 1, 20, 50, 90, 150}).Draw(t, "wanted memory"),
		Model:     rapid.SampledFrom([]string{"", "", "h100", "A100"}).Draw(t, "wanted model"),
		Project:   rapid.Int64Range(1, 2).Draw(t, "project"),
	}
}

// limit is what may be used of a device, in cores.
func limit(dev Device) int64 {
	if dev.Cores == 0 {
		return 100
	}
	return dev.Cores
}

// broken rules, in the order of the reasons.
func brokenRules(n Node, dev Device, d Demand) []Reason {
	var projects []int64
	var cores, memory int64
	for _, s := range dev.Shares {
		cores, memory, projects = cores+s.Cores, memory+s.MemoryMiB, append(projects, s.Project)
	}
	need := d.MemoryMiB
	if need == 0 {
		need = dev.MemoryMiB * d.Cores / limit(dev)
	}
	var reasons []Reason
	check := func(holds bool, r Reason) {
		if !holds {
			reasons = append(reasons, r)
		}
	}
	check(n.Accepting, NodeNotAccepting)
	check(!n.Unreachable, Unreachable)
	check(strings.Contains(strings.ToLower(dev.Model), strings.ToLower(d.Model)), WrongModel)
	check(!dev.NotLent, NotLent)
	check(dev.Parent == 0 && !dev.Single || d.GPUs == 1, OneGPU)
	check(dev.Healthy, Unhealthy)
	check(!dev.Changing, Changing)
	check(!dev.Exclusive && dev.Parent == 0 || len(dev.Shares)+1 == 1, ExclusiveInUse)
	projects = append(projects, d.Project)
	slices.Sort(projects)
	check(dev.Mixed || len(slices.Compact(projects)) == 1, OtherProject)
	check(cores+d.Cores <= limit(dev), TooFewCores)
	check(memory+need <= dev.MemoryMiB, TooLittleMemory)
	return reasons
}

// idleCores is what anybody could take of a device.
func idleCores(dev Device) int64 {
	free := limit(dev)
	for _, s := range dev.Shares {
		free -= s.Cores
	}
	exclusiveUse := dev.Exclusive || dev.Parent != 0
	if !dev.Healthy || dev.Changing || dev.NotLent || exclusiveUse && len(dev.Shares) > 0 {
		return 0
	}
	return max(free, 0)
}

// useful is how many cores of a node all the demands of the past, each for
// itself, could use: of each kind of device, what is free on those that have
// enough, if there are enough of them.
func useful(n Node, past []Demand) (sum int64) {
	type kind struct {
		model    string
		instance bool
	}
	free := map[kind][]int64{}
	for _, dev := range n.Devices {
		k := kind{dev.Model, dev.Parent != 0}
		free[k] = append(free[k], idleCores(dev))
	}
	for k, cores := range free {
		for _, d := range past {
			count, total := 0, int64(0)
			for _, c := range cores {
				if c >= d.Cores {
					count, total = count+1, total+c
				}
			}
			if count >= d.GPUs && (d.GPUs == 1 || !k.instance) && strings.Contains(strings.ToLower(k.model), strings.ToLower(d.Model)) {
				sum += total
			}
		}
	}
	return sum
}

// fragments is how much of the node, in thousandths of a GPU, all the demands
// of the past lose on average when the devices are taken, less what is taken.
func fragments(n Node, set []int, d Demand, past []Demand) int64 {
	after := n
	after.Devices = slices.Clone(n.Devices)
	for _, i := range set {
		dev := &after.Devices[i]
		dev.Shares = append(slices.Clone(dev.Shares), Share{Cores: d.Cores})
	}
	lost := float64(useful(n, past)-useful(after, past)) / float64(len(past))
	return -int64(math.Round(10 * (float64(int64(len(set))*d.Cores) - lost)))
}

// costs says what best-fit weighs, for a set of devices.
func costs(n Node, set []int, d Demand) []int64 {
	var split, foreign, cores, memory, unlinked int64
	for _, i := range set {
		dev := n.Devices[i]
		own := slices.ContainsFunc(dev.Shares, func(s Share) bool { return s.Project == d.Project })
		foreign += one(!own)
		splits := len(dev.Shares) == 0 && d.Cores < limit(dev)
		split += one(splits) + one(splits && (dev.Exclusive || dev.Parent != 0))
		need := d.MemoryMiB
		if need == 0 {
			need = dev.MemoryMiB * d.Cores / limit(dev)
		}
		cores, memory = cores+limit(dev)-d.Cores, memory+dev.MemoryMiB-need
		for _, s := range dev.Shares {
			cores, memory = cores-s.Cores, memory-s.MemoryMiB
		}
		for _, j := range set {
			linked := slices.Contains(dev.Peers, n.Devices[j].ID) || slices.Contains(n.Devices[j].Peers, dev.ID)
			unlinked += one(i < j && !linked)
		}
	}
	return []int64{split, foreign, unlinked, cores, memory}
}

// weirCosts says what weir weighs, for the set of devices that best-fit takes
// of a node, or one device.
func weirCosts(n Node, set []int, d Demand, past []Demand) []int64 {
	c := costs(n, set, d)
	return []int64{c[1], fragments(n, set, d, past), c[2], c[3], c[4] / 1024}
}

// spreadCosts says what spread weighs, likewise.
func spreadCosts(n Node, set []int, d Demand) []int64 {
	var chosen, all int64
	for i, dev := range n.Devices {
		for _, s := range dev.Shares {
			all += s.Cores
			if slices.Contains(set, i) {
				chosen += s.Cores
			}
		}
	}
	c := costs(n, set, d)
	return []int64{chosen, all / int64(len(n.Devices)), c[2], c[4]}
}

// costsBy says what a policy weighs.
func costsBy(policy string, n Node, set []int, d Demand, past []Demand) []int64 {
	switch policy {
	case Weir:
		return weirCosts(n, set, d, past)
	case Spread:
		return spreadCosts(n, set, d)
	default:
		return costs(n, set, d)
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// bruteForce is the least cost of all possible placements, its node last; nil
// if none is possible. Policies compare nodes by the devices that they take there.
func bruteForce(policy string, s Snapshot, d Demand, past []Demand) []int64 {
	var best []int64
	for _, n := range s.Nodes {
		var onNode, fit []int64
		for bits := range 1 << len(n.Devices) {
			var set []int
			possible := true
			for i, dev := range n.Devices {
				if bits>>i&1 == 1 {
					set = append(set, i)
					possible = possible && len(brokenRules(n, dev, d)) == 0
				}
			}
			if !possible || len(set) != d.GPUs {
				continue
			}
			order, total := costs(n, set, d), costsBy(policy, n, set, d, past)
			if d.GPUs == 1 {
				order = total
			}
			if fit == nil || slices.Compare(order, fit) < 0 || slices.Equal(order, fit) && slices.Compare(total, onNode) < 0 {
				fit, onNode = order, total
			}
		}
		if onNode != nil {
			if total := append(onNode, n.ID); best == nil || slices.Compare(total, best) < 0 {
				best = total
			}
		}
	}
	return best
}

func TestPlaceAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		d.GPUs = max(d.GPUs, 1)
		if rapid.Bool().Draw(t, "open") {
			open(s)
		}
		past := slices.Repeat([]Demand{{GPUs: rapid.IntRange(1, 3).Draw(t, "past gpus"), Cores: rapid.Int64Range(1, 100).Draw(t, "past cores")},
			{GPUs: 1, Cores: 30}}, 3)
		name := rapid.SampledFrom(Policies()).Draw(t, "policy")
		choice, refusal := Place(s, d, mustPolicy(t, name, past))
		best := bruteForce(name, s, d, past)
		if (refusal == nil) != (best != nil) {
			t.Fatalf("refusal %+v, brute force %v", refusal, best)
		}
		if refusal != nil {
			return
		}
		n := s.Nodes[choice.Node-1]
		var set []int
		for _, g := range choice.Devices {
			set = append(set, slices.IndexFunc(n.Devices, func(dev Device) bool { return dev.ID == g.Device }))
		}
		plain := costs(n, set, d)
		total := append(costsBy(name, n, set, d, past), choice.Node)
		if !slices.Equal(total, best) && !(d.GPUs > 1 && name != BestFit && choice.Node == best[len(best)-1]) {
			t.Fatalf("%s: costs %v, brute force %v", name, total, best)
		}
		e := choice.Explanation
		if e.Policy != name || int64(e.Unlinked) != plain[2] || e.LeftoverCores != plain[3] || e.LeftoverMemoryMiB != plain[4] {
			t.Fatalf("explanation %+v, costs %v", e, plain)
		}
	})
}

func mustPolicy(t *rapid.T, name string, past []Demand) Policy {
	p, err := PolicyNamed(name, past)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLargestAgreesWithBruteForce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		var wantCores, wantMemory int64
		for c := d.Cores; c > 0 && wantCores == 0; c-- {
			smaller := d
			smaller.Cores = c
			if d.MemoryMiB > 0 {
				smaller.MemoryMiB = max(d.MemoryMiB*c/d.Cores, 1)
			}
			if d.GPUs == 0 || bruteForce("best-fit", s, smaller, nil) != nil {
				wantCores, wantMemory = c, smaller.MemoryMiB
			}
		}
		cores, memory := Largest(s, d)
		if cores != wantCores || memory != wantMemory {
			t.Fatalf("%d cores %d MiB, brute force %d and %d", cores, memory, wantCores, wantMemory)
		}
	})
}

func TestFiltersAgreeWithRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, d := drawPool(t), drawDemand(t)
		d.GPUs = max(d.GPUs, 1)
		for _, n := range s.Nodes {
			for _, dev := range n.Devices {
				alone := n
				alone.Devices = []Device{dev}
				got := Fits
				if _, refusal := Place(pool(alone), d, Policy{}); refusal != nil {
					got = refusal.Reason
				}
				want := append(brokenRules(n, dev, d), Fits)[0]
				if want == Fits && d.GPUs > 1 {
					want = TooFewDevices
				}
				if got != want {
					t.Fatalf("%+v: %v, want %v", dev, got, want)
				}
			}
		}
	})
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Min(0).Draw(t, "n")
		whole := rapid.Int64Range(1, 100).Draw(t, "whole")
		part := rapid.Int64Range(0, whole).Draw(t, "part")
		want := new(big.Int).Mul(big.NewInt(n), big.NewInt(part))
		want.Div(want, big.NewInt(whole))
		if got := scale(n, part, whole); want.Cmp(big.NewInt(got)) != 0 {
			t.Fatalf("%d·%d/%d = %d, want %v", n, part, whole, got, want)
		}
	})
}
