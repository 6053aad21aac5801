package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

func (w *world) dataset(name string) models.FilePath {
	return models.FilePath(rules.ProjectDir(w.project) + "/project_dataset/" + name)
}

// What may not be downloaded cannot be restored to where it could be.
func TestRestoreElsewhereIsADownload(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.write(t, w.at("secret"), "secret")
		w.rule(t, w.at(""), models.AccessWrite, models.DownloadDeny)
		item, err := w.Delete(ctx, w.acting, w.project, w.at("secret"), Condition{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.Restore(ctx, w.acting, w.project, item.ID, w.dataset("x"))
		wants(t, "elsewhere", models.KindForbidden, err)
		if _, err = w.Restore(ctx, w.acting, w.project, item.ID, ""); err != nil {
			t.Errorf("where it was: %v", err)
		}
	})
}

// Of several writers with the same condition, one meets it.
func TestConcurrentConditions(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		for i := range 20 {
			name := w.at(fmt.Sprint("f", i))
			met := func(c Condition) int64 {
				var n atomic.Int64
				storetest.Concurrently(4, func(j int) {
					if _, err := w.Write(context.Background(), w.acting, w.project, name, strings.NewReader(fmt.Sprint(j)), 1, c); err == nil {
						n.Add(1)
					}
				})
				return n.Load()
			}
			if n := met(Condition{IfNoneMatch: "*"}); n != 1 {
				t.Errorf("%d create the file", n)
			}
			e, err := w.Stat(t.Context(), w.acting, w.project, name)
			if err != nil {
				t.Fatal(err)
			}
			if n := met(Condition{IfMatch: e.ETag}); n != 1 {
				t.Errorf("%d replace the same content", n)
			}
		}
		w.settled(t, 40)
	})
}

// A write does not follow its directory to where other rules hold.
func TestDirectoryIsMovedDuringAWrite(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, d := range []string{"d", "locked"} {
			if _, err := w.MakeDirectory(ctx, w.managing, w.project, w.at(d)); err != nil {
				t.Fatal(err)
			}
		}
		w.rule(t, w.at("locked"), models.AccessRead, models.DownloadInherit)
		body, done := newPausing("planted"), make(chan error, 1)
		go func() {
			_, err := w.Write(ctx, w.acting, w.project, w.at("d/f"), body, -1, Condition{})
			done <- err
		}()
		<-body.reached
		if _, err := w.Move(ctx, w.managing, w.project, w.at("d"), w.at("locked/d")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.MakeDirectory(ctx, w.managing, w.project, w.at("d")); err != nil {
			t.Fatal(err)
		}
		close(body.proceed)
		wants(t, "write", models.KindConflict, <-done)
		if _, err := os.Stat(w.disk(w.at("locked/d/f"))); !os.IsNotExist(err) {
			t.Errorf("it was written there: %v", err)
		}
	})
}

// If the old content cannot be kept, it stays where it is.
func TestOldContentCannotBeKept(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"), t.TempDir())
	w.write(t, w.at("warm"), "a")
	w.write(t, w.at("warm"), "b")
	w.write(t, w.at("f"), "old content")
	// An error of the last rename: another file system is mounted there.
	if err := unix.Mount("tmpfs", w.meta(versionsDir), "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	defer unix.Unmount(w.meta(versionsDir), unix.MNT_DETACH)
	if _, err := w.Write(t.Context(), w.acting, w.project, w.at("f"), strings.NewReader("new"), 3, Condition{}); err == nil {
		t.Error("the write succeeds")
	}
	if content, err := os.ReadFile(w.disk(w.at("f"))); err != nil || string(content) != "old content" {
		t.Errorf("%q, %v", content, err)
	}
	if left, err := filepath.Glob(filepath.Join(w.meta(tmpDir), "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// The sweep leaves alone what has been continued since it was listed.
func TestSweepOfARenewedUpload(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		u, err := w.BeginUpload(ctx, w.acting, w.project, w.at("f"), 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(ctx, 0, strings.NewReader("hello")); err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(25 * time.Hour)
		list, err := w.store.Read(ctx).ExpiredFileOperations(w.store.Now())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		again, err := w.Upload(ctx, w.acting, w.project, u.ID())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := again.Append(ctx, 5, strings.NewReader("world")); err != nil {
			t.Fatal(err)
		}
		if err := w.recover(ctx, list[0]); err != nil {
			t.Error(err)
		}
		if _, err := again.Finish(ctx); err != nil {
			t.Error(err)
		}
		if content, err := os.ReadFile(w.disk(w.at("f"))); string(content) != "helloworld" {
			t.Errorf("%q, %v", content, err)
		}
	})
}

// An upload survives an error that is not a refusal, and is cancelled by one request only
// while no other finishes it.
func TestFinishFailsForAMoment(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		u, err := w.BeginUpload(ctx, w.acting, w.project, w.at("f"), 5)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(ctx, 0, strings.NewReader("hello")); err != nil {
			t.Fatal(err)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := u.Finish(gone); err == nil {
			t.Error("it is finished for nobody")
		}
		f, err := os.OpenFile(filepath.Join(w.meta(tmpDir), idName(u.ID())), os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil { // as while it is finished
			t.Fatal(err)
		}
		if err := u.Cancel(ctx); err == nil {
			t.Error("it is cancelled meanwhile")
		}
		f.Close()
		again, err := w.Upload(ctx, w.acting, w.project, u.ID())
		if err == nil {
			_, err = again.Finish(ctx)
		}
		if content, _ := os.ReadFile(w.disk(w.at("f"))); err != nil || string(content) != "hello" {
			t.Errorf("%q, %v", content, err)
		}
	})
}

// A claimed size cannot break the sums of a project without a quota.
func TestHugeReservations(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			p, err := q.LockProject(store.AllProjects, w.project)
			if err != nil {
				return err
			}
			p.Quota.StorageMiB = models.Unlimited
			return q.UpdateProject(&p)
		})
		for range 2 {
			_, err := w.BeginUpload(t.Context(), w.acting, w.project, w.at("big"), math.MaxInt64)
			wants(t, "a huge upload", models.KindNoCapacity, err)
		}
		_, err := w.Write(t.Context(), w.acting, w.project, w.at("big"), io.LimitReader(strings.NewReader("x"), 1), math.MaxInt64, Condition{})
		wants(t, "a huge write", models.KindNoCapacity, err)
		w.write(t, w.at("other"), "x")
	})
}

// Storage that does not answer delays the revocations of the rights that the change
// depends on until their deadline, and no others. A change that waits behind it has the
// new rights.
func TestRevocationsWhileStorageHangs(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		v, err := w.viewOf(ctx, w.acting, w.project)
		if err != nil {
			t.Fatal(err)
		}
		begun, hangs, ended := make(chan struct{}), make(chan struct{}), make(chan error)
		go func() {
			ended <- w.effects.run(v.revocationKeys(), func() error { return nil }, func() error {
				close(begun)
				<-hangs
				return nil
			})
		}()
		<-begun
		checks := 0
		err = w.effects.run(v.revocationKeys(), func() error {
			if checks++; checks > 1 {
				return fs.ErrPermission
			}
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			w.Revoked(soon, []string{store.RevocationKey(store.FilesOf, w.project)})
			if soon.Err() == nil {
				t.Error("the revocation did not wait for the change that had begun")
			}
			return nil
		}, func() error {
			t.Error("it takes effect with revoked rights")
			return nil
		})
		if err != fs.ErrPermission {
			t.Errorf("the second check: %v", err)
		}
		w.Revoked(ctx, []string{store.RevocationKey("user", w.stranger.User.ID)}) // returns
		close(hangs)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		w.Revoked(ctx, v.revocationKeys())
	})
}
