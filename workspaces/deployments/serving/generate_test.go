package serving

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// Only the most probable tokens with the stated sum are drawn, and the same seed draws the same.
func TestSample(t *testing.T) {
	logits := []float32{0, 2, 1, -1} // 8.7 %, 64.4 %, 23.7 %, 3.2 %
	for topP, most := range map[float64]int{0.5: 1, 0.64: 1, 0.7: 2, 0.9: 3, 1: 4} {
		seen := map[int32]int{}
		random := rand.New(rand.NewPCG(1, 0))
		for range 4000 {
			token, err := choose(logits, Input{Temperature: 1, TopP: topP}, random)
			if err != nil {
				t.Fatal(err)
			}
			seen[token.ID]++
		}
		if len(seen) != most || seen[1] < 2400 {
			t.Errorf("%g: %v", topP, seen)
		}
	}
	for range 3 {
		a, errA := choose(logits, Input{Temperature: 2, TopP: 1}, rand.New(rand.NewPCG(9, 0)))
		b, errB := choose(logits, Input{Temperature: 2, TopP: 1}, rand.New(rand.NewPCG(9, 0)))
		if errA != nil || errB != nil || a.ID != b.ID {
			t.Errorf("%v, %v", a, b)
		}
	}
	if token, err := choose(logits, Input{}, nil); err != nil || token.ID != 1 {
		t.Errorf("%v, %v", token, err)
	}
}

// The largest values, and the fewest with a part of the sum, are those of a sorted list, also
// where values are equal.
func TestMostProbable(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 0))
	for range 20_000 {
		values, weights, order, sum := make([]float32, 1+random.IntN(40)), []float64{}, []int{}, 0.0
		for i := range values {
			values[i] = float32(random.IntN(1 + random.IntN(12)))
			weights, order = append(weights, float64(values[i])), append(order, i)
			sum += weights[i]
		}
		sorted := slices.Clone(order)
		slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
		if n := random.IntN(25); !slices.Equal(largest(values, n), sorted[:min(n, len(sorted))]) {
			t.Fatalf("the %d largest of %v are %v", n, values, largest(values, n))
		}
		p, n, have := random.Float64(), 0, 0.0
		for n < len(sorted) && (n == 0 || have < p*sum) {
			have += weights[sorted[n]]
			n++
		}
		if got, total := nucleus(order, weights, p, sum); sum > 0 && (!slices.Equal(got, sorted[:n]) || total != have) {
			t.Fatalf("%g of %v: %v with %g, want %v with %g", p, values, got, total, sorted[:n], have)
		}
	}
}
