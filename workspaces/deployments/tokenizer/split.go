package tokenizer

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// gpt2 is the pattern of the pre-tokenizer ByteLevel.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+` + lastSpace

// lastSpace ends patterns: of spaces before a word the last one is not taken. It is done
// without a regular expression, because those of Go cannot look ahead.
const lastSpace = `|\s+(?!\S)|\s+`

// spaces is the property White_Space of Unicode, as a part of a class. \s of Go is ASCII only.
const spaces = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`

// compile translates a pattern to one of Go. Patterns that would mean something else are
// refused.
func compile(pattern string) (splitter, error) {
	words, ok := strings.CutSuffix(pattern, lastSpace)
	if !ok {
		return nil, fmt.Errorf("the pattern %.200q does not end with %s", pattern, lastSpace)
	}
	var b strings.Builder
	inClass := false
	for i := 0; i < len(words); i++ {
		switch c := words[i]; {
		case c == '\\' && i+1 < len(words):
			i++
			switch next := words[i]; {
			case next == 's' && inClass:
				b.WriteString(spaces)
			case next == 's':
				b.WriteString("[" + spaces + "]")
			case next == 'p' || next == 'r' || next == 'n' || next == 't' || !isWord(next):
				b.Write([]byte{c, next})
			default:
				return nil, fmt.Errorf(`the pattern has \%c`, next)
			}
		case strings.ContainsRune("^$.", rune(c)) && !inClass, c == '[' && inClass, c == '&' && inClass:
			return nil, fmt.Errorf("the pattern has %q", c)
		default:
			if c == '[' || c == ']' {
				inClass = c == '['
				if inClass && i+1 < len(words) && words[i+1] == '^' {
					i++
					b.WriteString("[^")
					continue
				}
			}
			b.WriteByte(c)
		}
	}
	compiled, err := regexp.Compile("^(?:" + b.String() + ")")
	if err != nil {
		return nil, errors.New("the pattern cannot be used")
	}
	return func(text string) []string { return splitBy(compiled, text) }, nil
}

func isWord(c byte) bool {
	return c >= utf8.RuneSelf || c == '_' || unicode.IsLetter(rune(c)) || unicode.IsDigit(rune(c))
}

// splitBy cuts a text into what matches at its beginning, spaces, and what is between.
func splitBy(pattern *regexp.Regexp, text string) (pieces []string) {
	other := 0 // bytes that nothing has matched
	flush := func(n int) {
		if other > 0 {
			pieces = append(pieces, text[:other])
		}
		pieces = append(pieces, text[other:other+n])
		text, other = text[other+n:], 0
	}
	for other < len(text) {
		rest := text[other:]
		n := 0
		if found := pattern.FindStringIndex(rest); found != nil {
			n = found[1]
		}
		if n == 0 {
			n = spacesOf(rest)
		}
		if n > 0 {
			flush(n)
			continue
		}
		_, size := utf8.DecodeRuneInString(rest)
		other += size
	}
	if other > 0 {
		pieces = append(pieces, text)
	}
	return pieces
}

// spacesOf is what lastSpace matches: all spaces at the end of a text, else all but the last.
func spacesOf(text string) int {
	last, n := 0, 0
	for i, r := range text {
		if !unicode.IsSpace(r) {
			if last > 0 {
				return last
			}
			return n
		}
		last, n = i, i+utf8.RuneLen(r)
	}
	return n
}

// splitDigits makes each digit a piece, or all that follow on each other.
func splitDigits(each bool) splitter {
	return func(text string) (pieces []string) {
		from, digits := 0, false
		for i, r := range text {
			isDigit := unicode.IsNumber(r)
			if i > from && (isDigit != digits || isDigit && each) {
				pieces, from = append(pieces, text[from:i]), i
			}
			digits = isDigit
		}
		return append(pieces, text[from:])
	}
}

// prefixSpace puts a space before a text that has none there.
func prefixSpace(text string) []string {
	if strings.HasPrefix(text, " ") {
		return []string{text}
	}
	return []string{" " + text}
}
