package workspaces

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// However a text arrives, all of it before the first stop sequence is passed on, and nothing of
// that and behind it; a beginning of one is kept back only until it is none.
func TestStopSequences(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 4))
	word := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteRune([]rune("aäb")[random.IntN(3)])
		}
		return b.String()
	}
	for range 20_000 {
		var stops []string
		for range random.IntN(4) {
			stops = append(stops, word(1+random.IntN(4)))
		}
		first := func(text string) int {
			at := -1
			for _, stop := range stops {
				if i := strings.Index(text, stop); i >= 0 && (at < 0 || i < at) {
					at = i
				}
			}
			return at
		}
		s, given, passed := stopSequences{stops: stops}, "", ""
		for range 12 {
			piece := word(random.IntN(4))
			given += piece
			out, stopped := s.add(piece)
			passed += out
			if at := first(given); at >= 0 != stopped || stopped && passed != given[:at] {
				t.Fatalf("of %q with %q, %q was passed on, stopped: %t", given, stops, passed, stopped)
			}
			if stopped {
				break
			}
			begins := s.held == ""
			for _, stop := range stops {
				begins = begins || strings.HasPrefix(stop, s.held)
			}
			if passed+s.held != given || !begins {
				t.Fatalf("of %q with %q, %q is kept back, %q passed on", given, stops, s.held, passed)
			}
		}
	}
}
