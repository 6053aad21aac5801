package files

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// outline writes a tree as names: open directories with those in them.
func outline(list []TreeDirectory) string {
	var b strings.Builder
	for i, d := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(d.Name)
		if d.Owner != "" {
			fmt.Fprintf(&b, "=%s", d.Owner)
		}
		if d.Open {
			fmt.Fprintf(&b, "(%s)", outline(d.Directories))
		}
		if !d.Complete {
			b.WriteString("…")
		}
	}
	return b.String()
}

func (w *world) tree(t *testing.T, path models.FilePath) string {
	t.Helper()
	tree, err := w.Tree(t.Context(), w.acting, w.project, path)
	if err != nil {
		return string(models.KindOf(err))
	}
	return outline(tree)
}

func TestTree(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for _, dir := range []string{"a/b", "a/hidden/c", "d"} {
			if err := os.MkdirAll(w.disk(w.at(dir)), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, w.at("a/file"), "x")
		if err := os.Symlink(w.disk(w.at("d")), w.disk(w.at("a/link"))); err != nil {
			t.Fatal(err)
		}
		w.rule(t, w.at("a/hidden"), models.AccessNone, models.DownloadInherit)
		project, public := fmt.Sprint(w.project), "public_algorithm public_model public_dataset"
		own := fmt.Sprintf("%d=%s", w.member, w.acting.User.Name)
		beside := func(model string) string {
			return project + "(" + own + " project_algorithm project_dataset " + model + ") " + public
		}
		for path, want := range map[models.FilePath]string{
			"/":                                    project + " " + public,
			w.at("")[:len(w.at(""))-1]:             beside("project_model(a d)"),
			w.at("a"):                              beside("project_model(a(b) d)"),
			w.at("a/b"):                            beside("project_model(a(b()) d)"),
			w.at("a/file"):                         beside("project_model(a(b) d)"),
			w.at("a/hidden/c"):                     "not_found",
			"/notebook/999":                        "not_found",
			models.FilePath(rules.PublicDirs()[1]): project + " " + strings.Replace(public, "public_model", "public_model()", 1),
		} {
			if got := w.tree(t, path); got != want {
				t.Errorf("%s: %s\nwant %s", path, got, want)
			}
		}
		if _, err := w.Tree(t.Context(), w.stranger, w.project, "/"); models.KindOf(err) != models.KindNotFound {
			t.Error(err)
		}
	})
}

// Of many directories the first are listed, and those that lead to the path.
func TestTreeOfManyDirectories(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	for i := range maxTreeListed + 50 {
		if err := os.MkdirAll(w.disk(w.at(fmt.Sprintf("many/%03d", i))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := w.Tree(t.Context(), w.acting, w.project, w.at("many/240"))
	if err != nil {
		t.Fatal(err)
	}
	var many TreeDirectory
	for list := tree; len(list) > 0; {
		next := list[:0:0]
		for _, d := range list {
			if d.Open && d.Name != "240" {
				many, next = d, d.Directories
			}
		}
		list = next
	}
	last := many.Directories[len(many.Directories)-1]
	if many.Name != "many" || many.Complete || len(many.Directories) != maxTreeListed+1 || last.Name != "240" || !last.Open || many.Directories[0].Name != "000" {
		t.Errorf("%d directories in %s, complete: %t; the last is %+v", len(many.Directories), many.Name, many.Complete, last)
	}
}
