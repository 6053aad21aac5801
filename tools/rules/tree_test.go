package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// root is the repository, relative to this package.
const root = "../.."

// source is one parsed Go file; its path is relative to root.
type source struct {
	path      string
	file      *ast.File
	lines     int
	long      []int // lines with more than maxLineLength characters
	generated bool
	test      bool
}

// dir is the folder of the source's package, slash-separated.
func (s source) dir() string { return filepath.ToSlash(filepath.Dir(s.path)) }

var positions = token.NewFileSet()

// line is the first line of a node.
func line(n ast.Node) int { return positions.Position(n.Pos()).Line }

var parseTree = sync.OnceValues(func() (sources []source, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && !ours(path, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		s, err := parse(path)
		sources = append(sources, s)
		return err
	})
	return sources, err
})

// ours excludes files that are not source of this module.
func ours(path, name string) bool {
	if strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" {
		return false
	}
	if path == filepath.Join(root, "bin") || path == filepath.Join(root, "data") {
		return false
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err != nil // a folder with its own go.mod is another module
}

func parse(path string) (source, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return source{}, err
	}
	name, err := filepath.Rel(root, path)
	if err != nil {
		return source{}, err
	}
	file, err := parser.ParseFile(positions, name, text, parser.ParseComments)
	if err != nil {
		return source{}, err
	}
	return source{
		path: name, file: file, lines: strings.Count(string(text), "\n"), long: longLines(string(text)),
		generated: ast.IsGenerated(file), test: strings.HasSuffix(name, "_test.go"),
	}, nil
}

// longLines are the numbers of the lines with more than maxLineLength characters.
// longLines returns the lines with more than maxLineLength characters. Of a text in quotes,
// maxQuoted count: a sentence or the tag of a field is not broken.
func longLines(text string) (numbers []int) {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		line = quoted.ReplaceAllStringFunc(line, func(q string) string { return string([]rune(q)[:min(utf8.RuneCountInString(q), maxQuoted)]) })
		if number++; utf8.RuneCountInString(line) > maxLineLength {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// tree is all Go source of the module.
func tree(t *testing.T) []source {
	t.Helper()
	sources, err := parseTree()
	if err != nil {
		t.Fatal(err)
	}
	return sources
}
