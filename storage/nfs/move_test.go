package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The documented commands move shared directories to an NFS export while they are used:
// what is read there is what was there last, of the same users, and nothing else.
func TestMoveToAnExport(t *testing.T) {
	w := open(t)
	text, err := os.ReadFile("../../docs/storage.md")
	w.must(err)
	commands := regexp.MustCompile(`(?m)^ *(rsync .* OLD/ NEW/)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Fatalf("the documentation has the commands %q", commands)
	}
	old := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		w.must(os.MkdirAll(filepath.Dir(filepath.Join(old, name)), 0o755))
		w.must(os.WriteFile(filepath.Join(old, name), []byte(content), 0o660))
		w.must(os.Chown(filepath.Join(old, name), 62001, 52007))
		w.must(os.Chmod(filepath.Join(old, name), 0o660))
	}
	const model, kept, removed = "notebook/7/model", ".weir/projects/7/trash/1", "notebook/7/removed"
	put(model, "old")
	put(kept, "in the trash")
	put(removed, "removed while the portal runs")
	w.must(os.Link(filepath.Join(old, model), filepath.Join(old, "notebook/7/linked")))
	w.must(os.Chown(filepath.Join(old, "notebook/7"), 62001, 52007))
	w.must(os.Chmod(filepath.Join(old, "notebook/7"), os.ModeSetgid|0o770))
	for i, command := range commands {
		if i == 1 {
			put(model, "new")
			w.must(os.Remove(filepath.Join(old, removed)))
		}
		script := strings.NewReplacer("OLD/", old+"/", "NEW/", w.Root+"/").Replace(command[1])
		if out, err := w.run("sh", "-c", script); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	member := []string{"uid=62001", "gid=52007"}
	for name, want := range map[string]string{model: "new", "notebook/7/linked": "new"} {
		if got, err := w.run("nfs-cat", w.urlAt(w.direct, "/weir/"+name, member...)); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	w.refused("NFS4ERR_NOENT", "nfs-cat", w.urlAt(w.direct, "/weir/"+removed, member...))
	w.refused("NFS4ERR_ACCESS", "nfs-cat", w.urlAt(w.direct, "/weir/"+model, "uid=62002", "gid=52008"))
	if got, err := w.run("nfs-cat", w.urlAt(w.forwarded, "/weir-all/"+kept, "uid=0", "gid=0")); err != nil || got != "in the trash" {
		t.Errorf("%q, %v", got, err)
	}
	for name, mode := range map[string]os.FileMode{"notebook/7": os.ModeDir | os.ModeSetgid | 0o770, model: 0o660} {
		info, err := os.Stat(w.file(name))
		w.must(err)
		if at := info.Sys().(*syscall.Stat_t); at.Uid != 62001 || at.Gid != 52007 || info.Mode() != mode {
			t.Errorf("%s: %s of %d:%d", name, info.Mode(), at.Uid, at.Gid)
		}
	}
	if _, err := os.Stat(w.file("notebook/9")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is not at the old place is kept: %v", err)
	}
}
