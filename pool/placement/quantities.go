package placement

import (
	"math"
	"math/bits"
)

// scale is n·part/whole rounded down, for n ≥ 0 and 0 ≤ part ≤ whole. The
// product takes 128 bits, because a snapshot's numbers are not trusted.
func scale(n, part, whole int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	quotient, _ := bits.Div64(hi, lo, uint64(whole))
	return int64(quotient)
}

// add sums two quantities, the first of them not negative: a negative second
// counts as nothing, and what would overflow stays at the maximum.
func add(sum, n int64) int64 {
	n = max(n, 0)
	if sum > math.MaxInt64-n {
		return math.MaxInt64
	}
	return sum + n
}
