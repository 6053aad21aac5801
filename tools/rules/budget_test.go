package rules

import (
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 100
	p90FunctionLines = 40
)

func TestSizes(t *testing.T) {
	var lengths []int
	for _, s := range tree(t) {
		if s.generated {
			continue
		}
		if s.lines > maxFileLines {
			t.Errorf("%s has %d lines; at most %d", s.path, s.lines, maxFileLines)
		}
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := positions.Position(f.End()).Line - line(f) + 1
			if n > maxFunctionLines {
				t.Errorf("%s:%d: %s has %d lines; at most %d", s.path, line(f), f.Name.Name, n, maxFunctionLines)
			}
			lengths = append(lengths, n)
		}
	}
	slices.Sort(lengths)
	if p90 := lengths[len(lengths)*9/10]; p90 > p90FunctionLines {
		t.Errorf("a tenth of all functions has %d lines or more; at most %d", p90, p90FunctionLines)
	}
}

// Every package has a doc.go.
func TestEveryPackageHasItsDoc(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range tree(t) {
		if seen[s.dir()] {
			continue
		}
		seen[s.dir()] = true
		if _, err := os.Stat(filepath.Join(root, s.dir(), "doc.go")); err != nil {
			t.Errorf("%s has no doc.go", s.dir())
		}
	}
}
