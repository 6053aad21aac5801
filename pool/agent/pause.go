package agent

import (
	"math/rand/v2"
	"time"
)

const maxPause = 15 * time.Second // between attempts to reach the portal

// pause is the exponential backoff after consecutive failures, up to maxPause, with
// a jitter of half.
func pause(failures int) time.Duration { return pauseUpTo(maxPause, failures) }

func pauseUpTo(most time.Duration, failures int) time.Duration {
	d := min(most, time.Second<<min(max(failures-1, 0), 20))
	return d/2 + rand.N(d/2)
}
