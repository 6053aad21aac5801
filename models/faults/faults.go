package faults

import (
	"os"
	"syscall"
	"time"

	"weir/models"
)

// FromEnvironment arms the failpoint that WEIR_FAILPOINT names: at this step, the process ends as by
// kill -9. WEIR_CLOCK_OFFSET, a duration, is added to the machine's time. Call it before anything else.
func FromEnvironment() {
	models.ClockOffset, _ = time.ParseDuration(os.Getenv("WEIR_CLOCK_OFFSET")) // unset is no offset
	armed := os.Getenv("WEIR_FAILPOINT")
	if armed == "" {
		return
	}
	models.AtFailpoint = func(step string) {
		if step == armed {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}
