package fleet

import "math/rand"

// Policy names, as they are chosen by.
const (
	Random     = "random"
	DotProduct = "dot-product"
	Clustering = "clustering"
	Packing    = "packing"
	BestFit    = "best-fit"
	FGD        = "fgd"
	Weir       = "weir"
)

// Default is the policy to use where none was chosen.
const Default = Weir

// policy says where a task is best put. A score depends on nothing but the
// one machine and the task, so it holds until that machine changes.
type policy struct {
	// score is the better the higher, for a machine that fits.
	score func(*machine, *need) int32
	// pick is the task's GPUs on the machine that was chosen.
	pick func(*machine, *need) []int
	// premiums are added, by model, to the scores of all machines of that
	// model at the moment of a decision; nil adds nothing.
	premiums func(*need) []float64
	// random draws among the machines of the best score; nil takes the first.
	random *rand.Rand
}

// maker makes a policy for a fleet that expects a workload.
type maker struct {
	name string
	make func(*Fleet, []Task, *rand.Rand) policy
}

var makers = []maker{
	{Random, randomly},
	{DotProduct, simple(dotProduct)},
	{Clustering, simple(clustering)},
	{Packing, simple(packing)},
	{BestFit, simple(bestFit)},
	{FGD, fgd},
	{Weir, weir},
}

// Policies are the names that [New] knows, the simplest first.
func Policies() []string {
	names := make([]string, len(makers))
	for i, m := range makers {
		names[i] = m.name
	}
	return names
}

// simple makes a policy that expects nothing and takes the GPUs that fit
// tightest.
func simple(score func(*machine, *need) int32) func(*Fleet, []Task, *rand.Rand) policy {
	return func(*Fleet, []Task, *rand.Rand) policy { return policy{score: score, pick: tightest} }
}

// tightest picks the GPUs with the least left that suffices, the first among
// equals.
func tightest(m *machine, n *need) []int {
	picked := make([]int, 0, n.GPUs)
	for least := n.milli; len(picked) < n.GPUs; {
		next := int32(Whole + 1)
		for i, left := range m.left {
			switch {
			case left == least && len(picked) < n.GPUs:
				picked = append(picked, i)
			case left > least:
				next = min(next, left)
			}
		}
		least = next
	}
	return picked
}

// randomly takes any machine and any GPUs that fit.
func randomly(_ *Fleet, _ []Task, random *rand.Rand) policy {
	return policy{
		random: random,
		score:  func(*machine, *need) int32 { return 0 },
		pick: func(m *machine, n *need) []int {
			var fitting []int
			for i, left := range m.left {
				if left >= n.milli {
					fitting = append(fitting, i)
				}
			}
			random.Shuffle(len(fitting), func(i, j int) { fitting[i], fitting[j] = fitting[j], fitting[i] })
			return fitting[:n.GPUs]
		},
	}
}

// The largest machine that the published scores are normalised by.
const (
	maxCPUMilli = 128_000
	maxGPUMilli = 8 * Whole
)

// dotProduct is 100·(1 − ½·a·b) with a the task's and b the machine's free
// CPU and GPU as parts of the largest machine: Tetris (Grandl et al., SIGCOMM
// 2014) turned round, as the baseline of Weng et al. has it.
func dotProduct(m *machine, n *need) int32 {
	product := float64(m.cpu)/maxCPUMilli*(float64(n.CPUMilli)/maxCPUMilli) +
		float64(m.total)/maxGPUMilli*(float64(n.TotalMilli())/maxGPUMilli)
	return int32(100 * (1 - product/2))
}

// bestFit is 100·(1 − ½·CPU − ½·GPU) of what stays free, as parts of the
// largest machine. The published score is then stretched to 0..100 over the
// fitting machines, which leaves the best one the best.
func bestFit(m *machine, n *need) int32 {
	free := float64(m.cpu-n.CPUMilli)/maxCPUMilli/2 + float64(m.total-n.TotalMilli())/maxGPUMilli/2
	return int32(100 * (1 - free))
}

// packing prefers GPUs in use to idle GPUs of a machine in use, and those to
// idle machines: the Packing baseline of Weng et al. (USENIX ATC 2023).
func packing(m *machine, n *need) int32 {
	if n.GPUs == 0 {
		return 0
	}
	all := int32(len(m.left))
	if m.total == int64(all)*Whole {
		return max(33-all, all)
	}
	idle, left := usedFirst(m, n)
	if idle > 0 {
		return max(33, 50-idle)
	}
	return max(50, 100-left/10)
}

// usedFirst is how many idle GPUs the task needs beside those in use, and how
// much is left, in hundredths, on the ones it takes, the tightest first.
func usedFirst(m *machine, n *need) (idle, left int32) {
	missing := n.GPUs
	for least := n.milli; missing > 0; {
		next := int32(Whole + 1)
		for _, milli := range m.left {
			switch {
			case milli == least && missing > 0:
				missing--
				left += milli / 10
				if milli == Whole {
					idle++
				}
			case milli > least:
				next = min(next, milli)
			}
		}
		least = next
	}
	return idle, left
}

// clustering gathers tasks of one size class (a fraction, 1 GPU, 2 GPUs, …)
// on the same machines, the fullest first: the Clustering baseline of Weng et
// al. (USENIX ATC 2023), after Gandiva (Xiao et al., OSDI 2018).
func clustering(m *machine, n *need) int32 {
	if n.GPUs == 0 {
		return 0
	}
	classes := 0
	for _, count := range m.running {
		if count > 0 {
			classes++
		}
	}
	score := int32(25 * (maxGPUMilli - m.total) / maxGPUMilli)
	switch {
	case m.running[n.class] > 0 && classes == 1:
		return score + 75
	case m.running[n.class] > 0:
		return score + 50
	case classes == 0:
		return score + 25
	}
	return score
}
