package main

import (
	"io"
	"log/slog"
	"os"

	"golang.org/x/term"
)

// newLogger writes to w at the configured level: lines for a person on a
// terminal, JSON for a machine otherwise, unless the format is set.
func newLogger(c Config, w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
