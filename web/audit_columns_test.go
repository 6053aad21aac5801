package web

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// Every object, action and field that the program records in the audit has a
// label.
func TestAuditedWordsHaveLabels(t *testing.T) {
	mode := packages.NeedName | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile
	list, err := packages.Load(&packages.Config{Mode: mode, Dir: ".."}, "weir/policies/...", "weir/pool/...", "weir/workspaces/...", "weir/storage/...")
	if err != nil || packages.PrintErrors(list) > 0 {
		t.Fatal("the program cannot be read: ", err)
	}
	recorded := 0
	for _, pkg := range list {
		for _, file := range pkg.Syntax {
			ast.Inspect(file, func(n ast.Node) bool {
				for field, value := range changeFields(pkg, n) {
					recorded++
					(&audited{t, pkg, map[types.Object]bool{}}).check(field, value)
				}
				return true
			})
		}
	}
	if recorded < 100 {
		t.Errorf("only %d fields of changes were found", recorded)
	}
}

// changeFields are the fields of a policies.Change that a node sets.
func changeFields(pkg *packages.Package, n ast.Node) map[string]ast.Expr {
	isChange := func(e ast.Expr) bool {
		typ := pkg.TypesInfo.TypeOf(e)
		return typ != nil && typ.String() == "weir/policies.Change"
	}
	set := map[string]ast.Expr{}
	switch n := n.(type) {
	case *ast.CompositeLit:
		if isChange(n) {
			for _, e := range n.Elts {
				pair := e.(*ast.KeyValueExpr)
				set[pair.Key.(*ast.Ident).Name] = pair.Value
			}
		}
	case *ast.AssignStmt:
		for i, to := range n.Lhs {
			if sel, ok := to.(*ast.SelectorExpr); ok && isChange(sel.X) {
				set[sel.Sel.Name] = n.Rhs[i]
			}
		}
	}
	return set
}

// audited follows the values that a change is made of.
type audited struct {
	*testing.T
	pkg  *packages.Package
	seen map[types.Object]bool
}

func (a *audited) check(field string, value ast.Expr) {
	switch field {
	case "Object", "Action":
		words := map[string]bool{}
		for _, e := range a.origins(value) {
			if v := a.pkg.TypesInfo.Types[e].Value; v != nil {
				words[constant.StringVal(v)] = true
			}
		}
		if len(words) == 0 {
			a.Errorf("%s: cannot tell the %s", a.at(value), field)
		}
		for word := range words {
			_, object := objectWords[word]
			_, action := actionWords[word]
			if field == "Object" && !object || field == "Action" && !action {
				a.Errorf("%s: the audit page has no word for the %s %q", a.at(value), strings.ToLower(field), word)
			}
		}
	case "Before", "After":
		for _, e := range a.origins(value) {
			a.columns(e)
		}
	}
}

func (a *audited) at(n ast.Node) token.Position { return a.pkg.Fset.Position(n.Pos()) }

// columns checks the fields of a recorded value.
func (a *audited) columns(value ast.Expr) {
	if literal, ok := value.(*ast.CompositeLit); ok && a.pkg.TypesInfo.TypeOf(value).String() == "map[string]any" {
		for _, e := range literal.Elts {
			pair := e.(*ast.KeyValueExpr)
			a.column(value, constant.StringVal(a.pkg.TypesInfo.Types[pair.Key].Value))
			a.columns(pair.Value)
		}
		return
	}
	typ := a.pkg.TypesInfo.TypeOf(value)
	if m, ok := typ.Underlying().(*types.Map); ok && types.IsInterface(m.Elem()) || types.IsInterface(typ) {
		a.Errorf("%s: cannot tell the fields", a.at(value))
	}
	a.fields(value, typ)
}

// fields checks the fields of a type as it is written in JSON.
func (a *audited) fields(value ast.Expr, typ types.Type) {
	if types.NewMethodSet(types.NewPointer(typ)).Lookup(nil, "MarshalJSON") != nil {
		return
	}
	switch t := typ.Underlying().(type) {
	case *types.Pointer:
		a.fields(value, t.Elem())
	case *types.Slice:
		a.fields(value, t.Elem())
	case *types.Map:
		a.fields(value, t.Elem())
	case *types.Struct:
		for i := range t.NumFields() {
			name, _, _ := strings.Cut(reflect.StructTag(t.Tag(i)).Get("json"), ",")
			switch f := t.Field(i); {
			case name == "-" || !f.Exported():
				continue
			case name == "" && !f.Embedded():
				a.column(value, f.Name())
			case name != "":
				a.column(value, name)
			}
			a.fields(value, t.Field(i).Type())
		}
	}
}

func (a *audited) column(value ast.Expr, name string) {
	name = strings.ToLower(name)
	if _, ok := columnLabel(name); !ok && !slices.Contains(unshown, name) {
		a.Errorf("%s: the audit page has no label for the field %q", a.at(value), name)
	}
}

// origins are the expressions that a value can come from: what is assigned to a
// variable without a type of its own, passed as a parameter, or returned by a
// function of the package.
func (a *audited) origins(value ast.Expr) (list []ast.Expr) {
	info := a.pkg.TypesInfo
	typ := info.TypeOf(value)
	open := types.IsInterface(typ) || typ.String() == "map[string]any" || typ.String() == "string"
	switch e := value.(type) {
	case *ast.Ident:
		if obj := info.ObjectOf(e); open && info.Types[e].Value == nil && obj != types.Universe.Lookup("nil") {
			if a.seen[obj] {
				return nil
			}
			a.seen[obj] = true
			for _, from := range a.assigned(obj) {
				list = append(list, a.origins(from)...)
			}
			return list
		}
	case *ast.CallExpr:
		if info.Types[e.Fun].IsType() { // a conversion
			return a.origins(e.Args[0])
		}
		if name, ok := e.Fun.(*ast.Ident); ok && open {
			for _, from := range a.returned(info.ObjectOf(name)) {
				list = append(list, a.origins(from)...)
			}
			return list
		}
	}
	if typ == types.Typ[types.UntypedNil] {
		return nil
	}
	return []ast.Expr{value}
}

// assigned is what the package assigns to a variable or passes as a parameter.
func (a *audited) assigned(obj types.Object) (list []ast.Expr) {
	info := a.pkg.TypesInfo
	a.inspect(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if name, ok := to.(*ast.Ident); ok && info.ObjectOf(name) == obj && len(n.Lhs) == len(n.Rhs) {
					list = append(list, n.Rhs[i])
				}
			}
		case *ast.CallExpr:
			signature, ok := info.TypeOf(n.Fun).(*types.Signature)
			for i := 0; ok && i < signature.Params().Len() && i < len(n.Args); i++ {
				if signature.Params().At(i) == obj {
					list = append(list, n.Args[i])
				}
			}
		}
	})
	return list
}

// returned is what a function of the package returns.
func (a *audited) returned(function types.Object) (list []ast.Expr) {
	a.inspect(func(n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && a.pkg.TypesInfo.ObjectOf(f.Name) == function {
			ast.Inspect(f, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					list = append(list, r.Results...)
				}
				return true
			})
		}
	})
	return list
}

func (a *audited) inspect(visit func(ast.Node)) {
	for _, file := range a.pkg.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}
