package config

import (
	"fmt"
	"strings"
)

// UsageError is a mistake in the command line or in the configuration. It
// lists every problem, not only the first.
type UsageError struct {
	Title    string
	Problems []string
}

func (e *UsageError) Error() string {
	if e.Title == "" {
		return strings.Join(e.Problems, "; ")
	}
	return strings.Join(append([]string{e.Title + ":"}, e.Problems...), "\n  ")
}

// problems are the problems of a configuration.
type problems []string

// require adds a problem unless ok.
func (p *problems) require(ok bool, problem string) {
	if !ok {
		*p = append(*p, problem)
	}
}

// Usagef is a UsageError with a single problem.
func Usagef(format string, args ...any) error {
	return &UsageError{Problems: []string{fmt.Sprintf(format, args...)}}
}
