package handlers

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/policies"
)

var writeScopes = flag.Bool("write-scopes", false, "write testdata/scopes.txt anew, to be read and judged")

const scopesTable = "testdata/scopes.txt"

// limit gives each persona that scopesOf may ask as a token for each scope.
func (s *scene) limit(app *App) map[string]string {
	s.Helper()
	tokens := map[string]string{}
	for _, persona := range capable {
		for _, scope := range models.TokenScopes {
			in := policies.NewToken{Name: "only " + string(scope), Scopes: []models.TokenScope{scope}}
			_, secret, err := app.Accounts.CreateTokenFor(s.Context(), policies.System("test"), cast[persona], in)
			if err != nil {
				s.Fatal(err)
			}
			tokens[persona+" "+string(scope)] = secret
		}
	}
	return tokens
}

// capable are personas, those with the most rights first.
var capable = []string{"administrator", "owner", "manager", "member"}

// ableTo is a persona whom the access table allows a request; empty if none.
func ableTo(results []string) string {
	for _, persona := range capable {
		if len(results) > 0 && results[slices.Index(personas, persona)] == "ok" {
			return persona
		}
	}
	return ""
}

// scopesOf lists the scopes with which an allowed request is not refused. Every refusal
// names the missing scope.
func (s *scene) scopesOf(t *testing.T, g *stage, a asks, persona string) string {
	var enough []string
	for _, scope := range models.TokenScopes {
		r := s.request(t, a, persona)
		r.Header.Set("Authorization", "Bearer "+s.limited[persona+" "+string(scope)])
		rec := serveBriefly(g.app(t), r)
		said, changed := readResult(t, r, rec)
		if changed {
			g.clear()
		}
		if said == "ok" {
			enough = append(enough, string(scope))
		} else if h := rec.Header().Get("WWW-Authenticate"); rec.Code != http.StatusForbidden || !strings.HasPrefix(h, `Bearer error="insufficient_scope", scope="`) {
			t.Errorf("%s with scope %s as %s: %d, WWW-Authenticate: %s", a, scope, persona, rec.Code, h)
		}
	}
	return strings.Join(enough, " ")
}

// Every route admits tokens with the scopes that the table names, and no others. The
// document names the least of them. A route that is new needs its line there: run this
// test with -write-scopes, and judge each line that it adds.
func TestScopesTable(t *testing.T) {
	s := newScene(t)
	g := &stage{scene: s}
	defer g.clear()
	access, table, documented := readTable(t), readScopes(t), documentedScopes()
	var b strings.Builder
	for _, a := range every(s.app) {
		who := ableTo(access[a])
		if a.where == "foreign" || a.where == "mixed" || who == "" {
			continue
		}
		got := s.scopesOf(t, g, a, who)
		fmt.Fprintf(&b, "%s %s\n", a, got)
		if want, ok := table[a]; !*writeScopes && (!ok || want != got) {
			t.Errorf("%s as %s with one of %q, the table says %q", a, who, got, want)
		}
		delete(table, a)
		if scope, ok := documented[a.method+" "+a.path]; ok && !leastOf(scope, got) {
			t.Errorf("%s: the document names the scope %s, enough are %s", a, scope, got)
		}
	}
	if *writeScopes {
		if err := os.WriteFile(scopesTable, []byte(scopesHead+b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for a := range table {
		t.Errorf("there is no route for the line %s", a)
	}
}

const scopesHead = `# Which scope of an access token is enough for each route, of those that its user may
# use; see access.txt for the first columns.
`

func readScopes(t *testing.T) map[asks]string {
	t.Helper()
	table := map[asks]string{}
	raw, err := os.ReadFile(scopesTable)
	if err != nil && !*writeScopes {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 2 && !strings.HasPrefix(line, "#") {
			table[asks{f[0], f[1], f[2]}] = strings.Join(f[3:], " ")
		}
	}
	return table
}

// documentedScopes are the scopes of operations in the document, by method and route.
func documentedScopes() map[string]string {
	scopes := map[string]string{}
	for path, item := range describe().Paths {
		route := apiPrefix + strings.NewReplacer("{", ":", "}", "").Replace(path)
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete} {
			if op != nil && requiredScope(op) != "" {
				scopes[method+" "+route] = string(requiredScope(op))
			}
		}
	}
	return scopes
}

// leastOf reports whether a scope is enough and is included in all that are.
func leastOf(scope, enough string) bool {
	for _, s := range strings.Fields(enough) {
		if !models.Covers([]models.TokenScope{models.TokenScope(s)}, models.TokenScope(scope)) {
			return false
		}
	}
	return slices.Contains(strings.Fields(enough), scope)
}
