package serving

import (
	"cmp"
	"math"
	"slices"

	"weir/workspaces/shard"
)

// Embed returns the embeddings of texts, each of which is at least one token. Texts that have no more than
// most tokens together are computed at once, and the parts compute several of these at the same time. Errors
// are those of [Sequence.Classify].
func (s *Sequence) Embed(texts [][]int32, most int, normalize bool) ([][]float32, error) {
	frames, order := s.model.batches(texts, most)
	results, err := s.results(frames)
	if err != nil {
		return nil, err
	}
	vectors, at := make([][]float32, len(texts)), 0
	for i, f := range frames {
		for v := range slices.Chunk(results[i], len(results[i])/len(f.Texts)) {
			if normalize {
				scale(v)
			}
			vectors[order[at]] = v
			at++
		}
	}
	return vectors, nil
}

// batches divides texts into frames. Texts of the same length follow each other, which are computed together.
// The i-th text of the frames is that of number order[i].
func (m Model) batches(texts [][]int32, most int) (frames []frame, order []int) {
	for i := range texts {
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(texts[a]), len(texts[b])) })
	most = min(most, int(shard.ChunkTokens(int64(m.Hidden))))
	at := 0
	for first := 0; first < len(order); {
		var tokens []int32
		var lengths []int
		for _, i := range order[first:] {
			if len(lengths) > 0 && len(tokens)+len(texts[i]) > most {
				break
			}
			tokens, lengths = append(tokens, texts[i]...), append(lengths, len(texts[i]))
		}
		f := forward(len(tokens), at, bytesOf(tokens))
		f.Texts = lengths
		frames = append(frames, f)
		at, first = at+len(tokens), first+len(lengths)
	}
	return frames, order
}

// scale gives a vector the length 1, unless it is 0.
func scale(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 {
		return
	}
	for i, length := 0, math.Sqrt(sum); i < len(v); i++ {
		v[i] = float32(float64(v[i]) / length)
	}
}
