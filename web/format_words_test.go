package web

import (
	"strings"
	"testing"
	"time"

	"weir/models"
)

// What the browser fills in is what the server writes.
func TestSpanFormats(t *testing.T) {
	for _, language := range []string{models.English, models.Chinese} {
		ctx := With(t.Context(), Page{Lang: language})
		formats := strings.Split(spanFormats(ctx), "|")
		for i, c := range []struct {
			length  time.Duration
			numbers []string
		}{{42 * time.Second, []string{"42"}}, {5 * time.Minute, []string{"5"}}, {3 * time.Hour, []string{"3"}},
			{3*time.Hour + 5*time.Minute, []string{"3", "5"}}, {72 * time.Hour, []string{"3"}}} {
			text := formats[i]
			for _, n := range c.numbers {
				text = strings.Replace(text, "%d", n, 1)
			}
			from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			if want := span(ctx, from, from.Add(c.length)); text != want {
				t.Errorf("%s: %v is %q, the browser writes %q", language, c.length, want, text)
			}
		}
	}
}

// A sentence begins with a capital letter, but not what somebody typed or named.
func TestBegun(t *testing.T) {
	english, chinese := With(t.Context(), Page{Lang: models.English}), With(t.Context(), Page{Lang: models.Chinese})
	for want, text := range map[string]models.Text{
		"Quota change for iris": models.Say("quota change for %s", "iris"),
		"iris submitted a request: new role in x: y.": models.Say("%s submitted a request: %s.", "iris",
			models.Say("new role in %s: %s", "x", "y")),
		"GPU cores: 5 requested": models.Say("%s: %s requested", models.Say("GPU cores"), "5"),
	} {
		if got := begun(english, text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := begun(chinese, text); got != TT(chinese, text) {
			t.Errorf("in Chinese %q", got)
		}
	}
}
