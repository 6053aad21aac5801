package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// heeded are the signals that this process was not started to ignore, as nohup does with SIGHUP, and shells
// with SIGINT of programs in the background. Whoever catches a signal heeds it.
func heeded(signals ...os.Signal) []os.Signal { return slices.DeleteFunc(signals, signal.Ignored) }

// caught is the cause of a context that a signal has canceled.
type caught struct{ signal os.Signal }

func (c caught) Error() string { return c.signal.String() }

// canceledBySignal returns a context that the first signal cancels. A second one ends the process.
func canceledBySignal() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	if list := heeded(os.Interrupt, syscall.SIGTERM); len(list) > 0 { // none would stand for all
		signal.Notify(signals, list...)
	}
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(caught{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// SignalCode is the exit code of a program that the signal has ended which canceled the context of a
// command; 0 if none has.
func SignalCode(ctx context.Context) int {
	by, ok := errors.AsType[caught](context.Cause(ctx))
	if !ok {
		return 0
	}
	number, _ := by.signal.(syscall.Signal)
	return 128 + int(number)
}

// ForProgram returns the signals that are forwarded to a program, until stop is called.
func ForProgram() (signals chan os.Signal, stop func()) {
	signals = make(chan os.Signal, 8)
	if list := heeded(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT); len(list) > 0 {
		signal.Notify(signals, list...)
	}
	return signals, func() { signal.Stop(signals) }
}
