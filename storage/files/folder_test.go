package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"

	"weir/models"
	"weir/models/store/storetest"
)

// A folder has the files that its reader can read, and nothing else.
func TestFolder(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	ctx := t.Context()
	for _, name := range []string{"llama", "llama/more"} {
		if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at(name)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(t, w.at("llama/b"), "bytes")
	w.write(t, w.at("llama/a"), "hidden")
	w.write(t, w.at("llama/more/c"), "below")
	w.write(t, w.at("llama/more/hidden"), "hidden")
	w.write(t, w.at("secret"), "hidden")
	if err := os.Symlink(w.disk(w.at("secret")), w.disk(w.at("llama/link"))); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(w.disk(w.at("llama")), w.disk(w.at("llama/more/loop"))); err != nil {
		t.Fatal(err)
	}
	w.rule(t, w.at("llama/a"), models.AccessNone, models.DownloadInherit)
	w.rule(t, w.at("llama/more/hidden"), models.AccessNone, models.DownloadInherit)
	path, folder, err := w.Folder(ctx, w.acting, w.project, w.at("llama"))
	if err != nil || path != w.at("llama") {
		t.Fatalf("%s, %v", path, err)
	}
	list, err := fs.ReadDir(folder, ".")
	if err != nil || len(list) != 3 || list[0].Name() != "b" || list[1].Type() != fs.ModeIrregular || !list[2].IsDir() {
		t.Errorf("%v, %v", list, err)
	}
	f, err := folder.Open("b")
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, 2)
	if _, err := f.(io.ReaderAt).ReadAt(content, 3); err != nil || string(content) != "es" {
		t.Errorf("%q, %v", content, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	below, err := fs.ReadFile(folder, "more/c")
	if err != nil || string(below) != "below" {
		t.Errorf("%q, %v", below, err)
	}
	for _, name := range []string{"a", "none", "more/hidden", "none/x", "b/x"} {
		if _, err := folder.Open(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"../secret", "more/../../secret", "/etc/passwd", ".."} {
		if _, err := folder.Open(name); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"link", "more", "more/loop"} {
		_, err = folder.Open(name)
		wants(t, name, models.KindConflict, err)
	}
	if _, err = folder.Open("more/loop/b"); err == nil {
		t.Error("a link to a directory was followed")
	}
	_, _, err = w.Folder(ctx, w.acting, w.project, w.at("secret"))
	wants(t, "a file", models.KindConflict, err)
	w.rule(t, w.at("llama"), models.AccessNone, models.DownloadInherit)
	_, _, err = w.Folder(ctx, w.acting, w.project, w.at("llama"))
	wants(t, "hidden", models.KindNotFound, err)
}
