package rules

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weir/models/store/storetest"
)

// formerWord is a word for which docs/glossary.md has another one.
type formerWord struct {
	pattern string // whole words, in any case
	use     string // the glossary's word
	where   place
}

// place is a set of the kinds of text that the glossary holds for.
type place int

const (
	inSentences place = 1 << iota // the English catalog
	inNames                       // of the API and of the database
	inDocs                        // README.md and docs
	everywhere  = inSentences | inNames | inDocs
)

var formerWords = []formerWord{
	{"peaks?", "limit", everywhere},
	{"promis(?:es?|ed)", "allocated, capacity", everywhere},
	{"held", "in use", everywhere},
	{"holds?", "use, in use", inSentences | inNames},
	{"rooms?", "available, remaining", everywhere},
	{"left", "remaining", inNames}, // people also leave a project
	{"hearings?", "request", everywhere},
	{"ask(?:s|ed)?", "request", inSentences | inNames},
	{"books?", "scheduler", everywhere},
	{"keepers?", "scheduler", everywhere},
	{"turn(?:s|ed)?", "position", inSentences | inNames},
	{"lines?", "queue", inSentences | inNames},
	{"forecasts?", "estimate", everywhere},
	{"notices?", "notification, grace period", everywhere},
	{"wish(?:es)?", "version constraint", everywhere},
	{"answer(?:s|ed)?", "decision, response", inSentences | inNames},
	{"reckon(?:s|ed)?", "computed", everywhere},
	{"nobody", "no one, none", everywhere},
}

// allowance is another meaning of a former word, in which it may stay.
type allowance struct{ pattern, why string }

var allowances = []allowance{
	{`(?:command|log|first|single|each|per) lines?|lines? %d|^(?:from_|until_)?line$`, "of text; the queue is not called so"},
	{`turned off|turn it on`, "a setting"},
	{`ask an? (?:project manager|administrator)`, "people ask each other; from Weir they request"},
	{`request[.-]asked`, "a type of notification, which webhooks subscribe to"},
	{`^left_at$`, "when a member left a project"},
}

// glossary finds former words.
type glossary struct {
	words      []*regexp.Regexp // one for each of formerWords
	allowances []*regexp.Regexp // one for each of allowances
	used       []bool           // which allowances were needed
}

func newGlossary() *glossary {
	g := &glossary{used: make([]bool, len(allowances))}
	for _, w := range formerWords {
		g.words = append(g.words, regexp.MustCompile(`(?i)\b(?:`+w.pattern+`)\b`))
	}
	for _, a := range allowances {
		g.allowances = append(g.allowances, regexp.MustCompile(`(?i)`+a.pattern))
	}
	return g
}

var camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// former lists the former words in a text, with the words to use instead.
func (g *glossary) former(text string, where place) (found []string) {
	for i, a := range g.allowances {
		if a.MatchString(text) {
			g.used[i], text = true, a.ReplaceAllString(text, "")
		}
	}
	if where == inNames {
		text = strings.ReplaceAll(camelCase.ReplaceAllString(text, "$1 $2"), "_", " ")
	}
	for i, w := range formerWords {
		if w.where&where == 0 {
			continue
		}
		if word := g.words[i].FindString(text); word != "" {
			found = append(found, quote(word)+" is former: use "+w.use)
		}
	}
	return found
}

// Pages, API, database and documentation call things by the glossary's words.
func TestGlossary(t *testing.T) {
	g := newGlossary()
	check := func(at, text string, where place) {
		t.Helper()
		for _, problem := range g.former(text, where) {
			t.Errorf("%s: %s: %s", at, quote(text), problem)
		}
	}
	for key, w := range readCatalog[wording](t, "en") {
		check("en.json: "+key, w.Other, inSentences)
		check("en.json: "+key, w.One, inSentences)
	}
	for _, name := range apiNames(t) {
		check("docs/openapi.json", name, inNames)
	}
	for _, dialect := range []string{"sqlite", "postgres"} {
		for _, name := range schemaNames(t, dialect) {
			check("migrations/"+dialect, name, inNames)
		}
	}
	for _, page := range documentation(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			check(page, line, inDocs)
		}
	}
	for i, a := range allowances {
		if !g.used[i] {
			t.Errorf("nothing needs the allowance %q (%s)", a.pattern, a.why)
		}
	}
}

// apiNames lists the names in docs/openapi.json: paths, operations, parameters,
// tags, schemas, properties and the values of enumerations.
func apiNames(t *testing.T) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	addNames(names, document)
	if len(names) < 500 {
		t.Errorf("docs/openapi.json has only %d names", len(names))
	}
	return slices.Sorted(maps.Keys(names))
}

func addNames(names map[string]bool, node any) {
	switch node := node.(type) {
	case []any:
		for _, element := range node {
			addNames(names, element)
		}
	case map[string]any:
		for key, value := range node {
			switch value := value.(type) {
			case map[string]any:
				if key == "properties" || key == "schemas" || key == "paths" {
					for name := range value {
						names[name] = true
					}
				}
			case []any:
				for _, element := range value {
					if name, ok := element.(string); ok && key == "enum" {
						names[name] = true
					}
				}
			case string:
				if key == "operationId" || key == "name" {
					names[value] = true
				}
			}
			addNames(names, value)
		}
	}
}

// schemaQueries list what a migrated database has: tables, columns, indexes and
// conditions, which contain the values of enumerations. PostgreSQL names a
// primary key after its table's first name; no query uses that name.
var schemaQueries = map[string]string{
	"sqlite": `SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' UNION
		SELECT c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' UNION
		SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL`,
	"postgres": `SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema() UNION
		SELECT column_name::text FROM information_schema.columns WHERE table_schema = current_schema() UNION
		SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() AND indexname NOT LIKE '%_pkey' UNION
		SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace`,
}

func schemaNames(t *testing.T, dialect string) (names []string) {
	t.Helper()
	db, err := storetest.Open(t, dialect).SQL()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.QueryContext(t.Context(), schemaQueries[dialect])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil || len(names) < 200 {
		t.Errorf("%s: only %d names, %v", dialect, len(names), err)
	}
	return names
}

func TestFormerWords(t *testing.T) {
	g := newGlossary()
	for _, c := range []struct {
		text   string
		where  place
		former int
	}{
		{"The Peak of this role", inSentences, 1},
		{"Speaking of upheld threshold rooms", inSentences, 1},
		{"3 GPU cores are promised, 2 held", inDocs, 2},
		{"askForPeak", inNames, 2},
		{"/projects/{id}/notices", inNames, 1},
		{"get-promises", inNames, 1},
		{"peak_gpu_cores", inNames, 1},
		{"left", inNames, 1},
		{"left_at", inNames, 0},
		{"3 left", inSentences, 0},
		{"You are third in line", inSentences, 1},
		{"line %d is not valid", inSentences, 0},
		{"Ask for a project", inSentences, 1},
		{"It was noticed in the grace period", inSentences, 0},
	} {
		if got := g.former(c.text, c.where); len(got) != c.former {
			t.Errorf("%q: %q, want %d", c.text, got, c.former)
		}
	}
}
