//go:build failpoints

package workspaces

import (
	"os"
	"syscall"
)

// Failpoint kills the process, as kill -9 would, when WEIR_FAILPOINT names
// this step.
func Failpoint(step string) {
	if os.Getenv("WEIR_FAILPOINT") == step {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}
