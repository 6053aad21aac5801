package workspaces

import (
	"strings"
	"testing"
	"time"

	"weir/models/store"
	"weir/workspaces/runtime"
)

// Where the clock is set, no start has lasted longer. A test cannot set it: the reading of the clock that nobody sets
// is part of the time.
func TestSpansAreIndependentOfTheClock(t *testing.T) {
	r := Reconciler{config: ReconcilerConfig{Store: &store.Store{Clock: time.Now}}}
	if now := r.now().String(); !strings.Contains(now, " m=") {
		t.Errorf("%s has no monotonic reading", now)
	}
}

// The time in which the progress of a start cannot be seen does not count as time without any.
func TestBlindTimeIsNoStall(t *testing.T) {
	at, one := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), &tracker{}
	pass := func(d time.Duration) time.Time {
		at = at.Add(d)
		return at
	}
	limit := runtime.StageStarting.Timeout()
	if one.stalled(runtime.StageStarting, at) {
		t.Fatal("it has just begun")
	}
	one.blind(pass(limit / 2))
	one.blind(pass(10 * limit))
	if one.stalled(runtime.StageStarting, pass(limit/3)) {
		t.Error("the cluster was away, and it counts")
	}
	if !one.stalled(runtime.StageStarting, pass(limit)) {
		t.Error("it never stalls")
	}
}
