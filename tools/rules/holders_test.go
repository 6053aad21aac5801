package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strings"
	"testing"
)

// workspaceQueries is the file with the queries of workspaces.
const workspaceQueries = "models/store/workspaces_queries.go"

// workspaceTypes are the types of models that are workspaces or parts of them.
var workspaceTypes = []string{"Workspace", "WorkspaceView", "WorkspaceState", "WorkspaceEvent"}

// The pool knows holders, not what uses its shares. Only the worlds of its tests have
// workspaces.
func TestPoolKnowsNoWorkspaces(t *testing.T) {
	sources := tree(t)
	queries := methodsIn(sources, workspaceQueries)
	if !slices.Contains(queries, "LockWorkspace") {
		t.Fatalf("%s has %v", workspaceQueries, queries)
	}
	for _, s := range sources {
		if !strings.HasPrefix(s.path, "pool/") || strings.HasPrefix(s.path, "pool/pooltest/") || s.test {
			continue
		}
		for _, use := range workspaceUses(s.file, queries) {
			t.Errorf("%s: %s", s.path, use)
		}
	}
}

// methodsIn lists the exported methods that a file declares.
func methodsIn(sources []source, path string) (names []string) {
	for _, s := range sources {
		if s.path != path {
			continue
		}
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// workspaceUses lists what a file uses of the workspaces' types and queries.
func workspaceUses(file *ast.File, queries []string) (uses []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, _ := selector.X.(*ast.Ident)
		name := selector.Sel.Name
		if pkg != nil && pkg.Name == "models" && slices.Contains(workspaceTypes, name) || slices.Contains(queries, name) {
			uses = append(uses, fmt.Sprintf("line %d uses %s, which is of workspaces; the pool knows only holders", line(n), name))
		}
		return true
	})
	return uses
}

func TestWorkspaceUses(t *testing.T) {
	file, err := parser.ParseFile(positions, "pool/x.go", `package pool
func f(w models.Workspace, h models.Holder, n models.WorkspaceNotification) { q.LockWorkspace(w.ID); q.SharesOf(h.ID) }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if uses := workspaceUses(file, []string{"LockWorkspace"}); len(uses) != 2 {
		t.Errorf("found %q", uses)
	}
}
