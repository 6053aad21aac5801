package files

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// wants checks the kind of an error.
func wants(t testing.TB, what string, want models.Kind, err error) {
	t.Helper()
	if models.KindOf(err) != want || err == nil {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func TestContentAndVersions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		name := w.at("a\xff\n<b>")
		first := w.write(t, name, "one")
		if first.Size != 3 || first.Kind != beneath.Regular || first.Path != name || first.Name != "a\uFFFD\uFFFD<b>" || !first.Download {
			t.Errorf("%+v", first)
		}
		second := w.write(t, name, "second")
		if w.read(t, name) != "second" || first.ETag == second.ETag {
			t.Errorf("%q; %+v, %+v", w.read(t, name), first, second)
		}
		versions, err := w.Versions(t.Context(), w.acting, w.project, name, store.Page{})
		if err != nil || len(versions) != 1 || versions[0].Bytes != 3 {
			t.Fatalf("%+v, %v", versions, err)
		}
		c, err := w.OpenVersion(t.Context(), w.acting, w.project, versions[0].ID, true)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := io.ReadAll(c.File); err != nil || string(content) != "one" {
			t.Errorf("%q, %v", content, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		w.settled(t, 9)
		if _, err := w.RestoreVersion(t.Context(), w.acting, w.project, versions[0].ID); err != nil || w.read(t, name) != "one" {
			t.Errorf("%q, %v", w.read(t, name), err)
		}
		w.settled(t, 12)
		sum, _, err := w.Checksum(t.Context(), w.acting, w.project, name)
		if err != nil || sum != "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed" {
			t.Errorf("%s, %v", sum, err)
		}
		if got := w.actions(t); got != "restore download write write" {
			t.Errorf("audited: %s", got)
		}
		w.clock.Advance(8 * 24 * time.Hour)
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if versions, err := w.Versions(t.Context(), w.acting, w.project, name, store.Page{}); err != nil || len(versions) != 0 {
			t.Errorf("old versions are kept: %+v, %v", versions, err)
		}
		w.settled(t, 3)
	})
}

func TestConditions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		put := func(content string, c Condition) error {
			_, err := w.Write(t.Context(), w.acting, w.project, w.at("a"), strings.NewReader(content), -1, c)
			return err
		}
		stale := func(err error) bool { return errors.Is(err, models.ErrStale) }
		if !stale(put("x", Condition{IfMatch: "*"})) || !stale(put("x", Condition{IfMatch: `"1-2-3"`})) {
			t.Error("a file that does not exist was matched")
		}
		if err := put("one", Condition{IfNoneMatch: "*"}); err != nil {
			t.Fatal(err)
		}
		e, err := w.Stat(t.Context(), w.acting, w.project, w.at("a"))
		if err != nil || !stale(put("x", Condition{IfNoneMatch: "*"})) || !stale(put("x", Condition{IfMatch: `"1-2-3"`})) || put("two", Condition{IfMatch: `"x", ` + e.ETag}) != nil ||
			!stale(put("x", Condition{IfMatch: e.ETag})) || w.read(t, w.at("a")) != "two" {
			t.Errorf("%v, %q", err, w.read(t, w.at("a")))
		}
		_, err = w.Delete(t.Context(), w.acting, w.project, w.at("a"), Condition{IfMatch: e.ETag})
		if !stale(err) {
			t.Errorf("deleted: %v", err)
		}
		_, err = w.Write(t.Context(), w.acting, w.project, w.at("a"), strings.NewReader("short"), 6, Condition{})
		wants(t, "too short", models.KindInvalid, err)
		_, err = w.Write(t.Context(), w.acting, w.project, w.at("a"), strings.NewReader("too long"), 6, Condition{})
		wants(t, "too long", models.KindInvalid, err)
		w.settled(t, 6)
	})
}

func TestTrash(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at("dir")); err != nil {
			t.Fatal(err)
		}
		_, err := w.MakeDirectory(ctx, w.acting, w.project, w.at("dir"))
		wants(t, "made twice", models.KindConflict, err)
		w.write(t, w.at("dir/a"), "four")
		item, err := w.Delete(ctx, w.acting, w.project, w.at("dir"), Condition{})
		if err != nil || !item.Directory || item.Bytes != 4 || w.names(t, w.at("")) != "" {
			t.Fatalf("%+v, %v", item, err)
		}
		w.settled(t, 4)
		list, err := w.Trash(ctx, w.acting, w.project, store.Page{})
		if err != nil || len(list) != 1 || list[0].Path != w.at("dir") {
			t.Fatalf("%+v, %v", list, err)
		}
		if _, err := w.Restore(ctx, w.acting, w.project, item.ID, ""); err != nil || w.read(t, w.at("dir/a")) != "four" {
			t.Errorf("restored: %v", err)
		}
		_, err = w.Restore(ctx, w.acting, w.project, item.ID, "")
		wants(t, "restored twice", models.KindNotFound, err)
		item, err = w.Delete(ctx, w.acting, w.project, w.at("dir"), Condition{})
		if err != nil {
			t.Fatal(err)
		}
		w.write(t, w.at("dir"), "in the way")
		_, err = w.Restore(ctx, w.acting, w.project, item.ID, "")
		wants(t, "restored over a file", models.KindConflict, err)
		if _, err := w.Restore(ctx, w.acting, w.project, item.ID, w.at("other")); err != nil || w.read(t, w.at("other/a")) != "four" {
			t.Errorf("restored elsewhere: %v", err)
		}
		item, err = w.Delete(ctx, w.acting, w.project, w.at("other"), Condition{})
		if err != nil || w.Purge(ctx, w.acting, w.project, item.ID) != nil {
			t.Errorf("purged: %v", err)
		}
		w.settled(t, 10)
		if _, err = w.Delete(ctx, w.acting, w.project, w.at("dir"), Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at("gone")); err != nil {
			t.Fatal(err)
		}
		w.write(t, w.at("gone/a"), "")
		item, err = w.Delete(ctx, w.acting, w.project, w.at("gone/a"), Condition{})
		if err == nil {
			_, err = w.Delete(ctx, w.acting, w.project, w.at("gone"), Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Restore(ctx, w.acting, w.project, item.ID, "")
		wants(t, "restored into a directory that is gone", models.KindConflict, err)
		w.clock.Advance(31 * 24 * time.Hour)
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		w.settled(t, 0)
	})
}

func TestCopyAndMove(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"dir", "dir/sub", "dir/sub/empty"} {
			if _, err := w.MakeDirectory(ctx, w.acting, w.project, w.at(dir)); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, w.at("dir/a"), "one")
		w.write(t, w.at("dir/sub/b"), "seven77")
		w.write(t, w.at("dir/z"), "z")
		if err := os.Symlink("/etc/passwd", w.disk(w.at("dir/link"))); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Copy(ctx, w.acting, w.project, w.at("dir"), w.at("copy")); err != nil {
			t.Fatal(err)
		}
		if w.read(t, w.at("copy/sub/b")) != "seven77" || w.names(t, w.at("copy")) != "sub a z" || w.names(t, w.at("copy/sub")) != "empty b" {
			t.Errorf("%s; %s", w.names(t, w.at("copy")), w.names(t, w.at("copy/sub")))
		}
		if err := os.Remove(w.disk(w.at("dir/link"))); err != nil {
			t.Fatal(err)
		}
		w.settled(t, 22)
		if _, err := w.Copy(ctx, w.acting, w.project, w.at("dir/a"), w.at("b")); err != nil || w.read(t, w.at("b")) != "one" {
			t.Errorf("%v", err)
		}
		for what, to := range map[string]models.FilePath{"over a directory": w.at("copy"), "over a file": w.at("b")} {
			for _, from := range []string{"dir", "dir/a"} {
				_, err1 := w.Copy(ctx, w.acting, w.project, w.at(from), to)
				_, err2 := w.Move(ctx, w.acting, w.project, w.at(from), to)
				wants(t, "copied "+from+" "+what, models.KindConflict, err1)
				wants(t, "moved "+from+" "+what, models.KindConflict, err2)
			}
		}
		for _, to := range []string{"dir/sub/x", "dir"} {
			_, err1 := w.Copy(ctx, w.acting, w.project, w.at("dir"), w.at(to))
			_, err2 := w.Move(ctx, w.acting, w.project, w.at("dir"), w.at(to))
			wants(t, "copied into itself", models.KindInvalid, err1)
			wants(t, "moved into itself", models.KindInvalid, err2)
		}
		own := models.FilePath(rules.MemberDir(w.project, w.member) + "/moved")
		if _, err := w.Move(ctx, w.acting, w.project, w.at("dir"), own); err != nil || w.read(t, own+"/sub/b") != "seven77" {
			t.Errorf("moved: %v", err)
		}
		if w.read(t, "/home/jovyan/moved/a") != "one" {
			t.Error("the own directory is not the home")
		}
		f, err := w.Search(ctx, w.acting, w.project, models.FilePath(rules.ProjectDir(w.project)), "B")
		if err != nil || !f.Complete || len(f.Entries) != 5 { // b, and sub and sub/b of the copy and of the moved one
			t.Errorf("%+v, %v", f, err)
		}
		w.settled(t, 25)
	})
}

// What is not a regular file with one link is shown and removed, but not opened.
func TestIrregularEntries(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		if err := errors.Join(os.Symlink("/etc/passwd", w.disk(w.at("link"))), os.Symlink("/etc", w.disk(w.at("dirlink")))); err != nil {
			t.Fatal(err)
		}
		_, err := w.Open(ctx, w.acting, w.project, w.at("link"), true)
		wants(t, "open", models.KindConflict, err)
		_, err = w.Open(ctx, w.acting, w.project, w.at("dirlink/passwd"), true)
		wants(t, "open below", models.KindNotFound, err)
		_, err = w.List(ctx, w.acting, w.project, ListQuery{Path: w.at("dirlink")})
		wants(t, "list", models.KindNotFound, err)
		for path, kind := range map[string]models.Kind{"link": models.KindConflict, "dirlink": models.KindConflict, "dirlink/x": models.KindNotFound} {
			_, err = w.Write(ctx, w.acting, w.project, w.at(path), strings.NewReader("x"), 1, Condition{})
			wants(t, "write", kind, err)
		}
		_, err = w.Open(ctx, w.acting, w.project, w.at(""), true)
		wants(t, "open a directory", models.KindConflict, err)
		if w.names(t, w.at("")) != "dirlink link" {
			t.Error(w.names(t, w.at("")))
		}
		for _, path := range []string{"link", "dirlink"} {
			if _, err := w.Delete(ctx, w.acting, w.project, w.at(path), Condition{}); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestQuota(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, size := range []int64{-1, quotaMiB*mebibyte + 1} {
			_, err := w.Write(ctx, w.acting, w.project, w.at("a"), limited(quotaMiB*mebibyte+1), size, Condition{})
			wants(t, "too large", models.KindNoCapacity, err)
		}
		w.settled(t, 0)
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			return q.AddStorageUse(w.project, models.StorageChange{At: scanBegin, Bytes: models.StorageShares{0: (quotaMiB - 1) * mebibyte}})
		})
		var group sync.WaitGroup
		var mu sync.Mutex
		fit := 0
		for i := range 4 {
			group.Go(func() {
				_, err := w.Write(ctx, w.acting, w.project, w.at(fmt.Sprint(i)), limited(mebibyte/2), []int64{-1, mebibyte / 2}[i%2], Condition{})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					fit++
				} else {
					wants(t, "one of four", models.KindNoCapacity, err)
				}
			})
		}
		group.Wait()
		use, err := w.store.Read(ctx).StorageUse(w.project)
		if err != nil || use.Used != int64(quotaMiB-1)*mebibyte+int64(fit)*mebibyte/2 || use.Reserved != 0 || fit < 1 || fit > 2 {
			t.Errorf("%+v, %d fit, %v", use, fit, err)
		}
		if _, err := w.Copy(ctx, w.acting, w.project, w.at(firstOf(w.names(t, w.at("")))), w.at("copy")); fit == 2 {
			wants(t, "copy", models.KindNoCapacity, err)
		}
	})
}

func firstOf(names string) string { return strings.Fields(names)[0] }

// limited is so many zeros.
func limited(n int64) io.Reader { return io.LimitReader(zero{}, n) }

type zero struct{}

func (zero) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// The rules hold for every operation: rule, path and operation to the kind of the
// refusal, or "".
func TestOperationsFollowTheRules(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"none", "read", "write", "nodownload", "write/inner", "write/inner/hidden"} {
			if err := os.Mkdir(w.disk(w.at(dir)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.disk(w.at(dir+"/file")), []byte("x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w.write(t, w.at("source"), "x")
		w.rule(t, w.at("none"), models.AccessNone, "")
		w.rule(t, w.at("read"), models.AccessRead, "")
		w.rule(t, w.at("nodownload"), models.AccessWrite, models.DownloadDeny)
		w.rule(t, w.at("write/inner/hidden"), models.AccessNone, "")
		const ok, gone, denied, conflict = "", string(models.KindNotFound), string(models.KindForbidden), string(models.KindConflict)
		n := 0
		for _, c := range []struct {
			dir                                                               string
			list, stat, open, write, create, copyFrom, moveFrom, remove, drop string
		}{
			{"none", gone, gone, gone, gone, gone, gone, gone, gone, gone},
			{"read", ok, ok, ok, denied, denied, ok, denied, denied, denied},
			{"write", ok, ok, ok, ok, ok, ok, ok, ok, gone}, // it has rules below, one of which hides
			{"nodownload", ok, ok, denied, ok, ok, denied, denied, ok, conflict},
			{"write/inner", ok, ok, ok, ok, ok, ok, ok, ok, gone},
			{"write/inner/hidden", gone, gone, gone, gone, gone, gone, gone, gone, gone},
		} {
			n++
			fresh := func() models.FilePath { n++; return w.at(fmt.Sprint("fresh", n)) }
			file := w.at(c.dir + "/file")
			_, list := w.List(ctx, w.acting, w.project, ListQuery{Path: w.at(c.dir)})
			_, stat := w.Stat(ctx, w.acting, w.project, file)
			content, open := w.Open(ctx, w.acting, w.project, file, false)
			if open == nil {
				content.Close()
			}
			_, write := w.Write(ctx, w.acting, w.project, file, strings.NewReader("y"), 1, Condition{})
			_, create := w.Write(ctx, w.acting, w.project, w.at(c.dir+"/new"), strings.NewReader("y"), 1, Condition{})
			_, mkdir := w.MakeDirectory(ctx, w.acting, w.project, w.at(c.dir+"/newdir"))
			_, copyTo := w.Copy(ctx, w.acting, w.project, w.at("source"), w.at(c.dir+"/copied"))
			_, copyFrom := w.Copy(ctx, w.acting, w.project, file, fresh())
			_, moveFrom := w.Move(ctx, w.acting, w.project, file, fresh())
			if moveFrom == nil {
				w.write(t, file, "again")
			}
			_, remove := w.Delete(ctx, w.acting, w.project, file, Condition{})
			_, drop := w.Delete(ctx, w.acting, w.project, w.at(c.dir), Condition{})
			for _, r := range []struct {
				operation, want string
				err             error
			}{{"list", c.list, list}, {"stat", c.stat, stat}, {"open", c.open, open}, {"write", c.write, write}, {"create", c.create, create}, {"mkdir", c.create, mkdir},
				{"copy to", c.create, copyTo}, {"copy from", c.copyFrom, copyFrom}, {"move from", c.moveFrom, moveFrom}, {"delete", c.remove, remove}, {"delete the directory", c.drop, drop}} {
				if r.want == "" && r.err != nil || r.want != "" && string(models.KindOf(r.err)) != r.want {
					t.Errorf("%s in %s: %v, want %q", r.operation, c.dir, r.err, r.want)
				}
			}
		}
		if names := w.names(t, w.at("write/inner")); strings.Contains(names, "hidden") {
			t.Errorf("listed: %s", names)
		}
		for _, actor := range []policies.Actor{w.stranger, {User: models.User{ID: 9999}}} {
			_, err := w.List(ctx, actor, w.project, ListQuery{Path: w.at("")})
			wants(t, "stranger", models.KindNotFound, err)
		}
		_, err := w.List(ctx, policies.Actor{}, w.project, ListQuery{Path: w.at("")})
		wants(t, "nobody", models.KindUnauthenticated, err)
		for _, path := range []models.FilePath{"/notebook/999/project_model/x", "/notebook", "/.weir/projects", "/etc/passwd", "/notebook/../etc"} {
			_, err := w.Stat(ctx, w.acting, w.project, path)
			if kind := models.KindOf(err); err == nil || kind != models.KindNotFound && kind != models.KindInvalid {
				t.Errorf("%s: %v", path, err)
			}
		}
		root := models.FilePath(rules.ProjectDir(w.project))
		for _, path := range []models.FilePath{root, root + "/project_model", root + "/new", models.FilePath(rules.MemberDir(w.project, w.member))} {
			_, err := w.Delete(ctx, w.acting, w.project, path, Condition{})
			wants(t, string(path), models.KindForbidden, err)
		}
	})
}

// pausing is content that waits before its end.
type pausing struct {
	content          io.Reader
	reached, proceed chan struct{}
}

func newPausing(content string) *pausing {
	return &pausing{strings.NewReader(content), make(chan struct{}), make(chan struct{})}
}

func (p *pausing) Read(b []byte) (int, error) {
	n, err := p.content.Read(b)
	if err != nil {
		close(p.reached)
		<-p.proceed
	}
	return n, err
}

func TestListInPages(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for i := range 25 {
			if err := os.WriteFile(w.disk(w.at(fmt.Sprintf("f%02d", i))), make([]byte, (i*7)%25), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(w.disk(w.at("z")), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, q := range []ListQuery{{Sort: ByName}, {Sort: BySize}, {Sort: BySize, Descending: true}, {Sort: ByModified, Descending: true}} {
			seen := map[string]bool{}
			q.Path, q.Limit = w.at(""), 7
			var sizes []int64
			for pages := 1; ; pages++ {
				l, err := w.List(ctx, w.acting, w.project, q)
				if err != nil || pages > 4 {
					t.Fatal(pages, err)
				}
				for _, e := range l.Entries {
					seen[e.Name], sizes = true, append(sizes, e.Size)
				}
				if q.Cursor = l.Next; l.Next == "" {
					break
				}
			}
			if len(seen) != 26 || len(sizes) != 26 || q.Sort == BySize && q.Descending && (sizes[1] != 24 || sizes[25] != 0) ||
				q.Sort == BySize && !q.Descending && (sizes[1] != 0 || sizes[25] != 24) {
				t.Errorf("%s: %d entries, sizes %v", q.Sort, len(seen), sizes)
			}
		}
		_, err := w.List(ctx, w.acting, w.project, ListQuery{Path: w.at(""), Cursor: "!"})
		wants(t, "cursor", models.KindInvalid, err)
		if names := w.names(t, "/"); !strings.HasPrefix(names, fmt.Sprint(w.project, " public_algorithm")) {
			t.Errorf("roots: %s", names)
		}
	})
}

// BenchmarkList lists a page of a directory with 10,000 files.
func BenchmarkList(b *testing.B) {
	s := storetest.Open(b, "sqlite")
	w := newWorld(b, s, b.TempDir())
	for i := range 10_000 {
		if err := os.WriteFile(w.disk(w.at(fmt.Sprintf("f%05d", i))), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if l, err := w.List(b.Context(), w.acting, w.project, ListQuery{Path: w.at(""), Limit: 1000}); err != nil || len(l.Entries) != 1000 {
			b.Fatal(err)
		}
	}
}
