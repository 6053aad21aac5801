package serving

import "math"

// Embed returns the embeddings of texts, each of which is at least one token. The parts compute several
// texts at the same time. Errors are those of [Sequence.Classify].
func (s *Sequence) Embed(texts [][]int32, normalize bool) (vectors [][]float32, err error) {
	var frames []frame
	at := 0
	for _, tokens := range texts {
		frames = append(frames, forward(len(tokens), at, tokenBytes(tokens)))
		at += len(tokens)
	}
	if vectors, err = s.results(frames); err == nil && normalize {
		for _, v := range vectors {
			scale(v)
		}
	}
	return vectors, err
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
