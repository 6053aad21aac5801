package rules

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"
)

// leaderLoops are the loops that only the leader runs, by their field or method of the
// portal, with the tests that another server takes the lead before each of their writes.
var leaderLoops = map[string][]string{
	"reconciler": {"TestAFormerLeaderReconcilesNothing", "TestAFormerLeaderStopsNothing", "TestAFormerLeaderObservesNothing", "TestAFormerLeaderRefreshesNothing"},
	"providers":  {"TestAFormerLeaderSweepsNoProviders"},
	"pool":       nil, // learns, and writes nothing
	"sender":     {"TestAFormerLeaderSendsNothing"},
	"periods":    {"TestAFormerLeaderTellsOfNoEnd"},
	"broker":     {"TestAFormerLeaderAdvancesNothing"},
	"files":      {"TestAFormerLeaderSweepsNoFiles", "TestAFormerLeaderMeasuresNothing"},
	"owners":     {"TestAFormerLeaderTakesNoFilesOver"},
	"advertise":  nil, // writes to the cluster only
}

// TestLeaderLoopsAreFenced: every loop of the leader is held up at each of its writes in
// a test, and none leaves the context that fences its transactions.
func TestLeaderLoopsAreFenced(t *testing.T) {
	listed, tests := map[string]bool{}, map[string]bool{}
	for _, s := range tree(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if s.test {
				tests[f.Name.Name] = true
			}
			if s.path == "cmd/weir/leader.go" && f.Name.Name == "runControllers" {
				listed = startedBy(f)
			}
		}
		if !s.test && fencedRoom(s) {
			checkContexts(t, s)
		}
	}
	if got, want := slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(leaderLoops)); !slices.Equal(got, want) {
		t.Errorf("runControllers starts %q; tests are listed for %q", got, want)
	}
	for loop, names := range leaderLoops {
		for _, name := range names {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", loop, name)
			}
		}
	}
}

// startedBy are the fields and methods of p that a function calls with a context.
func startedBy(f *ast.FuncDecl) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isPackage(call.Args[0], "ctx") {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if field, nested := s.X.(*ast.SelectorExpr); nested {
			s = field
		}
		found[s.Sel.Name] = true
		return true
	})
	return found
}

// fencedRoom reports whether a file belongs to services that write to the database.
func fencedRoom(s source) bool {
	if strings.HasSuffix(s.dir(), "test") {
		return false // helpers of tests
	}
	top, _, _ := strings.Cut(s.dir(), "/")
	writes := slices.ContainsFunc(s.file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"weir/models/store"` })
	return writes && slices.Contains([]string{"policies", "pool", "storage", "workspaces"}, top)
}

// checkContexts finds contexts that do not come from the caller.
func checkContexts(t *testing.T, s source) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if ok && isPackage(x.X, "context") && (x.Sel.Name == "Background" || x.Sel.Name == "TODO") {
			t.Errorf("%s:%d: context.%s is not fenced: take the caller's", s.path, line(n), x.Sel.Name)
		}
		return true
	})
}
