package serving

import (
	"errors"
	"math"
	"slices"
)

// Classify returns the logits of images, each of which is the bytes of its values in float32,
// little-endian, and has so many tokens. The parts compute several images at the same time.
// Any failure of a part is a *PartError; [ErrNotNumber] can be one of the images.
func (s *Sequence) Classify(tokens int, images [][]byte) (logits [][]float32, err error) {
	var frames []frame
	for i, image := range images {
		frames = append(frames, forward(tokens, i*tokens, image))
	}
	return s.results(frames)
}

// results are those of frames.
func (s *Sequence) results(frames []frame) (list [][]float32, err error) {
	err = s.model.computeAll(s.parts, frames, func(result []float32) { list = append(list, result) })
	if err == nil && slices.ContainsFunc(list, func(one []float32) bool { return slices.ContainsFunc(one, notNumber) }) {
		err = ErrNotNumber
	}
	return list, err
}

// ErrNotNumber is the error if a result has a value that is not finite.
var ErrNotNumber = errors.New("the result is not a number")

func notNumber(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }
