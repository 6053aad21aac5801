package runner

import (
	"bytes"
	"io"
	"sync"
)

// longestLine is how much of a line without an end is kept, in bytes.
const longestLine = 64 << 10

// output writes whole lines, one at a time, of several branches.
type output struct {
	sync.Mutex
	to io.Writer
}

// lines puts the name of a branch before each line.
type lines struct {
	*output
	prefix  string
	partial []byte
}

func (o *output) of(prefix string) *lines { return &lines{output: o, prefix: prefix} }

// Write never fails, so that a closed terminal does not end operators.
func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	for line := range bytes.Lines(b) {
		if l.partial = append(l.partial, line...); l.partial[len(l.partial)-1] == '\n' || len(l.partial) >= longestLine {
			l.end()
		}
	}
	return len(b), nil
}

// flush writes what has no end of line yet.
func (l *lines) flush() {
	l.Lock()
	defer l.Unlock()
	if len(l.partial) > 0 {
		l.end()
	}
}

// end ends a line and writes it, locked.
func (l *lines) end() {
	_, _ = l.to.Write(append([]byte(l.prefix), append(bytes.TrimSuffix(l.partial, []byte("\n")), '\n')...))
	l.partial = l.partial[:0]
}
