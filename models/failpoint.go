//go:build !failpoints

package models

import "time"

// Failpoint marks a step at which fault tests kill the process. Without the
// build tag "failpoints" it does nothing.
func Failpoint(string) {}

// WallClock is the machine's time. Fault tests shift it.
func WallClock() time.Time { return time.Now() }
