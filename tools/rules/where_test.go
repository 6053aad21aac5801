package rules

import (
	"go/ast"
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

	elsewherePattern = regexp.MustCompile("(?:of|by) `([\\w/]+)`")
)

// The table “Where is…” of docs/design.md names what is there. In a row, the second column
// has folders, each of which has a name of the third. A name there is a function or type
// of one of the row's folders, a method with its type, a file in them, PACKAGE.NAME or the
// path of a file; what is of another folder is followed by “of” or “by” and that folder.
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
	for row := range strings.SplitSeq(section[1], "\n") {
		if !strings.Contains(row, "`") {
			continue
		}
		rows++
		for _, wrong := range wrongIn(row, names) {
			t.Errorf("%s: %s", row, wrong)
		}
	}
	if rows < 40 {
		t.Errorf("only %d rows were found", rows)
	}
}

// wrongIn lists what a row of the table names that is not there.
func wrongIn(row string, names map[string]map[string]bool) (wrong []string) {
	cells := strings.Split(strings.ReplaceAll(row, "NOUN", "roles"), "|")
	if len(cells) != 5 {
		return []string{"has not three columns"}
	}
	used, folders := map[string]bool{}, codeIn(cells[2])
	for _, folder := range folders {
		if used[folder] = false; names[folder] == nil {
			wrong = append(wrong, "there is no package "+folder)
		}
	}
	for part := range strings.SplitSeq(cells[3], ";") {
		in := folders
		for _, m := range elsewherePattern.FindAllStringSubmatch(part, -1) {
			in = append(slices.Clone(in), m[1])
		}
		for _, name := range codeIn(part) {
			if names[name] != nil && slices.Contains(in, name) || !namePattern.MatchString(name) {
				continue // what is not a name is the header of a request
			}
			found := false
			for _, folder := range append(in, "") {
				if names[folder][name] {
					found, used[folder] = true, true
				}
			}
			if !found {
				wrong = append(wrong, name+" is not there")
			}
		}
	}
	for _, folder := range folders {
		if !used[folder] {
			wrong = append(wrong, "nothing is named of "+folder)
		}
	}
	return wrong
}

func codeIn(text string) (code []string) {
	for _, m := range codePattern.FindAllStringSubmatch(text, -1) {
		code = append(code, m[1])
	}
	return code
}

func TestWrongIn(t *testing.T) {
	names := map[string]map[string]bool{
		"pool":       {"Scheduler": true, "Scheduler.Take": true, "find": true, "decide.go": true},
		"pool/queue": {"Order": true},
		"":           {"queue.Order": true, "pool.find": true},
	}
	for row, ok := range map[string]bool{
		"| a | `pool` | `Scheduler.Take` (`decide.go`), called by `find` |":      true,
		"| a | `pool` | `find`, called by `Order` of `pool/queue` |":             true,
		"| a | `pool` | `find`; `queue.Order` |":                                 true,
		"| a | `pool`, `pool/queue` | `find` by `Order` |":                       true,
		"| a method without its type | `pool` | `Take` |":                        false,
		"| a method of another type | `pool` | `Other.Take` |":                   false,
		"| a function of another folder | `pool` | `find`, called by `Order` |":  false,
		"| the second only | `pool` | `find`, called by `gone` |":                false,
		"| a folder for a function | `pool` | `pool/queue` |":                    false,
		"| a file of another folder | `pool/queue` | `Order` (`decide.go`) |":    false,
		"| a folder of which nothing is named | `pool`, `pool/queue` | `find` |": false,
		"| no folder | `pools` | `find` |":                                       false,
	} {
		if wrong := wrongIn(row, names); (wrong == nil) != ok {
			t.Errorf("%s: %q", row, wrong)
		}
	}
}

// namesIn are the names of files, functions, types, and methods with their type, in each
// folder. Names with their package, and paths, are in the folder "".
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
				there[f.Name()], all[""][filepath.Join(s.dir(), f.Name())] = true, true
			}
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				there[receiver(d)+d.Name.Name] = true
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
