package store

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// elapsed is a clock that cannot be set and that also counts suspended time.
func elapsed() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Duration(math.MaxInt64) // every lease has expired
	}
	return time.Duration(t.Nano())
}
