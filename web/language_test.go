package web

import (
	"strings"
	"testing"

	"weir/models"
)

func TestNegotiate(t *testing.T) {
	for _, c := range []struct{ accept, cookie, want string }{
		{"", "", models.English},
		{"zh-CN,zh;q=0.9,en;q=0.8", "", models.Chinese},
		{"en-GB,en;q=0.9,zh;q=0.8", "", models.English},
		{"de, zh;q=0.5, en;q=0.4", "", models.Chinese},
		{"de", "", models.English},
		{"zh;q=0", "", models.English},
		{"zh;q=nonsense", "", models.English},
		{"en", "zh", models.Chinese},
		{"zh", "en", models.English},
		{"zh", "fr", models.Chinese},
	} {
		if got := Negotiate(c.accept, c.cookie); got != c.want {
			t.Errorf("Negotiate(%q, %q) = %q, want %q", c.accept, c.cookie, got, c.want)
		}
	}
}

func TestTextsInChinese(t *testing.T) {
	ctx := With(t.Context(), Page{Lang: models.Chinese})
	if got := T(ctx, "Only %d of %d GPU cores are available now", 30, 50); !strings.Contains(got, "30") || strings.Contains(got, "cores") {
		t.Errorf("T says %q", got)
	}
	if got := TT(ctx, models.Say("never cataloged %d", 3)); got != "never cataloged 3" {
		t.Errorf("a text that is not in the catalog reads %q", got)
	}
	if got := TT(t.Context(), models.Say("Home")); got != "Home" {
		t.Errorf("without a page, TT says %q", got)
	}
}
