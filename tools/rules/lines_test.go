package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	maxLineLength = 140
	maxQuoted     = 42 // with its quotes
)

// quoted is a text in quotes on one line.
var quoted = regexp.MustCompile("\"(?:\\\\.|[^\"\\\\])*\"|`[^`]*`")

func TestLongLines(t *testing.T) {
	for _, s := range tree(t) {
		if s.test || s.generated {
			continue
		}
		for _, number := range s.long {
			t.Errorf("%s:%d has more than %d characters", s.path, number, maxLineLength)
		}
	}
}

func TestLongLinesAreCounted(t *testing.T) {
	sentence := strconv.Quote(strings.Repeat("a \"sentence\", ", 20))
	text := strings.Repeat("è", maxLineLength) + "\n" + strings.Repeat("x", maxLineLength+1) + "\nx\n" +
		sentence + "\n" + sentence + strings.Repeat("x", maxLineLength-maxQuoted+1)
	if got := longLines(text); !slices.Equal(got, []int{2, 5}) {
		t.Errorf("lines %d", got)
	}
}
