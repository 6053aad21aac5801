package rules

import (
	"go/ast"
	"testing"
)

// TestHandlersCheckNoRights: services decide what an actor may do; handlers and
// pages only show it. A handler that names a right, casbin's rules or an actor's
// role would be a second place that decides.
func TestHandlersCheckNoRights(t *testing.T) {
	forbidden := map[string]bool{"Access": true, "MemberOf": true, "CanLaunchAnywhere": true, "CanLaunchIn": true}
	for _, s := range tree(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if constant, ok := n.(*ast.ValueSpec); ok && s.path == "policies/right.go" {
				forbidden[constant.Names[0].Name] = true
			}
			return s.path == "policies/right.go"
		})
	}
	if !forbidden["ProjectWrite"] {
		t.Fatal("policies/right.go has no rights")
	}
	for _, s := range tree(t) {
		if d := s.dir(); s.test || s.generated || d != "handlers" && d != "web" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if ok && forbidden[selector.Sel.Name] && (selector.Sel.Name != "Access" || isPackage(selector.X, "policies")) {
				t.Errorf("%s:%d: %s belongs in a service, which returns what the page needs", s.path, line(n), selector.Sel.Name)
			}
			return true
		})
	}
}

// isPackage reports whether an expression is the name of a package. The access of a
// verdict about a file is what a service has returned.
func isPackage(e ast.Expr, name string) bool {
	x, ok := e.(*ast.Ident)
	return ok && x.Name == name
}
