package estimates

import (
	"slices"
	"time"
)

// enoughSpans is how many finished spans an estimate takes.
const enoughSpans = 5

// Remaining estimates how much longer something lasts that has lasted for age:
// the median of what remained of those finished spans that were longer. With
// fewer than 5 of them it is the fallback, and false.
func Remaining(age time.Duration, spans []time.Duration, fallback time.Duration) (time.Duration, bool) {
	var rest []time.Duration
	for _, span := range spans {
		if span > age {
			rest = append(rest, span-age)
		}
	}
	if len(rest) < enoughSpans {
		return fallback, false
	}
	slices.Sort(rest)
	low, high := rest[(len(rest)-1)/2], rest[len(rest)/2]
	return low + (high-low)/2, true
}
