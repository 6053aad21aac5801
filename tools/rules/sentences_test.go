package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sentence is a user-visible text in the source, or why it cannot be read.
type sentence struct{ text, at, problem string }

// textFunctions are the functions of each package that take a text, with the
// position of that argument.
var textFunctions = map[string]map[string]int{
	"models":       {"Say": 0, "Invalid": 1, "NotFound": 0, "Forbidden": 0, "Conflict": 0, "NoCapacity": 1, "RateLimited": 1, "Unavailable": 1, "NoSpace": 1},
	"models/store": {"found": 1, "nameTaken": 1}, // these two take the noun of a sentence
	"web":          {"T": 1},
}

// sentences collects all user-visible texts outside tests.
func sentences(sources []source) (found []sentence) {
	problems := problemsNames(sources)
	for _, s := range sources {
		if s.test {
			continue
		}
		r := reader{source: s, names: importNames(s), problems: problems[s.dir()]}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if arg := r.sentenceOf(n); arg != nil {
				found = append(found, r.read(arg)...)
			}
			return true
		})
	}
	return found
}

// reader finds the texts of one file.
type reader struct {
	source
	names    map[string]string // what the file calls each package of ours
	problems []string          // variables and fields of type models.Problems
}

// sentenceOf returns the expression of the text in a node, if any.
func (r reader) sentenceOf(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		pkg, name := r.callee(n.Fun)
		position, ok := textFunctions[pkg][name]
		if !ok && r.addsProblem(n.Fun) {
			position, ok = 1, true
		}
		if ok && position < len(n.Args) {
			return n.Args[position]
		}
	case *ast.CompositeLit:
		if pkg, name := r.callee(n.Type); pkg == "models" && name == "Text" {
			return fieldOf(n, "Format")
		}
	}
	return nil
}

// callee resolves a name to its package in this module and its name there.
func (r reader) callee(fun ast.Expr) (pkg, name string) {
	switch fun := fun.(type) {
	case *ast.Ident:
		return r.dir(), fun.Name
	case *ast.SelectorExpr:
		if x, ok := fun.X.(*ast.Ident); ok {
			return r.names[x.Name], fun.Sel.Name
		}
	}
	return "", ""
}

// addsProblem reports whether fun is the method Add of a models.Problems, not
// of a header or a wait group.
func (r reader) addsProblem(fun ast.Expr) bool {
	sel, ok := fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Add" && slices.Contains(r.problems, lastName(sel.X))
}

// read evaluates a literal. Only models and its store may pass variables: a text that is not
// literal has no key.
func (r reader) read(arg ast.Expr) []sentence {
	at := fmt.Sprintf("%s:%d", r.path, line(arg))
	if text, ok := literal(arg); ok {
		return []sentence{{text: text, at: at}}
	}
	if r.dir() == "models" || r.dir() == "models/store" {
		return nil
	}
	return []sentence{{at: at, problem: "the sentence must be a literal, or it has no translation"}}
}

// literal evaluates a string literal or a concatenation of them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, okLeft := literal(e.X)
		right, okRight := literal(e.Y)
		return left + right, okLeft && okRight && e.Op == token.ADD
	case *ast.ParenExpr:
		return literal(e.X)
	}
	return "", false
}

func fieldOf(lit *ast.CompositeLit, name string) ast.Expr {
	for _, element := range lit.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok && lastName(pair.Key) == name {
			return pair.Value
		}
	}
	return nil
}

// lastName is a in a, a in x.a, and a in *a, &a and (a).
func lastName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return lastName(e.X)
	case *ast.UnaryExpr:
		return lastName(e.X)
	case *ast.ParenExpr:
		return lastName(e.X)
	}
	return ""
}

// importNames maps a file's names of packages of this module to their paths.
func importNames(s source) map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		full, _ := strconv.Unquote(spec.Path.Value)
		own, ok := strings.CutPrefix(full, module+"/")
		if !ok {
			continue
		}
		name := path.Base(own)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = own
	}
	return names
}

// problemsNames finds the names of type models.Problems in each package:
// variables, parameters and fields. Names suffice: no package uses one name
// for a Problems and a header.
func problemsNames(sources []source) map[string][]string {
	found := map[string][]string{}
	for _, s := range sources {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				if isProblems(n.Type) {
					found[s.dir()] = append(found[s.dir()], identNames(n.Names)...)
				}
			case *ast.Field:
				if isProblems(n.Type) {
					found[s.dir()] = append(found[s.dir()], identNames(n.Names)...)
				}
			case *ast.AssignStmt:
				for i, value := range n.Rhs {
					if lit, ok := unaddressed(value).(*ast.CompositeLit); ok && isProblems(lit.Type) {
						found[s.dir()] = append(found[s.dir()], lastName(n.Lhs[i]))
					}
				}
			}
			return true
		})
	}
	return found
}

func isProblems(e ast.Expr) bool { return e != nil && lastName(e) == "Problems" }

func unaddressed(e ast.Expr) ast.Expr {
	if u, ok := e.(*ast.UnaryExpr); ok && u.Op == token.AND {
		return u.X
	}
	return e
}

func identNames(idents []*ast.Ident) (names []string) {
	for _, id := range idents {
		names = append(names, id.Name)
	}
	return names
}

func TestSentences(t *testing.T) {
	const code = `package pool
import (
	m "weir/models"
	"net/http"
)
type checker struct{ refused m.Problems }
func f(h http.Header, p *m.Problems, c *checker, format string) error {
	h.Add("Content-Type", "text/html; charset=utf-8")
	p.Add("name", "one %d", 1)
	c.refused.Add("name", "two")
	q := m.Problems{}
	(&q).Add("name", "three")
	_ = m.Text{Format: "four"}
	_ = m.Invalid("name", "fi" + ("ve"))
	_ = m.NotFound("six")
	_ = m.Unavailable(nil, "seven")
	Say("not a sentence")
	return m.Conflict(format)
}`
	file, err := parser.ParseFile(positions, "pool/x.go", code, 0)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	problems := 0
	for _, s := range sentences([]source{{path: "pool/x.go", file: file}}) {
		if s.problem != "" {
			problems++
			continue
		}
		texts = append(texts, s.text)
	}
	want := []string{"one %d", "two", "three", "four", "five", "six", "seven"}
	if !slices.Equal(texts, want) || problems != 1 {
		t.Errorf("got %q and %d problems, want %q and 1", texts, problems, want)
	}
}
