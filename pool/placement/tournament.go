package placement

import "math/bits"

// tournament has the costs of some machines in a tree: that of the i-th is at
// [leaves+i], and [i] is the lower of [2i] and [2i+1].
type tournament []cost

func newTournament(machines int) tournament {
	t := make(tournament, 2<<bits.Len(uint(max(machines, 1)-1)))
	for i := range t {
		t[i] = unfit
	}
	return t
}

func (t tournament) leaf(i int) cost { return t[len(t)/2+i] }

func (t tournament) set(i int, c cost) {
	i += len(t) / 2
	for t[i] != c {
		t[i] = c
		if i /= 2; i == 0 {
			return
		}
		c = min(t[2*i], t[2*i+1])
	}
}

// top is the lowest cost of all.
func (t tournament) top() cost { return t[1] }

// first is the number of the first machine with the lowest cost.
func (t tournament) first() int {
	i := 1
	for i < len(t)/2 {
		if i *= 2; t[i] != t[1] {
			i++
		}
	}
	return i - len(t)/2
}
