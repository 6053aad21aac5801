package web

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/models"
)

var said = regexp.MustCompile(`(?:\bT\(ctx, |models\.Say\()("(?:[^"\\]|\\.)*")`)

var verb = regexp.MustCompile(`%(?:\[(\d+)\])?[a-z%]`)

// TestCatalogue holds the Chinese catalogue to every text that the pages say.
func TestCatalogue(t *testing.T) {
	files, err := filepath.Glob("*.*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range said.FindAllSubmatch(text, -1) {
			english, err := strconv.Unquote(string(m[1]))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := catalogue[english]; !ok {
				t.Errorf("%s: no translation of %q", name, english)
			}
		}
	}
	for english, chinese := range catalogue {
		if !slices.Equal(verbs(english), verbs(chinese)) {
			t.Errorf("%q takes other arguments than %q", chinese, english)
		}
	}
}

// verbs lists a format's verbs in the order of their arguments.
func verbs(format string) []string {
	var out []string
	for i, m := range verb.FindAllStringSubmatch(format, -1) {
		n := i + 1
		if m[1] != "" {
			n, _ = strconv.Atoi(m[1])
		}
		out = append(out, strconv.Itoa(n)+m[0][len(m[0])-1:])
	}
	slices.Sort(out)
	return out
}

func TestNegotiate(t *testing.T) {
	for _, c := range []struct{ accept, cookie, want string }{
		{"", "", English},
		{"zh-CN,zh;q=0.9,en;q=0.8", "", Chinese},
		{"en-GB,en;q=0.9,zh;q=0.8", "", English},
		{"de, zh;q=0.5, en;q=0.4", "", Chinese},
		{"de", "", English},
		{"zh;q=0", "", English},
		{"zh;q=nonsense", "", English},
		{"en", "zh", Chinese},
		{"zh", "en", English},
		{"zh", "fr", Chinese},
	} {
		if got := Negotiate(c.accept, c.cookie); got != c.want {
			t.Errorf("Negotiate(%q, %q) = %q, want %q", c.accept, c.cookie, got, c.want)
		}
	}
}

func TestTextsInChinese(t *testing.T) {
	ctx := With(t.Context(), Page{Lang: Chinese})
	if got := T(ctx, "Only %d of %d cores are free now", 30, 50); !strings.Contains(got, "30") || strings.Contains(got, "cores") {
		t.Errorf("T says %q", got)
	}
	if got := TT(ctx, models.Say("never catalogued %d", 3)); got != "never catalogued 3" {
		t.Errorf("a text that is not in the catalogue reads %q", got)
	}
	if got := TT(t.Context(), models.Say("Home")); got != "Home" {
		t.Errorf("without a page, TT says %q", got)
	}
}
