package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const catalogueFile = "web/catalogue/zh.json"

// The English text in the source is the key of its translation, so both must
// agree: none missing, none unused, and the same arguments in each.
func TestCatalogue(t *testing.T) {
	said := map[string]string{} // sentence → where
	for _, s := range sentences(tree(t)) {
		if s.problem != "" {
			t.Errorf("%s: %s", s.at, s.problem)
			continue
		}
		said[s.text] = s.at
	}
	translated := readCatalogue(t)

	var missing []string
	for _, text := range slices.Sorted(maps.Keys(said)) {
		translation, ok := translated[text]
		if !ok && hasWords(text) {
			missing = append(missing, fmt.Sprintf("  %s: %q,", quote(text), ""))
		} else if got, want := arguments(translation), arguments(text); ok && !maps.Equal(got, want) {
			t.Errorf("%s: %q: the translation %q uses arguments %v, not %v", said[text], text, translation, got, want)
		}
	}
	if len(missing) > 0 {
		t.Errorf("%s lacks %d sentences:\n%s", catalogueFile, len(missing), strings.Join(missing, "\n"))
	}
	for _, text := range slices.Sorted(maps.Keys(translated)) {
		if said[text] == "" {
			t.Errorf("%s: nothing says %s", catalogueFile, quote(text))
		}
	}
}

// hasWords reports whether a text needs a translation: “%s: ” does not.
func hasWords(text string) bool {
	return strings.ContainsFunc(verbPattern.ReplaceAllString(text, ""), unicode.IsLetter)
}

func readCatalogue(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, catalogueFile))
	if err != nil {
		t.Error(err)
		return nil
	}
	catalogue := map[string]string{}
	if err := json.Unmarshal(raw, &catalogue); err != nil {
		t.Errorf("%s: %v", catalogueFile, err)
	}
	for text, translation := range catalogue {
		if strings.TrimSpace(translation) == "" {
			t.Errorf("%s: %s has no translation", catalogueFile, quote(text))
		}
		if strings.Count(string(raw), quote(text)+":") > 1 {
			t.Errorf("%s: %s is there twice", catalogueFile, quote(text))
		}
	}
	return catalogue
}

// quote encodes a text as readable JSON.
func quote(text string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// verbPattern matches a verb of package fmt: flags, argument index, width,
// precision, verb.
var verbPattern = regexp.MustCompile(`%[-+#0 ]*(?:\[(\d+)\])?\d*(?:\.\d+)?([a-zA-Z%])`)

// arguments maps the number of each argument that a format uses to its verb,
// in any order.
func arguments(format string) map[int]string {
	used := map[int]string{}
	next := 1
	for _, m := range verbPattern.FindAllStringSubmatch(format, -1) {
		if m[2] == "%" {
			continue
		}
		if m[1] != "" {
			next, _ = strconv.Atoi(m[1])
		}
		used[next] = m[2]
		next++
	}
	return used
}

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		english, translation string
		same                 bool
	}{
		{"plain", "无", true},
		{"%d of %s", "%[2]s 的 %[1]d", true},
		{"%d of %s", "%s 的 %d", false},
		{"%d of %s", "%d", false},
		{"%.1f%%", "百分之 %.1f", true},
		{"%[1]s and %[1]s", "%s", true},
		{"%s", "%d", false},
	} {
		if same := maps.Equal(arguments(c.english), arguments(c.translation)); same != c.same {
			t.Errorf("%q and %q: same is %t", c.english, c.translation, same)
		}
	}
}
