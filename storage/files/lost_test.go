package files

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/rules"
)

// forget removes the records of what is kept, as the restore of an older database does, and returns their ids.
func (w *world) forget(t *testing.T) (deleted, overwritten int64) {
	t.Helper()
	ctx := t.Context()
	w.write(t, w.own("overwritten"), "before")
	w.write(t, w.own("overwritten"), "after")
	w.write(t, w.own("deleted"), "secret")
	versions, err1 := w.Versions(ctx, w.acting, w.project, w.own("overwritten"), store.Page{})
	item, err2 := w.Delete(ctx, w.acting, w.project, w.own("deleted"), Condition{})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	err := w.store.InTx(ctx, func(q *store.Queries) error {
		return errors.Join(q.DeleteFileVersion(versions[0].ID), q.DeleteTrashedFile(item.ID))
	})
	if err != nil {
		t.Fatal(err)
	}
	return item.ID, versions[0].ID
}

// lost lists what an actor sees that was found without a record.
func (w *world) lost(t *testing.T, actor policies.Actor) (trash []Trashed, versions []Version) {
	t.Helper()
	trash, err := w.Trash(t.Context(), actor, w.project, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	versions, err = w.Versions(t.Context(), actor, w.project, LostPath(w.project), store.Page{})
	if models.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return trash, versions
}

// What is kept without a record is found by a measurement. Only who makes the rules sees it, removes it, or restores it.
func TestLost(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		deleted, overwritten := w.forget(t)
		w.settled(t, 17)
		trash, versions := w.lost(t, w.managing)
		if len(trash) != 1 || trash[0].ID != deleted || !trash[0].Changeable || !trash[0].Versions || trash[0].Bytes != 6 || trash[0].Directory {
			t.Fatalf("in the trash: %+v", trash)
		}
		if len(versions) != 1 || versions[0].ID != overwritten || !versions[0].Changeable || versions[0].Bytes != 6 {
			t.Fatalf("versions: %+v", versions)
		}
		if trash, versions := w.lost(t, w.acting); len(trash)+len(versions) != 0 {
			t.Errorf("a member sees %+v, %+v", trash, versions)
		}
		_, err1 := w.Restore(ctx, w.acting, w.project, deleted, w.own("stolen"))
		_, err2 := w.OpenVersion(ctx, w.acting, w.project, overwritten, false)
		_, err3 := w.RestoreVersion(ctx, w.acting, w.project, overwritten)
		_, err4 := w.PurgeVersion(ctx, w.acting, w.project, overwritten)
		for _, err := range []error{err1, err2, err3, err4, w.Purge(ctx, w.acting, w.project, deleted)} {
			wants(t, "a member", models.KindNotFound, err)
		}
		content, err := w.OpenVersion(ctx, w.managing, w.project, overwritten, false)
		if err != nil {
			t.Fatal(err)
		}
		read, err := io.ReadAll(content.File)
		if err = errors.Join(err, content.Close()); err != nil || string(read) != "before" {
			t.Errorf("%q, %v", read, err)
		}
		_, err = w.Write(ctx, w.managing, w.project, LostPath(w.project), strings.NewReader(""), 0, Condition{})
		wants(t, "written", models.KindForbidden, err)
		home := w.home(t)
		e, err := w.Restore(ctx, w.managing, w.project, deleted, "")
		if want := home + "/lost+found-" + idName(deleted); err != nil || string(e.Path) != want || w.read(t, e.Path) != "secret" {
			t.Errorf("restored %+v, %v; want %s", e, err, want)
		}
		if e, err = w.RestoreVersion(ctx, w.managing, w.project, overwritten); err != nil || w.read(t, e.Path) != "before" {
			t.Errorf("restored %+v, %v", e, err)
		}
		if _, err := w.PurgeVersion(ctx, w.managing, w.project, overwritten); err != nil {
			t.Error(err)
		}
		w.settled(t, 17)
	})
}

// home makes the own directory of the manager.
func (w *world) home(t *testing.T) string {
	t.Helper()
	u, err := w.store.Read(t.Context()).DirectoryUserOf(w.project, w.managing.User.ID)
	dir := rules.MemberDir(w.project, u.MemberID)
	if err = errors.Join(err, os.Mkdir(w.disk(models.FilePath(dir)), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What was found is kept as long as if it had been deleted then; an operation that is unfinished keeps its own.
func TestLostIsRemovedInTime(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.forget(t)
		o := models.FileOperation{ProjectID: w.project, Kind: "delete", Path: w.at("x"), ExpiresAt: w.store.Now().Add(time.Hour)}
		if err := w.store.InTx(t.Context(), func(q *store.Queries) error { return q.CreateFileOperation(&o) }); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{idName(o.ID), "notes"} {
			if err := os.WriteFile(filepath.Join(w.meta(trashDir), name), []byte("1"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.Advance(31 * 24 * time.Hour)
		if err := w.Measure(t.Context(), w.project); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(6 * 24 * time.Hour)
		for _, want := range []int{1, 0, 0} {
			trash, versions := w.lost(t, w.managing)
			if len(versions) != want || len(trash) != 1 {
				t.Errorf("%+v, %+v; want %d", trash, versions, want)
			}
			w.clock.Advance(2 * 24 * time.Hour)
			if err := w.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
