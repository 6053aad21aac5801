package barrier

import (
	"math/bits"
	"slices"
)

// bitset is a set of small numbers.
type bitset []uint64

func newBitset(n int) bitset         { return make(bitset, (n+63)/64) }
func (s bitset) set(i int)           { s[i/64] |= 1 << (i % 64) }
func (s bitset) clear(i int)         { s[i/64] &^= 1 << (i % 64) }
func (s bitset) contains(i int) bool { return s[i/64]>>(i%64)&1 != 0 }
func (s bitset) union(o bitset)      { each(s, o, func(a, b uint64) uint64 { return a | b }) }
func (s bitset) intersect(o bitset)  { each(s, o, func(a, b uint64) uint64 { return a & b }) }
func (s bitset) subset(o bitset) bool {
	for i := range s {
		if s[i]&^o[i] != 0 {
			return false
		}
	}
	return true
}
func (s bitset) without(o bitset) bitset {
	c := slices.Clone(s)
	each(c, o, func(a, b uint64) uint64 { return a &^ b })
	return c
}

func each(s, o bitset, f func(a, b uint64) uint64) {
	for i := range s {
		s[i] = f(s[i], o[i])
	}
}

func (s bitset) fill() {
	for i := range s {
		s[i] = ^uint64(0)
	}
}

func (s bitset) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// members are the numbers in the set.
func (s bitset) members() (list []int) {
	for i := range 64 * len(s) {
		if s.contains(i) {
			list = append(list, i)
		}
	}
	return list
}
