package rules

import (
	"fmt"
	"go/ast"
	"go/parser"
	"strings"
	"testing"
)

// poolSays are the names with which the pool may speak of workspaces.
var poolSays = map[string]string{
	"WorkspaceLaunch":     "the right to use shares",
	"WorkspaceRead":       "the right to see who has them",
	"WorkspaceStop":       "the right to end what has them",
	"UsersWithWorkspaces": "whom the end of a project's period concerns",
	"ActiveWorkspaces":    "what the end of a project stops",
}

// The pool knows holders, not what uses its shares. Only the worlds of its tests have
// workspaces.
func TestPoolKnowsNoWorkspaces(t *testing.T) {
	used := map[string]bool{}
	for _, s := range tree(t) {
		if !strings.HasPrefix(s.path, "pool/") || strings.HasPrefix(s.path, "pool/pooltest/") || s.test {
			continue
		}
		for _, use := range workspaceUses(s.file, used) {
			t.Errorf("%s: %s", s.path, use)
		}
	}
	for name := range poolSays {
		if !used[name] {
			t.Errorf("the pool does not use %s: remove it from poolSays", name)
		}
	}
}

// workspaceUses lists where a file names workspaces otherwise than the pool may, and notes
// the names that it may use.
func workspaceUses(file *ast.File, used map[string]bool) (uses []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || !strings.Contains(selector.Sel.Name, "Workspace") {
			return true
		}
		name := selector.Sel.Name
		if used[name] = true; poolSays[name] == "" {
			uses = append(uses, fmt.Sprintf("line %d uses %s, which is of workspaces; the pool knows only holders", line(n), name))
		}
		return true
	})
	return uses
}

func TestWorkspaceUses(t *testing.T) {
	file, err := parser.ParseFile(positions, "pool/x.go", `package pool
func f(w models.Workspace, h models.Holder) { may(policies.WorkspaceRead); q.LockWorkspace(w.ID); q.SharesOf(h.ID) }`, 0)
	if err != nil {
		t.Fatal(err)
	}
	if uses := workspaceUses(file, map[string]bool{}); len(uses) != 2 {
		t.Errorf("found %q", uses)
	}
}
