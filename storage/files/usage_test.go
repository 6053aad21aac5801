package files

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// own is a path in the own directory of the member.
func (w *world) own(name string) models.FilePath {
	return models.FilePath(rules.MemberDir(w.project, w.member) + "/" + name)
}

// usedBy checks the bytes of the member, before and after a measurement.
func (w *world) usedBy(t *testing.T, member, used int64) {
	t.Helper()
	for _, when := range []string{"counted", "measured"} {
		if use, reserved, err := w.store.Read(t.Context()).MemberStorageUse(member); err != nil || use.Used != used || reserved != 0 {
			t.Errorf("%s: %+v, %d reserved, %v; want %d", when, use, reserved, err, used)
		}
		if err := w.Measure(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
	}
}

// What is in a member's directory is the member's, through every operation.
func TestUseOfMembers(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.write(t, w.own("a"), "12345")
		w.write(t, w.at("b"), "1234567")
		w.usedBy(t, w.member, 5)
		w.write(t, w.own("a"), "123")
		w.usedBy(t, w.member, 8) // with the version
		if _, err := w.Move(ctx, w.acting, w.project, w.at("b"), w.own("b")); err != nil {
			t.Fatal(err)
		}
		w.usedBy(t, w.member, 15)
		item, err := w.Delete(ctx, w.acting, w.project, w.own("b"), Condition{})
		if err != nil {
			t.Fatal(err)
		}
		w.usedBy(t, w.member, 15)
		if _, err := w.Restore(ctx, w.acting, w.project, item.ID, w.at("c")); err != nil {
			t.Fatal(err)
		}
		w.usedBy(t, w.member, 8)
		if item, err = w.Delete(ctx, w.acting, w.project, w.own("a"), Condition{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Purge(ctx, w.acting, w.project, item.ID); err != nil {
			t.Fatal(err)
		}
		w.usedBy(t, w.member, 5)
		w.clock.Advance(8 * 24 * time.Hour) // the version's time is over
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		w.usedBy(t, w.member, 0)
		w.settled(t, 7)
	})
}

// Files with a member's uid are the member's also elsewhere.
func TestUseByUID(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	uid := uint32(os.Geteuid())
	w.MemberOf = func(of uint32) int64 { return map[uint32]int64{uid: w.member}[of] }
	w.write(t, w.at("a"), "12345")
	w.write(t, w.at("a"), "123")
	w.usedBy(t, w.member, 8)
	if _, err := w.Delete(t.Context(), w.acting, w.project, w.at("a"), Condition{}); err != nil {
		t.Fatal(err)
	}
	w.usedBy(t, w.member, 8)
	w.settled(t, 8)
}

// Who exceeds a limit can read and delete, but write nothing.
func TestLimits(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.limit(t, 1)
		put := func(path models.FilePath, size int64) error {
			_, err := w.Write(ctx, w.acting, w.project, path, limited(size), size, Condition{})
			return err
		}
		if err := put(w.own("half"), mebibyte/2); err != nil {
			t.Fatal(err)
		}
		wants(t, "more than the limit", models.KindNoCapacity, put(w.own("more"), mebibyte/2+1))
		if err := put(w.at("elsewhere"), 2*mebibyte); err != nil {
			t.Errorf("the limit holds for the project's directories: %v", err)
		}
		_, err := w.Move(ctx, w.acting, w.project, w.at("elsewhere"), w.own("moved"))
		wants(t, "moved into the own directory", models.KindNoCapacity, err)
		// A notebook writes past the limit.
		if err := os.WriteFile(w.disk(w.own("notebook")), make([]byte, mebibyte), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := w.Measure(ctx, w.project); err != nil {
			t.Fatal(err)
		}
		wants(t, "an empty file", models.KindNoCapacity, put(w.own("empty"), 0))
		_, err = w.MakeDirectory(ctx, w.acting, w.project, w.own("dir"))
		wants(t, "a directory", models.KindNoCapacity, err)
		if err == nil || !strings.Contains(err.Error(), "1 MiB, of which 2 MiB is used") {
			t.Errorf("%v", err)
		}
		if w.read(t, w.own("half")) == "" {
			t.Error("cannot read")
		}
		w.excess(t)
		item, err := w.Delete(ctx, w.acting, w.project, w.own("notebook"), Condition{})
		if err == nil {
			err = w.Purge(ctx, w.acting, w.project, item.ID)
		}
		if err != nil {
			t.Fatalf("delete: %v", err)
		}
		if err := put(w.own("small"), 100); err != nil {
			t.Errorf("within the limit again: %v", err)
		}
		if u := w.directoryUser(t); u.Exceeded != true {
			t.Error("the end of the excess is recorded before the sweep")
		}
		if err := w.Sweep(ctx); err != nil || w.directoryUser(t).Exceeded {
			t.Errorf("after the excess: %+v, %v", w.directoryUser(t), err)
		}
	})
}

// limit sets the storage limit of all roles, in MiB.
func (w *world) limit(t *testing.T, mebibytes int64) {
	t.Helper()
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		roles, err := q.Roles(store.AllProjects, w.project)
		for _, r := range roles {
			r.Limit.StorageMiB = mebibytes
			err = errors.Join(err, q.UpdateRole(&r))
		}
		return err
	})
}

func (w *world) directoryUser(t *testing.T) models.DirectoryUser {
	t.Helper()
	u, err := w.store.Read(t.Context()).DirectoryUser(w.project, w.member)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// excess checks that the excess is told once, and makes mounts read-only after the
// period of grace.
func (w *world) excess(t *testing.T) {
	t.Helper()
	for range 2 {
		if err := w.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, err := w.store.Read(t.Context()).Notifications(w.acting.User.ID, store.Page{})
	if err != nil || len(list) != 1 || list[0].Kind != models.NotificationStorageExceeded || !strings.Contains(list[0].Text.String(), "use 2 MiB; your limit is 1 MiB") {
		t.Errorf("%+v, %v", list, err)
	}
	own := string(w.own("half"))
	for _, exceeded := range []bool{false, true} {
		user, err := w.Verdicts.Of(t.Context(), w.directoryUser(t))
		if err != nil {
			t.Fatal(err)
		}
		v := user.Verdict(own)
		if v.Exceeded != exceeded || v.Access != models.AccessWrite || v.Mounted().Access == models.AccessWrite == exceeded {
			t.Errorf("%+v, mounted %+v", v, v.Mounted())
		}
		w.clock.Advance(w.Grace)
	}
}

// A measurement continues where it was, and changes behind it are not lost.
func TestMeasurementContinues(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, dir := range []string{"a", "b", "b-c", "b/x", "d"} {
			if err := os.MkdirAll(w.disk(w.at(dir)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.disk(w.at(dir+"/file")), []byte("1234"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		at := scanPath(0, "project_model/b")
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			return errors.Join(q.BeginScan(w.project, scanBegin), q.AdvanceScan(w.project, at, models.StorageShares{0: 8}))
		})
		w.write(t, w.at("a/behind"), "56")
		w.write(t, w.at("d/ahead"), "789")
		if _, err := w.Delete(ctx, w.acting, w.project, w.at("b/file"), Condition{}); err != nil {
			t.Fatal(err)
		}
		if err := w.Measure(ctx, w.project); err != nil {
			t.Fatal(err)
		}
		w.settled(t, 5*4+2+3)
	})
}

// A hostile tree is measured, and removed, with few open files.
func TestDeepTrees(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	const depth = 3000
	at, err := os.OpenRoot(w.disk(w.own("")))
	if err != nil {
		t.Fatal(err)
	}
	name := strings.Repeat("d", 20)
	for i := range depth {
		if i%2 == 0 {
			if err := at.WriteFile("file", []byte("1"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := at.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := at.Close(); err != nil {
			t.Fatal(err)
		}
		at = next
	}
	if err := at.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Measure(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	// Beyond 16 KiB of path nothing is measured.
	use, _, err := w.store.Read(t.Context()).MemberStorageUse(w.member)
	if want := int64(16<<10/21/2 + 1); err != nil || use.Used < want-2 || use.Used > want+2 {
		t.Errorf("%+v, %v; want about %d", use, err, want)
	}
	item, err := w.Delete(t.Context(), w.acting, w.project, w.own(name), Condition{})
	if err != nil {
		t.Fatal(err)
	}
	before := openFiles(t)
	if err := w.Purge(t.Context(), w.acting, w.project, item.ID); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(w.meta("trash") + "/*"); err != nil || len(left) != 0 || openFiles(t) > before {
		t.Errorf("left: %v, %v; %d files open, before %d", left, err, openFiles(t), before)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A directory with more entries than are kept at a time is read in parts.
func TestWideTrees(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	const wide = 25_000
	for i := range wide {
		if err := os.Mkdir(w.disk(w.own(fmt.Sprint(i))), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(w.disk(w.own("9999/file")), []byte("last"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := w.Measure(t.Context(), w.project); err != nil {
		t.Fatal(err)
	}
	w.usedBy(t, w.member, 4)
}
