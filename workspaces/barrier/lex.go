package barrier

import (
	"strconv"
	"strings"

	"weir/models"
)

// token is a word, a string or one other character of the source.
type token struct {
	text     string
	from, to int // bytes of the source
}

// lexer splits a source into tokens. Comments, white space and the lines of the C
// preprocessor separate tokens (PTX ISA, sections 4.1 and 4.2).
type lexer struct {
	source string
	at     int
	inLine bool // a token has been in this line, so that “#” is one, too
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// next returns the next token; its text is empty at the end of the source.
func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil || l.at == len(l.source) {
		return token{from: l.at, to: l.at}, err
	}
	from := l.at
	l.inLine = true
	switch c := l.source[l.at]; {
	case c == '"':
		end := strings.IndexByte(l.source[from+1:], '"')
		if end < 0 {
			return token{}, l.refuse(from, models.Say("the string has no end"))
		}
		l.at = from + end + 2
	case isWordByte(c):
		l.word()
	default:
		l.at++
	}
	return token{l.source[from:l.at], from, l.at}, nil
}

// word skips an identifier, a number, or an operation code or variable with its
// suffixes, such as ld.shared::cta.b32.
func (l *lexer) word() {
	for l.at < len(l.source) {
		switch {
		case isWordByte(l.source[l.at]):
			l.at++
		case strings.HasPrefix(l.source[l.at:], "::"):
			l.at += 2
		default:
			return
		}
	}
}

// skip skips what separates tokens.
func (l *lexer) skip() error {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f\v", rest[0]) >= 0:
			l.inLine = l.inLine && rest[0] != '\n'
			l.at++
		case strings.HasPrefix(rest, "//") || rest[0] == '#' && !l.inLine:
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			l.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return l.refuse(l.at, models.Say("the comment has no end"))
			}
			l.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// refuse is an error about the line with a byte.
func (l *lexer) refuse(at int, reason models.Text) error {
	return refuse(1+strings.Count(l.source[:at], "\n"), reason)
}

// refuse is an error about a line.
func refuse(line int, reason models.Text) error {
	return models.Invalid("ptx", "line %d: %s", line, reason)
}

// integer parses an integer literal (PTX ISA, section 4.5.1).
func integer(s string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSuffix(s, "U"), 0, 64)
	return n, err == nil && !strings.Contains(s, "_") && s[0] >= '0' && s[0] <= '9'
}
