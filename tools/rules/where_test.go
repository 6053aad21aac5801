package rules

import (
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	wherePattern = regexp.MustCompile(`(?ms)^## Where is…\n(.*?)^## `)
	codePattern  = regexp.MustCompile("`([^`]+)`")
	namePattern  = regexp.MustCompile(`^[\w./]+$`)
)

// The table “Where is…” of docs/design.md names folders, files and functions that are
// there. In a row, the second column has folders; the third begins with a function, type,
// file or folder in them, and can go on with others of this module.
func TestWhereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	section := wherePattern.FindStringSubmatch(string(text))
	if section == nil {
		t.Fatal("docs/design.md has no section “Where is…”")
	}
	names, rows := namesIn(t), 0
	for line := range strings.SplitSeq(strings.ReplaceAll(section[1], "NOUN", "roles"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[2], "`") {
			continue
		}
		rows++
		var folders []string
		for _, m := range codePattern.FindAllStringSubmatch(cells[2], -1) {
			if folders = append(folders, m[1]); !isFolder(m[1]) {
				t.Errorf("%s: there is no folder %s", cells[1], m[1])
			}
		}
		for i, m := range codePattern.FindAllStringSubmatch(cells[3], -1) {
			name := m[1]
			if _, err := os.Stat(filepath.Join(root, name)); err == nil || !namePattern.MatchString(name) {
				continue // what is not a name is the header of a request
			}
			in := func(folder string) bool { return names[folder][name] }
			if i == 0 && !slices.ContainsFunc(folders, in) || !slices.ContainsFunc(slices.Collect(maps.Keys(names)), in) {
				t.Errorf("%s: %s is not there", cells[1], name)
			}
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows were found", rows)
	}
}

func isFolder(name string) bool {
	info, err := os.Stat(filepath.Join(root, name))
	return err == nil && info.IsDir()
}

// namesIn are the names of files, functions, types, and methods with and without their
// type, in each folder. Names of other packages are in the folder "", with their package.
func namesIn(t *testing.T) map[string]map[string]bool {
	all := map[string]map[string]bool{"": {}}
	for _, s := range tree(t) {
		if s.test {
			continue
		}
		there := all[s.dir()]
		if there == nil {
			there = map[string]bool{}
			all[s.dir()] = there
			files, err := os.ReadDir(filepath.Join(root, s.dir()))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				there[f.Name()] = true
			}
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				there[d.Name.Name], there[receiver(d)+d.Name.Name] = true, true
				all[""][s.file.Name.Name+"."+receiver(d)+d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						there[typ.Name.Name] = true
						all[""][s.file.Name.Name+"."+typ.Name.Name] = true
					}
				}
			}
		}
	}
	return all
}

// receiver is the type of a method with a dot, or empty.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	return typ.(*ast.Ident).Name + "."
}
