package notifications

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"weir/models"
)

// maxAnswer is how many bytes of a response are stored.
const maxAnswer = 1 << 10

// outcome is the result of one attempt.
type outcome struct {
	done    bool
	refused bool          // the receiver rejected this message
	final   bool          // do not retry
	wait    time.Duration // Retry-After of the receiver
	status  int64
	answer  string
	problem models.Text
}

func failed(format models.Text) outcome { return outcome{problem: format} }

// excerpt is a printable, short form of text from a receiver.
func excerpt(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if text = strings.TrimSpace(text); len(text) > maxAnswer {
		text = strings.ToValidUTF8(text[:maxAnswer], "")
	}
	return text
}
