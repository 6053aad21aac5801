package files

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// An upload is resumed by another process, and ends when nobody continues it.
func TestUploadsAreResumed(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		u, err := w.BeginUpload(ctx, w.acting, w.project, w.at("a"), 11)
		if err != nil {
			t.Fatal(err)
		}
		broken := io.MultiReader(strings.NewReader("hello "), errorReader{})
		if n, err := u.Append(ctx, 0, broken); n != 6 || !errors.Is(err, errBroken) {
			t.Errorf("%d, %v", n, err)
		}
		if use, err := w.store.Read(ctx).StorageUse(w.project); err != nil || use.Reserved != 11 {
			t.Errorf("%+v, %v", use, err)
		}
		w.open(t, w.path)
		w.clock.Advance(23 * time.Hour)
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if u, err = w.Upload(ctx, w.acting, w.project, u.ID()); err != nil || u.Offset != 6 {
			t.Fatalf("%+v, %v", u, err)
		}
		_, err = u.Finish(ctx)
		wants(t, "finished too early", models.KindConflict, err)
		_, err = u.Append(ctx, 5, strings.NewReader("x"))
		wants(t, "at another offset", models.KindConflict, err)
		if n, err := u.Append(ctx, 6, strings.NewReader("world, and more")); n != 5 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if e, err := u.Finish(ctx); err != nil || e.Size != 11 || w.read(t, w.at("a")) != "hello world" {
			t.Errorf("%+v, %v", e, err)
		}
		w.settled(t, 11)
		if u, err = w.BeginUpload(ctx, w.acting, w.project, w.at("b"), 11); err != nil {
			t.Fatal(err)
		}
		_, err = w.Upload(ctx, w.managing, w.project, u.ID())
		wants(t, "of another member", models.KindNotFound, err)
		w.clock.Advance(25 * time.Hour)
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		_, err = w.Upload(ctx, w.acting, w.project, u.ID())
		wants(t, "after its time", models.KindNotFound, err)
		w.settled(t, 11)
	})
}

var errBroken = errors.New("the connection is broken")

type errorReader struct{}

func (errorReader) Read([]byte) (int, error) { return 0, errBroken }

// An access token that may only read changes nothing.
func TestChangesNeedTheScope(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.write(t, w.at("file"), "x")
		reading := w.acting
		reading.Scopes = []models.TokenScope{models.ScopeRead}
		if _, err := w.Stat(ctx, reading, w.project, w.at("file")); err != nil {
			t.Error(err)
		}
		_, write := w.Write(ctx, reading, w.project, w.at("file"), strings.NewReader("y"), 1, Condition{})
		_, mkdir := w.MakeDirectory(ctx, reading, w.project, w.at("new"))
		_, move := w.Move(ctx, reading, w.project, w.at("file"), w.at("moved"))
		_, remove := w.Delete(ctx, reading, w.project, w.at("file"), Condition{})
		_, upload := w.BeginUpload(ctx, reading, w.project, w.at("uploaded"), 1)
		for what, err := range map[string]error{"write": write, "mkdir": mkdir, "move": move, "delete": remove, "upload": upload, "uploads": w.CheckUploads(ctx, reading, w.project)} {
			if e := (*models.Error)(nil); !errors.As(err, &e) || e.Scope != models.ScopeLaunch {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
