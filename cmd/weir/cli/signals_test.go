package cli

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
)

// nohup starts a program with an ignored signal: that is not caught again.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	signal.Ignore(syscall.SIGUSR1)
	defer signal.Reset(syscall.SIGUSR1)
	if list := heeded(syscall.SIGUSR1, syscall.SIGUSR2); !slices.Equal(list, []os.Signal{syscall.SIGUSR2}) {
		t.Errorf("%v are heeded", list)
	}
}
