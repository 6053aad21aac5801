package files

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// What a curator changes in a public directory counts for no one, and is kept apart.
func TestPublicDirectories(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		const file = models.FilePath("/public_model/a")
		put := func(content string) error {
			_, err := w.Write(ctx, w.acting, w.project, file, strings.NewReader(content), int64(len(content)), Condition{})
			return err
		}
		wants(t, "not a curator", models.KindForbidden, put("x"))
		c := models.Curator{Directory: "/public_model", ProjectID: &w.project}
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			c.CreatedAt = q.Now()
			return q.CreateCurator(&c)
		})
		if err := errors.Join(put("one"), put("second")); err != nil {
			t.Fatal(err)
		}
		versions, err := w.Versions(ctx, w.acting, w.project, file, store.Page{})
		if err != nil || len(versions) != 1 {
			t.Fatalf("%+v, %v", versions, err)
		}
		if _, err := w.RestoreVersion(ctx, w.acting, w.project, versions[0].ID); err != nil || w.read(t, file) != "one" {
			t.Errorf("%q, %v", w.read(t, file), err)
		}
		upload, err := w.BeginUpload(ctx, w.acting, w.project, "/public_model/b", 4)
		if err == nil {
			_, err = upload.Append(ctx, 0, strings.NewReader("1234"))
		}
		if err == nil {
			_, err = upload.Finish(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		item, err := w.Delete(ctx, w.acting, w.project, file, Condition{})
		if err != nil {
			t.Fatal(err)
		}
		w.settled(t, 0)
		if _, err := w.Restore(ctx, w.acting, w.project, item.ID, w.at("mine")); err != nil || w.read(t, w.at("mine")) != "one" {
			t.Errorf("%v", err)
		}
		w.settled(t, 3)
		storetest.InTx(t, w.store, func(q *store.Queries) error { return q.DeleteCurator(c) })
		wants(t, "no longer a curator", models.KindForbidden, put("x"))
		w.clock.Advance(31 * 24 * time.Hour)
		if err := w.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(w.path + "/.weir/public/versions"); err != nil || len(left) != 0 {
			t.Errorf("%v, %v", left, err)
		}
		w.settled(t, 3)
	})
}
