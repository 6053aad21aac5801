package trace

import (
	"math/rand"
	"testing"

	"weir/pool/placement"
	"weir/pool/placement/baselines"
)

// mixed draws as many tasks anew from a list: of those that pick selects, the
// given share of all that use a GPU; CPU-only tasks stay as they are.
func mixed(pods []Pod, percent int, pick func(Pod) bool) (mix []Pod) {
	r := rand.New(rand.NewSource(7))
	var chosen, others []Pod
	for _, p := range pods {
		switch {
		case p.GPUs == 0:
			mix = append(mix, p)
		case pick(p):
			chosen = append(chosen, p)
		default:
			others = append(others, p)
		}
	}
	users := len(chosen) + len(others)
	for i := range users {
		from := others
		if i < users*percent/100 {
			from = chosen
		}
		mix = append(mix, from[r.Intn(len(from))])
	}
	return mix
}

// Weir's policy must be good on what it was never looked at with: the trace
// with other shares of tasks that name models, that take a fraction of a GPU,
// or that take several.
func TestWeirOnVariants(t *testing.T) {
	specs, plain := openb(t, "openb_pod_list_gpuspec10"), openb(t, "openb_pod_list_default")
	for _, c := range []struct {
		name    string
		from    Trace
		percent int
		pick    func(Pod) bool
		atMost  float64 // times what FGD leaves unallocated
	}{
		{"20% name models", specs, 20, func(p Pod) bool { return p.Model != "" }, 0.92},
		{"33% name models", specs, 33, func(p Pod) bool { return p.Model != "" }, 0.75},
		{"40% take a fraction", plain, 40, func(p Pod) bool { return p.Cores < placement.Whole }, 0.97},
		{"80% take a fraction", plain, 80, func(p Pod) bool { return p.Cores < placement.Whole }, 1},
		{"4% take several", plain, 4, func(p Pod) bool { return p.GPUs > 1 }, 1.02},
	} {
		tr := Trace{Nodes: c.from.Nodes, Pods: mixed(c.from.Pods, c.percent, c.pick)}
		fgd := 100 - replayed(t, tr, baselines.FGD, 1).Allocated[100]
		weir := 100 - replayed(t, tr, placement.Weir, 1).Allocated[100]
		t.Logf("%s: fgd leaves %.2f%%, weir %.2f%%", c.name, fgd, weir)
		if weir > c.atMost*fgd {
			t.Errorf("%s: fgd leaves %.2f%%, weir %.2f%%", c.name, fgd, weir)
		}
	}
}
