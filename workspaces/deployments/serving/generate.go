package serving

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Input is what to continue, and how.
type Input struct {
	Prompt      []int32 // tokens; at least one
	MaxTokens   int
	Temperature float64 // 0: the most probable token
	TopP        float64 // only the most probable tokens with this sum are drawn; 1: all
	Seed        uint64
	Logprobs    int     // of how many tokens at each position
	End         []int32 // tokens that end the text
}

// Token is a generated token.
type Token struct {
	ID      int32
	Logprob float64
	Top     []Candidate // the most probable ones first
}

// Candidate is a token with its logarithmic probability.
type Candidate struct {
	ID      int32
	Logprob float64
}

// Generate continues a prompt until a token of in.End, which is not passed to each, or the
// maximum; ended says which. Any failure of a part is a *PartError: nothing is guessed, and a
// part that was restarted meanwhile refuses a sequence that it does not have. [ErrNotNumber] is
// one of the model. An error of each ends it, too.
func (s *Sequence) Generate(in Input, each func(Token) error) (ended bool, err error) {
	at, next := 0, in.Prompt
	var logits []float32
	random := rand.New(rand.NewPCG(in.Seed, 0))
	for range in.MaxTokens {
		if logits, err = s.model.compute(s.parts, next, at); err != nil {
			return false, err
		}
		at += len(next)
		t, err := choose(logits, in, random)
		if err != nil {
			return false, err
		}
		if slices.Contains(in.End, t.ID) {
			return true, nil
		}
		if err := each(t); err != nil {
			return false, err
		}
		next = []int32{t.ID}
	}
	return false, nil
}

// choose returns the next token.
func choose(logits []float32, in Input, random *rand.Rand) (t Token, err error) {
	best := 0
	for i, x := range logits {
		if notNumber(x) {
			return t, ErrNotNumber
		}
		if x > logits[best] {
			best = i
		}
	}
	top, sum := float64(logits[best]), 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - top)
	}
	logprob := func(i int) float64 { return float64(logits[i]) - top - math.Log(sum) }
	if in.Temperature > 0 {
		best = sample(logits, top, in, random)
	}
	t = Token{ID: int32(best), Logprob: logprob(best)}
	for _, i := range largest(logits, in.Logprobs) {
		t.Top = append(t.Top, Candidate{int32(i), logprob(i)})
	}
	return t, nil
}

// largest returns the indices of the n largest values, of equal ones the first. It takes
// O(len(values)) if n is small, as few values are among the largest so far.
func largest(values []float32, n int) (list []int) {
	for i, x := range values {
		if n <= 0 || len(list) == n && x <= values[list[n-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, x, func(j int, x float32) int { // after those that are equal
			if values[j] >= x {
				return -1
			}
			return 1
		})
		list = slices.Insert(list, at, i)[:min(len(list)+1, n)]
	}
	return list
}

// sample draws a token by its probability at a temperature among the most probable ones; top
// is the largest logit.
func sample(logits []float32, top float64, in Input, random *rand.Rand) int {
	order, weights, sum := make([]int, len(logits)), make([]float64, len(logits)), 0.0
	for i, x := range logits {
		order[i], weights[i] = i, math.Exp((float64(x)-top)/in.Temperature)
		sum += weights[i]
	}
	if in.TopP < 1 {
		order, sum = nucleus(order, weights, in.TopP, sum)
	}
	left := random.Float64() * sum
	for _, i := range order {
		if left -= weights[i]; left < 0 {
			return i
		}
	}
	return order[0]
}

// nucleus returns the fewest tokens, the most probable ones first, that have the part p of the
// sum of all weights, and the sum of theirs. Weights below (1-p)·sum/n together have less than
// the rest, so they are not sorted; of weights that are almost equal, nearly all are.
func nucleus(order []int, weights []float64, p, sum float64) ([]int, float64) {
	least := (1 - p) * sum / float64(len(order))
	order = slices.DeleteFunc(order, func(i int) bool { return weights[i] < least })
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(weights[b], weights[a]), a-b) })
	needed, sum := p*sum, 0.0
	for n, i := range order {
		if sum += weights[i]; sum >= needed {
			return order[:n+1], sum
		}
	}
	return order, sum
}
