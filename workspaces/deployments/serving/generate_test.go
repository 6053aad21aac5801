package serving

import (
	"math/rand/v2"
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
