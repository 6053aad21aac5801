package baselines

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"

	"weir/pool/placement"
)

// Names of the policies.
const (
	Random     = "random"
	DotProduct = "dot-product"
	Clustering = "clustering"
	Packing    = "packing"
	BestFit    = "published-best-fit" // the pool has its own best-fit
	FGD        = "fgd"
)

// score is a node's, the better the higher, and the GPU that a demand for one
// GPU goes to; -1 is the tightest fit.
type score func(placement.Machine, placement.Demand) (score int32, gpu int)

var makers = []struct {
	name string
	make func(history []placement.Demand, random *rand.Rand) score
}{
	{Random, func(_ []placement.Demand, random *rand.Rand) score { return randomly(random) }},
	{DotProduct, simple(dotProduct)},
	{Clustering, simple(clustering)},
	{Packing, simple(packing)},
	{BestFit, simple(bestFit)},
	{FGD, func(history []placement.Demand, _ *rand.Rand) score { return newFragments(history).fgd }},
}

// Policies are the names that [Policy] knows: those of others, the simplest
// first, then the pool's own.
func Policies() []string {
	names := make([]string, len(makers))
	for i, m := range makers {
		names[i] = m.name
	}
	return append(names, placement.Policies()...)
}

// Policy is the policy of that name; it fails on a name that is none of
// [Policies]. What fgd and weir expect to come they learn from history, where
// a demand that stands twice is twice as likely. Random draws from random.
func Policy(name string, history []placement.Demand, random *rand.Rand) (placement.Policy, error) {
	for _, m := range makers {
		if m.name == name {
			lots := random
			if name != Random {
				lots = nil
			}
			return placement.Scored(name, m.make(history, random), lots), nil
		}
	}
	if slices.Contains(placement.Policies(), name) {
		return placement.PolicyNamed(name, history)
	}
	return placement.Policy{}, fmt.Errorf("unknown policy %q; must be one of %s", name, strings.Join(Policies(), ", "))
}

// simple is a policy that expects nothing and takes the GPUs that fit
// tightest.
func simple(of func(placement.Machine, placement.Demand) int32) func([]placement.Demand, *rand.Rand) score {
	return func([]placement.Demand, *rand.Rand) score {
		return func(m placement.Machine, d placement.Demand) (int32, int) { return of(m, d), -1 }
	}
}

// randomly takes any machine and any GPU that fits.
func randomly(random *rand.Rand) score {
	return func(m placement.Machine, d placement.Demand) (int32, int) {
		var fitting []int
		for i, left := range m.Left {
			if left >= milliOf(d) {
				fitting = append(fitting, i)
			}
		}
		if len(fitting) == 0 {
			return 0, -1
		}
		return 0, fitting[random.Intn(len(fitting))]
	}
}

// whole is one GPU in thousandths.
const whole = 1000

// The largest machine that the published scores are normalised by.
const (
	maxCPUMilli = 128_000
	maxGPUMilli = 8 * whole
)

// milliOf is what a demand takes of each GPU, in thousandths.
func milliOf(d placement.Demand) int32 {
	return int32(min(d.Cores, placement.Whole)) * (whole / placement.Whole)
}

func totalOf(d placement.Demand) int64 { return int64(d.GPUs) * int64(milliOf(d)) }

func free(m placement.Machine) (milli int64) {
	for _, left := range m.Left {
		milli += int64(left)
	}
	return milli
}

// dotProduct is 100·(1 − ½·a·b) with a the demand's and b the machine's free
// CPU and GPU as parts of the largest machine: Tetris (Grandl et al., SIGCOMM
// 2014) turned round, as the baseline of Weng et al. has it.
func dotProduct(m placement.Machine, d placement.Demand) int32 {
	product := float64(m.CPUMilli)/maxCPUMilli*(float64(d.CPUMilli)/maxCPUMilli) +
		float64(free(m))/maxGPUMilli*(float64(totalOf(d))/maxGPUMilli)
	return int32(100 * (1 - product/2))
}

// bestFit is 100·(1 − ½·CPU − ½·GPU) of what stays free, as parts of the
// largest machine. The published score is then stretched to 0..100 over the
// fitting machines, which leaves the best one the best.
func bestFit(m placement.Machine, d placement.Demand) int32 {
	rest := float64(m.CPUMilli-d.CPUMilli)/maxCPUMilli/2 + float64(free(m)-totalOf(d))/maxGPUMilli/2
	return int32(100 * (1 - rest))
}

// packing prefers GPUs in use to idle GPUs of a machine in use, and those to
// idle machines.
func packing(m placement.Machine, d placement.Demand) int32 {
	if d.GPUs == 0 {
		return 0
	}
	all := int32(len(m.Left))
	if free(m) == int64(all)*whole {
		return max(33-all, all)
	}
	idle, left := usedFirst(m, d)
	if idle > 0 {
		return max(33, 50-idle)
	}
	return max(50, 100-left/10)
}

// usedFirst is how many idle GPUs the demand needs beside those in use, and
// how much is left, in hundredths, on the ones it takes, the tightest first.
func usedFirst(m placement.Machine, d placement.Demand) (idle, left int32) {
	for _, gpu := range tightest(m, d) {
		left += m.Left[gpu] / 10
		if m.Left[gpu] == whole {
			idle++
		}
	}
	return idle, left
}

// tightest are the GPUs with the least left that suffices, the first among
// equals.
func tightest(m placement.Machine, d placement.Demand) []int {
	picked := make([]int, 0, d.GPUs)
	for least := milliOf(d); len(picked) < d.GPUs && least <= whole; {
		next := int32(whole + 1)
		for i, left := range m.Left {
			switch {
			case left == least && len(picked) < d.GPUs:
				picked = append(picked, i)
			case left > least:
				next = min(next, left)
			}
		}
		least = next
	}
	return picked
}

// clustering gathers demands of one size class (a fraction, 1 GPU, 2 GPUs, …)
// on the same machines, the fullest first: the Clustering baseline of Weng et
// al., after Gandiva (Xiao et al., OSDI 2018).
func clustering(m placement.Machine, d placement.Demand) int32 {
	if d.GPUs == 0 {
		return 0
	}
	wanted := 0
	if d.Cores == placement.Whole {
		wanted = d.GPUs
	}
	sizes := map[int64]int{} // of each holder
	for i := range m.Devices {
		for _, s := range m.Devices[i].Shares {
			if size, seen := sizes[s.Holder]; s.Cores < placement.Whole || seen && size == 0 {
				sizes[s.Holder] = 0
			} else {
				sizes[s.Holder] = size + 1
			}
		}
	}
	same, other := false, false
	for _, size := range sizes {
		same, other = same || size == wanted, other || size != wanted
	}
	score := int32(25 * (maxGPUMilli - free(m)) / maxGPUMilli)
	switch {
	case same && !other:
		return score + 75
	case same:
		return score + 50
	case !other:
		return score + 25
	}
	return score
}
