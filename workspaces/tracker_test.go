package workspaces

import (
	"testing"
	"time"

	"weir/workspaces/runtime"
)

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
