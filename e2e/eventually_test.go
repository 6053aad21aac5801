package e2e

import (
	"testing"
	"time"
)

// eventually polls until look finds nothing missing any more, ever more seldom. What it says is
// missing is told when the time is over.
func eventually(t testing.TB, within time.Duration, look func() string) {
	t.Helper()
	deadline, pause := time.Now().Add(within), 20*time.Millisecond
	for missing := look(); missing != ""; missing = look() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still: %s", within, missing)
		}
		time.Sleep(pause)
		pause = longer(pause)
	}
}

// longer is the pause after one of a poll.
func longer(pause time.Duration) time.Duration { return min(pause*3/2, 250*time.Millisecond) }
