package graph

import (
	"cmp"
	"slices"
)

// split gives each of some times at least 1 of the CPUs, and each further one to the time
// that is the longest by then, of equal ones to the larger remainder: the longest time per CPU
// becomes as short as it can be. There must be at least as many CPUs as times.
func split(times []float64, cpus int) []int {
	shares := slices.Repeat([]int{1}, len(times))
	for range cpus - len(times) {
		last := 0
		for i, t := range times {
			if own, most := t/float64(shares[i]), times[last]/float64(shares[last]); own > most || own == most && t > times[last] {
				last = i
			}
		}
		shares[last]++
	}
	return shares
}

// equal gives all the same number of CPUs, and the first ones what remains.
func equal(n, cpus int) []int {
	shares := make([]int, n)
	for i := range shares {
		shares[i] = cpus / n
		if i < cpus%n {
			shares[i]++
		}
	}
	return shares
}

// longest is the longest time on its CPUs.
func longest(times []float64, shares []int) (most float64) {
	for i, t := range times {
		most = max(most, t/float64(shares[i]))
	}
	return most
}

// waves cuts branches into groups of at most size, of which the longest are first.
func waves(branches []int, times []float64, size int) [][]int {
	if len(branches) > size {
		branches = slices.Clone(branches)
		slices.SortStableFunc(branches, func(a, b int) int { return cmp.Compare(times[b], times[a]) })
	}
	return slices.Collect(slices.Chunk(branches, size))
}
