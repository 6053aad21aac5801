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
	"pool":       nil, // learns
	"sender":     {"TestAFormerLeaderSendsNothing"},
	"periods":    {"TestAFormerLeaderTellsOfNoEnd"},
	"broker":     {"TestAFormerLeaderAdvancesNothing"},
	"files":      {"TestAFormerLeaderSweepsNoFiles", "TestAFormerLeaderMeasuresNothing", "TestAFormerLeaderWatchesNoSpace"},
	"owners":     {"TestAFormerLeaderTakesNoFilesOver"},
	"advertise":  nil, // writes to the cluster
}

// withoutTransactions are the folders of the loops that write nothing.
var withoutTransactions = map[string]string{"pool": "pool", "advertise": "cmd/weir"}

// serverLoops are what every server of the portal runs, whichever leads, and why that
// need not be fenced.
var serverLoops = map[string]string{
	"acquireLease":      "the server's own lease",
	"renewLease":        "the server's own lease",
	"runElection":       "starts the leader's loops with startControllers alone",
	"store":             "listens to other servers",
	"reportOwnGPUs":     "heartbeats of this machine, with its token",
	"watchDatabaseLock": "reads",
	"serveAgents":       "answers requests",
	"serveInside":       "answers requests",
	"keepCounts":        "counts of the requests that this server answers",
	"checkEnvironments": "what is installed on this machine, which has one server",
}

// ownContexts are the functions of cmd/weir that work in no context of a caller.
var ownContexts = map[string]string{
	"recordActivity":    "of requests to the proxy, on any server",
	"releaseLeadership": "after the leader's context has ended",
	"releaseLease":      "the server's own lease, after all else has ended",
}

// TestLeaderLoopsAreFenced: every loop of the leader is held up at each of its writes in
// a test, and none leaves the context that fences its transactions.
func TestLeaderLoopsAreFenced(t *testing.T) {
	var leader, server map[string]bool
	tests, transactions, contexts, callers := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string][]string{}
	for _, s := range tree(t) {
		wires := s.dir() == "cmd/weir" && !s.test
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			switch {
			case !ok:
			case s.test:
				tests[f.Name.Name] = true
			case wires && f.Name.Name == "runControllers":
				leader = startedBy(f)
			case wires && f.Name.Name == "run" && receiver(f) == "portal.":
				server = startedBy(f)
			}
			if ok && wires {
				for _, called := range []string{"runControllers", "AsLeader"} {
					if calls(f, called) {
						callers[called] = append(callers[called], f.Name.Name)
					}
				}
				if len(ownContextsIn(f)) > 0 {
					contexts[f.Name.Name] = true
				}
			}
		}
		if !s.test && (calls(s.file, "InTx") || calls(s.file, "InRevokingTx")) {
			transactions[s.dir()] = true
		}
		if !s.test && fencedRoom(s) {
			for _, n := range ownContextsIn(s.file) {
				t.Errorf("%s:%d: %s is not fenced: take the caller's context", s.path, line(n), n.Sel.Name)
			}
		}
	}
	same(t, "runControllers starts", leader, leaderLoops)
	same(t, "run starts", server, serverLoops)
	same(t, "contexts of their own have", contexts, ownContexts)
	for _, called := range []string{"runControllers", "AsLeader"} {
		if got := callers[called]; !slices.Equal(got, []string{"startControllers"}) {
			t.Errorf("%s is called by %q: only startControllers may", called, got)
		}
	}
	for loop, names := range leaderLoops {
		for _, name := range names {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", loop, name)
			}
		}
		if folder := withoutTransactions[loop]; names == nil && (folder == "" || transactions[folder]) {
			t.Errorf("%s has no test, and %q is no folder without transactions", loop, folder)
		}
	}
}

// same fails unless what was found is what is listed.
func same[V any](t *testing.T, what string, found map[string]bool, listed map[string]V) {
	t.Helper()
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(listed)); !slices.Equal(got, want) {
		t.Errorf("%s %q; listed are %q", what, got, want)
	}
}

// calls reports whether a method or function with a name is called in n.
func calls(n ast.Node, name string) (found bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		found = found || ok && s.Sel.Name == name
		return true
	})
	return found
}

// startedBy are the fields and methods of p that a function calls with a context.
func startedBy(f *ast.FuncDecl) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !isPackage(call.Args[0], "ctx") {
			return true
		}
		if plain, ok := call.Fun.(*ast.Ident); ok {
			found[plain.Name] = true
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || isPackage(s.X, "context") {
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

// ownContextsIn are the contexts that do not come from the caller.
func ownContextsIn(n ast.Node) (found []*ast.SelectorExpr) {
	ast.Inspect(n, func(n ast.Node) bool {
		x, ok := n.(*ast.SelectorExpr)
		if ok && isPackage(x.X, "context") && (x.Sel.Name == "Background" || x.Sel.Name == "TODO") {
			found = append(found, x)
		}
		return true
	})
	return found
}
