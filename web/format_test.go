package web

import (
	"strings"
	"testing"

	"weir/models"
)

// Nothing is claimed of a share that does not hold.
func TestEnforcementInWords(t *testing.T) {
	for e, want := range map[string][2]string{
		models.EnforcedMPS:       {"MPS", "MPS: "},
		models.EnforcementLapsed: {"advisory, MPS daemon not running", "Advisory: the Multi-Process Service daemon of this GPU is not running. "},
		models.EnforcedAdvisory:  {"advisory", "Advisory: "},
	} {
		if got, means := enforcement(t.Context(), e), enforcementHelp(t.Context(), e); got != want[0] || !strings.HasPrefix(means, want[1]) {
			t.Errorf("%s: %q, %q", e, got, means)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 18204: "18,204", -1234567: "-1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
	if roundUp(-1, 50) != 50 || roundUp(50, 50) != 50 || roundUp(51, 50) != 100 {
		t.Error("roundUp does not end at the next step")
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "0%"}, {1, 0, "0%"}, {-1, 10, "0%"}, {1, 3, "33.33%"}, {30, 10, "100.00%"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}

func TestUnitsStayWithTheirNumbers(t *testing.T) {
	for text, want := range map[string]string{
		"8 GiB in use, 1 h 30 min": "8\u00a0GiB in use, 1\u00a0h 30\u00a0min",
		"90 秒":                     "90\u00a0秒",
		"3 shares":                 "3 shares",
		"2 hours":                  "2 hours",
		"5 ":                       "5 ",
	} {
		if got := keepUnits(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
