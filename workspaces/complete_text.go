package workspaces

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// partialText is text whose last character may not be complete.
type partialText struct{ left []byte }

// add returns the characters that further bytes complete. What is no UTF-8 is U+FFFD.
func (p *partialText) add(bytes string) string {
	var b strings.Builder
	for p.left = append(p.left, bytes...); len(p.left) > 0 && utf8.FullRune(p.left); {
		r, size := utf8.DecodeRune(p.left)
		b.WriteRune(r)
		p.left = p.left[size:]
	}
	return b.String()
}

// errStopped ends a completion at a stop sequence.
var errStopped = errors.New("a stop sequence was generated")

// stopSequences keeps back what can be the beginning of a sequence at which a completion ends.
type stopSequences struct {
	stops []string
	held  string
}

// add returns what of the text so far can be passed on, and whether it has reached a stop sequence,
// before which it ends.
func (s *stopSequences) add(text string) (piece string, stopped bool) {
	s.held += text
	end, held := len(s.held), 0
	for _, stop := range s.stops {
		if i := strings.Index(s.held, stop); i >= 0 && i < end {
			end, stopped = i, true
		}
		for n := min(len(stop)-1, len(s.held)); n > held; n-- {
			if strings.HasSuffix(s.held, stop[:n]) {
				held = n
			}
		}
	}
	if !stopped {
		end -= held
	}
	piece, s.held = s.held[:end], s.held[end:]
	return piece, stopped
}
