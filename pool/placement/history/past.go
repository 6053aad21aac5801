package history

import (
	"slices"
	"time"

	"weir/pool/placement"
)

// Past is what is known of one request.
type Past struct {
	Requested time.Time
	Started   *time.Time // nil: it never ran
	Ended     *time.Time // nil: it waits or runs
	Given     bool       // it was given its GPUs, even if it never ran
	Demand    placement.Demand
}

// assumedSpan is how long a job is taken to last where nothing was ever
// served from which to tell.
const assumedSpan = time.Hour

// Jobs makes jobs of what is known at now. Of a request that was never given
// anything, because it waits or somebody gave it up, nobody knows how long it
// would have lasted: it is assumed to last as long as the median of those that
// are over. One that was given its GPUs and failed before it ran lasts for
// nothing. Assumed is how many are guessed so, and span the guess.
func Jobs(past []Past, now time.Time) (jobs []Job, assumed int, span time.Duration) {
	span = typical(past)
	for _, p := range past {
		j := Job{Arrived: p.Requested, Demand: p.Demand}
		end := now
		if p.Ended != nil {
			end = *p.Ended
		}
		switch {
		case p.Started != nil:
			j.Lasts = max(end.Sub(*p.Started), 0)
		case !p.Given:
			j.Lasts = span
			assumed++
		}
		jobs = append(jobs, j)
	}
	return jobs, assumed, span
}

// typical is the median span of what has run and is over.
func typical(past []Past) time.Duration {
	var spans []time.Duration
	for _, p := range past {
		if p.Started != nil && p.Ended != nil {
			spans = append(spans, max(p.Ended.Sub(*p.Started), 0))
		}
	}
	if len(spans) == 0 {
		return assumedSpan
	}
	slices.Sort(spans)
	low, high := spans[(len(spans)-1)/2], spans[len(spans)/2]
	return low + (high-low)/2
}
