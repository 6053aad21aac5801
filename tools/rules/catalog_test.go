package rules

import (
	"encoding/json"
	"iter"
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

const catalogDir = "models/catalog"

// wording is a sentence of the catalog: one form, or the singular and the
// plural.
type wording struct {
	One, Other string
	Count      int
}

func (w *wording) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &w.Other)
	}
	type plain wording
	return json.Unmarshal(b, (*plain)(w))
}

// The source says a sentence in English. The catalog gives each a key, by
// which rows keep it, and its translation: none may be missing or left over,
// and all forms take the same arguments.
func TestCatalog(t *testing.T) {
	said := map[string]string{} // sentence → where
	for _, s := range sentences(tree(t)) {
		if s.problem != "" {
			t.Errorf("%s: %s", s.at, s.problem)
			continue
		}
		said[s.text] = s.at
	}
	english, chinese := readCatalog[wording](t, "en"), readCatalog[wording](t, "zh")
	keys := map[string]string{}
	for key, w := range english {
		if other := keys[w.Other]; other != "" {
			t.Errorf("en.json: %s and %s are the same sentence", key, other)
		}
		keys[w.Other] = key
		if said[w.Other] == "" {
			t.Errorf("en.json: nothing says %s: %q", key, w.Other)
		}
		if translation, ok := chinese[key]; !ok || strings.TrimSpace(translation.Other) == "" {
			t.Errorf("zh.json lacks %s: %q", key, w.Other)
		} else if got, want := arguments(translation.Other), arguments(w.Other); !maps.Equal(got, want) {
			t.Errorf("zh.json: %s uses arguments %v, not %v", key, got, want)
		}
		if used := arguments(w.Other); w.One != "" && (!maps.Equal(arguments(w.One), used) || used[w.Count] != "d") {
			t.Errorf("en.json: %s: the singular takes other arguments, or argument %d is no number", key, w.Count)
		}
	}
	for key := range chinese {
		if _, ok := english[key]; !ok {
			t.Errorf("zh.json: there is no key %s", key)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		if keys[text] == "" && hasWords(text) {
			t.Errorf("%s: en.json and zh.json lack %s", said[text], quote(text))
		}
	}
}

// A translation that takes arguments of one verb in another order than the
// English sentence says so with their numbers, which nothing else would miss.
// These are all such sentences.
func TestOrderOfArguments(t *testing.T) {
	want := map[string]string{
		"another-named-already-exists":                     "2s 1s",
		"more-requested-for-members-of-the-projects-quota": "1s 3d 2s 5s 4s",
		"not-allowed-does-not-have-permission-in":          "1s 3s 2s",
		"of-cores": "2s 1s",
		"on-average-of-gpu-cores-allocated-to-members":     "2d 1d 3s",
		"on-among-machines-with-suitable-devices-cores":    "2s 1s 4d 5d 3s 6s 7d",
		"on-among-suitable-devices-cores-remain-available": "2s 1s 4d 3s 5d",
		"on-of-gpus-cores-remain-there":                    "2s 1s 4d 3s 5d",
		"on-of-gpus-on-machines-cores-remain-there":        "2s 1s 5d 4d 3s 6d 7s",
		"on-of-gpus-now-full":                              "2s 1s 4d 3s",
		"on-of-gpus-on-machines-now-full":                  "2s 1s 5d 4d 3s 6s",
		"people-are-in-the-department-move-them-to":        "2s 1d",
		"remove-the-sign-in-from":                          "2s 1s",
		"the-share-of-on-ends-at":                          "2s 1s",
	}
	got := map[string]string{}
	chinese := readCatalog[wording](t, "zh")
	for key, w := range readCatalog[wording](t, "en") {
		if order := orderOf(chinese[key].Other); order != orderOf(w.Other) {
			got[key] = order
		}
	}
	for key, order := range got {
		if want[key] != order {
			t.Errorf("zh.json: %s takes its arguments in the order %q; listed is %q", key, order, want[key])
		}
	}
	for key, order := range want {
		if got[key] == "" {
			t.Errorf("zh.json: %s takes its arguments in the English order, not in %q", key, order)
		}
	}
}

// Rows from before there were keys have formats of their time, which must
// still lead to a sentence that takes the same arguments.
func TestFormerSentences(t *testing.T) {
	english := readCatalog[wording](t, "en")
	for format, key := range readCatalog[string](t, "former") {
		if w, ok := english[key]; !ok || !maps.Equal(arguments(format), arguments(w.Other)) {
			t.Errorf("former.json: %q leads to %s, which is %q", format, key, w.Other)
		}
	}
}

// hasWords reports whether a text needs a translation: “%s: ” does not.
func hasWords(text string) bool {
	return strings.ContainsFunc(verbPattern.ReplaceAllString(text, ""), unicode.IsLetter)
}

func readCatalog[V any](t *testing.T, name string) map[string]V {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, catalogDir, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]V{}
	if err := json.Unmarshal(raw, &entries); err != nil {
		t.Fatalf("%s.json: %v", name, err)
	}
	if n := strings.Count(string(raw), "\n  \""); n != len(entries) {
		t.Errorf("%s.json has %d lines with a key and %d keys: one is there twice", name, n, len(entries))
	}
	return entries
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
	for number, verb := range inOrder(format) {
		used[number] = verb
	}
	return used
}

// orderOf is the arguments of a format in the order in which it uses them:
// "2s 1d" for "%[2]s of %[1]d".
func orderOf(format string) string {
	var order []string
	for number, verb := range inOrder(format) {
		order = append(order, strconv.Itoa(number)+verb)
	}
	return strings.Join(order, " ")
}

// inOrder are the arguments of a format, their numbers and verbs.
func inOrder(format string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		next := 1
		for _, m := range verbPattern.FindAllStringSubmatch(format, -1) {
			if m[2] == "%" {
				continue
			}
			if m[1] != "" {
				next, _ = strconv.Atoi(m[1])
			}
			if !yield(next, m[2]) {
				return
			}
			next++
		}
	}
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
