package graph

import (
	"cmp"
	"slices"
)

// CPU is a CPU of a machine.
type CPU struct {
	ID   int
	Node int     // of its memory (NUMA)
	Load float64 // 0 to 1
}

// Machine is n CPUs of one node with equal load.
func Machine(n int) []CPU {
	cpus := make([]CPU, max(0, n))
	for i := range cpus {
		cpus[i].ID = i
	}
	return cpus
}

// LeastLoaded are the n least loaded CPUs of a machine.
func LeastLoaded(m []CPU, n int) []CPU { return byLoad(m)[:n] }

// byLoad are the CPUs of a machine, the least loaded first; those of equal load in their order.
func byLoad(m []CPU) []CPU {
	return slices.SortedStableFunc(slices.Values(m), func(a, b CPU) int { return cmp.Compare(a.Load, b.Load) })
}

// take chooses n of the free CPUs, which are in order of load: those of the node whose n
// least loaded have the least load together, or if no node has as many, the least loaded of
// all. It returns their numbers in order, and the others.
func take(free []CPU, n int) (ids []int, rest []CPU) {
	if n == len(free) || !slices.ContainsFunc(free, func(c CPU) bool { return c.Node != free[0].Node }) {
		return idsOf(free[:n]), free[n:]
	}
	byNode := map[int][]CPU{}
	for _, c := range free {
		byNode[c.Node] = append(byNode[c.Node], c)
	}
	chosen, least := free[:n], -1.0
	for _, c := range free { // in their order, so that the choice does not depend on the map's
		own := byNode[c.Node]
		if len(own) < n {
			continue
		}
		sum := 0.0
		for _, one := range own[:n] {
			sum += one.Load
		}
		if least < 0 || sum < least {
			chosen, least = own[:n], sum
		}
		byNode[c.Node] = nil
	}
	ids = idsOf(chosen)
	for _, c := range free {
		if _, taken := slices.BinarySearch(ids, c.ID); !taken {
			rest = append(rest, c)
		}
	}
	return ids, rest
}

// idsOf are the numbers of CPUs, in order.
func idsOf(cpus []CPU) []int {
	ids := make([]int, len(cpus))
	for i, c := range cpus {
		ids[i] = c.ID
	}
	slices.Sort(ids)
	return ids
}
