//go:build failpoints

package models

import (
	"os"
	"syscall"
	"time"
)

// Failpoint kills the process, as kill -9 would, when WEIR_FAILPOINT names
// this step.
func Failpoint(step string) {
	if os.Getenv("WEIR_FAILPOINT") == step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

// WallClock is the machine's time plus WEIR_CLOCK_OFFSET.
func WallClock() time.Time {
	offset, _ := time.ParseDuration(os.Getenv("WEIR_CLOCK_OFFSET")) // unset is no offset
	return time.Now().Add(offset)
}
