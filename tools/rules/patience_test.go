package rules

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"testing"
	"time"
)

// minPatience is how long a test waits at least for what has to happen: a busy machine
// is slow, and what is quick ends the wait early.
const minPatience = time.Minute

// shortBounds are the shorter bounds of tests, by file and expression, and why each is
// no patience.
var shortBounds = map[string]string{
	"models/store/store_test.go: context.WithTimeout of 200ms":          "a second claim has to wait until it ends",
	"policies/notifications/mail_test.go: context.WithTimeout of 50ms":  "a server that stays silent is given up when it ends",
	"storage/files/guards_test.go: context.WithTimeout of 1ms":          "a revocation has to wait until it ends",
	"tools/cluster/fault_test.go: context.WithTimeout of 5s":            "a paused program does not respond before it ends",
	"workspaces/shard/split/split_test.go: context.WithTimeout of 40ms": "a writer that waits for another has to end with it",
	"e2e/load_test.go: time.After of 100ms":                             "browsers pause before they connect again",
}

// TestPatience: in tests, time.After, context.WithTimeout and deadlines have no bound
// below a minute that is written in the source.
func TestPatience(t *testing.T) {
	sources := tree(t)
	constants := constantsOf(sources)
	unused := map[string]bool{}
	for bound := range shortBounds {
		unused[bound] = true
	}
	for _, s := range sources {
		if !s.test {
			continue
		}
		for _, b := range s.bounds(constants[s.dir()]) {
			bound := fmt.Sprintf("%s: %s", s.path, b.what)
			delete(unused, bound)
			if shortBounds[bound] == "" {
				t.Errorf("%s:%d: %s is no patience for a test; wait a minute or more, or say in shortBounds why not", s.path, b.line, b.what)
			}
		}
	}
	for bound := range unused {
		t.Errorf("shortBounds has %q, which is not in the source", bound)
	}
}

// shortBound is a bound below minPatience.
type shortBound struct {
	what string // such as time.After of 5s
	line int
}

// bounds are the short bounds of a file, whose package has these constants.
func (s source) bounds(constants map[string]ast.Expr) (list []shortBound) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		what, bound := boundOf(n)
		if d, known := duration(bound, constants); known && d < minPatience {
			list = append(list, shortBound{fmt.Sprintf("%s of %s", what, d), line(n)})
		}
		return true
	})
	return list
}

// boundOf finds what a node waits for at most: time.After(bound),
// context.WithTimeout(ctx, bound), or deadline := time.Now().Add(bound).
func boundOf(n ast.Node) (what string, bound ast.Expr) {
	switch n := n.(type) {
	case *ast.CallExpr:
		switch what = selected(n.Fun); {
		case what == "time.After" && len(n.Args) == 1, what == "context.WithTimeout" && len(n.Args) == 2:
			return what, n.Args[len(n.Args)-1]
		}
	case *ast.AssignStmt:
		call, ok := n.Rhs[0].(*ast.CallExpr)
		if !ok || lastName(n.Lhs[0]) != "deadline" || lastName(call.Fun) != "Add" || len(call.Args) != 1 {
			return "", nil
		}
		return "deadline", call.Args[0]
	}
	return "", nil
}

// selected is x.y for the expression x.y of two names.
func selected(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if x, ok := s.X.(*ast.Ident); ok {
			return x.Name + "." + s.Sel.Name
		}
	}
	return ""
}

// constantsOf are the constants of each folder, by name.
func constantsOf(sources []source) map[string]map[string]ast.Expr {
	all := map[string]map[string]ast.Expr{}
	for _, s := range sources {
		if all[s.dir()] == nil {
			all[s.dir()] = map[string]ast.Expr{}
		}
		for _, d := range s.file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				for i, value := range v.Values {
					all[s.dir()][v.Names[i].Name] = value
				}
			}
		}
	}
	return all
}

// units are the durations of package time.
var units = map[string]time.Duration{"time.Nanosecond": time.Nanosecond, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
	"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour}

// duration evaluates an expression of literals and of the package's constants.
func duration(e ast.Expr, constants map[string]ast.Expr) (time.Duration, bool) {
	v := evaluate(e, constants)
	if v == nil || v.Kind() != constant.Int {
		return 0, false
	}
	n, exact := constant.Int64Val(v)
	return time.Duration(n), exact
}

func evaluate(e ast.Expr, constants map[string]ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return evaluate(e.X, constants)
	case *ast.SelectorExpr:
		if unit, ok := units[selected(e)]; ok {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.Ident:
		return evaluate(constants[e.Name], constants)
	case *ast.BinaryExpr:
		x, y := evaluate(e.X, constants), evaluate(e.Y, constants)
		if x != nil && y != nil && (e.Op == token.MUL || e.Op == token.ADD || e.Op == token.SUB) {
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}
