package config

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/term"
)

// logSettings are the settings of commands that log.
var logSettings = []setting{
	{name: "log-level", kind: "LEVEL", defaultText: "info",
		help: "log level: debug, info, warn or error",
		set:  into(func(c *Config) *slog.Level { return &c.LogLevel }, parseLevel)},
	{name: "log-format", kind: "FORMAT", defaultText: "auto",
		help: "log format: text, json, or auto (text on a terminal, otherwise json)",
		set:  into(func(c *Config) *string { return &c.LogFormat }, oneOf("auto", "text", "json"))},
}

func parseLevel(text string) (level slog.Level, err error) {
	if _, err := oneOf("debug", "info", "warn", "error")(strings.ToLower(text)); err != nil {
		return 0, err
	}
	return level, level.UnmarshalText([]byte(text))
}

// Logger writes to w at the configured level: text on a terminal and JSON
// otherwise, unless the format is set.
func (c Config) Logger(w io.Writer) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.LogLevel}
	if c.LogFormat == "text" || c.LogFormat == "auto" && IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// IsTerminal reports whether a reader or a writer is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
