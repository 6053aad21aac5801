package cli

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// heeded are the signals that this process was not started to ignore, as nohup does, and shells do with
// programs in the background. Whoever catches a signal heeds it.
func heeded(signals ...os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }

// canceledBySignal returns a context that the first signal cancels.
func canceledBySignal() (context.Context, context.CancelFunc) {
	if list := heeded(os.Interrupt, syscall.SIGTERM); len(list) > 0 {
		return signal.NotifyContext(context.Background(), list...)
	}
	return context.WithCancel(context.Background())
}

// ForProgram returns the signals that are forwarded to a program, until stop is called.
func ForProgram() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 8)
	if list := heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT); len(list) > 0 { // none would stand for all
		signal.Notify(signals, list...)
	}
	return signals, func() { signal.Stop(signals) }
}
