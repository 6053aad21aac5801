package rules

import (
	"go/ast"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// maxBackUses is how many of a hundred uses between the files of a package may run back up.
const maxBackUses = 5

// TestUsesRunDownwards: the files of a package can be put in an order in which each uses those
// below it, but for a few uses. Otherwise nobody can read it from the top.
func TestUsesRunDownwards(t *testing.T) {
	config := &packages.Config{Dir: root, Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedImports}
	loaded, err := packages.Load(config, "./...")
	if err != nil || len(loaded) < 50 {
		t.Fatalf("loaded %d packages: %v", len(loaded), err)
	}
	for _, p := range loaded {
		t.Run(strings.TrimPrefix(p.PkgPath, "weir/"), func(t *testing.T) {
			if len(p.Errors) > 0 {
				t.Fatal(p.Errors)
			}
			uses, all := fileUses(p), 0
			for _, of := range uses {
				all += len(of)
			}
			back := backUses(uses)
			if len(back) <= max(1, all*maxBackUses/100) {
				return
			}
			t.Errorf("%d of %d uses between the files of this package run back up, more than %d %%:", len(back), all, maxBackUses)
			for _, b := range back {
				t.Errorf("%s uses %s of %s", b[0], strings.Join(uses[b[0]][b[1]], ", "), b[1])
			}
		})
	}
}

// fileUses maps each file of a package to the files whose declarations it uses, with their names.
func fileUses(p *packages.Package) map[string]map[string][]string {
	uses := map[string]map[string][]string{}
	for _, f := range p.Syntax {
		from := filepath.Base(p.Fset.Position(f.FileStart).Filename)
		uses[from] = map[string][]string{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := p.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != p.Types || !declared(o) {
				return true
			}
			to := filepath.Base(p.Fset.Position(o.Pos()).Filename)
			if to != from && !slices.Contains(uses[from][to], o.Name()) {
				uses[from][to] = append(uses[from][to], o.Name())
			}
			return true
		})
	}
	return uses
}

// declared reports whether an object is one of a package, or a method or field of its types.
func declared(o types.Object) bool {
	switch o := o.(type) {
	case *types.Func:
		return true
	case *types.Var:
		return o.IsField() || o.Parent() == o.Pkg().Scope()
	}
	return o.Parent() == o.Pkg().Scope()
}

// backUses are the uses against an order of the files that has few of them: single files are
// moved as long as that helps.
func backUses(uses map[string]map[string][]string) (back [][2]string) {
	order := slices.Sorted(maps.Keys(uses))
	for moved := true; moved; {
		moved = false
		for i, f := range order {
			if at := bestPlace(uses, order, i); at != i {
				order = slices.Insert(slices.Delete(order, i, i+1), at, f)
				moved = true
			}
		}
	}
	for i, f := range order {
		for _, above := range order[:i] {
			if len(uses[f][above]) > 0 {
				back = append(back, [2]string{f, above})
			}
		}
	}
	return back
}

// bestPlace is where in an order the file at i has the fewest uses that run back up; i where that
// is no worse than elsewhere.
func bestPlace(uses map[string]map[string][]string, order []string, i int) (at int) {
	at = i
	for _, step := range []int{-1, 1} {
		sum, least := 0, 0
		for j := i + step; j >= 0 && j < len(order); j += step {
			up, down := len(uses[order[j]][order[i]]) > 0, len(uses[order[i]][order[j]]) > 0
			if up != down {
				if up == (step < 0) { // passing this file turns one use around
					sum++
				} else {
					sum--
				}
			}
			if sum < least {
				least, at = sum, j
			}
		}
		if at != i {
			return at
		}
	}
	return at
}
