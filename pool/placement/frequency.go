package placement

import (
	"cmp"
	"slices"
)

// demandFrequency is a kind of demand and how often it came, as a part of all.
type demandFrequency struct {
	Demand
	frequency float64
}

// kindsOf are the different demands of a history, memory and project not
// counted, in an order that does not depend on the history's.
func kindsOf(history []Demand) (kinds []demandFrequency) {
	counts, sum := map[Demand]int{}, 0
	for _, d := range history {
		if d.valid() && !d.empty() {
			d.MemoryMiB, d.HostMemoryMiB, d.Project = 0, 0, 0
			counts[d]++
			sum++
		}
	}
	for d, count := range counts {
		kinds = append(kinds, demandFrequency{d, float64(count) / float64(sum)})
	}
	slices.SortFunc(kinds, func(a, b demandFrequency) int {
		return cmp.Or(cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.GPUs, b.GPUs),
			cmp.Compare(a.CPUMilli, b.CPUMilli), cmp.Compare(a.Model, b.Model))
	})
	return kinds
}
