package models

import "time"

// What programs for fault tests set before they start; see models/faults.
var (
	AtFailpoint func(step string) // nil: steps are not looked at
	ClockOffset time.Duration     // of [WallClock]
)

// Failpoint marks a step at which fault tests kill the process.
func Failpoint(step string) {
	if AtFailpoint != nil {
		AtFailpoint(step)
	}
}

// WallClock is the machine's time. Fault tests shift it.
func WallClock() time.Time { return time.Now().Add(ClockOffset) }
