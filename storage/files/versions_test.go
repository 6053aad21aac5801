package files

import (
	"os"
	"testing"

	"weir/models"
	"weir/models/store"
)

// A version that is removed for good is nowhere any more and frees its bytes; the other versions and the
// file stay. It needs the right to change the file.
func TestPurgeVersion(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		for _, content := range []string{"secret", "redacted", "now"} {
			w.write(t, w.own("a"), content)
		}
		w.usedBy(t, w.member, 17)
		versions, err := w.Versions(ctx, w.acting, w.project, w.own("a"), store.Page{})
		if err != nil || len(versions) != 2 {
			t.Fatalf("%+v, %v", versions, err)
		}
		kept, secret := versions[0].ID, versions[1].ID
		rule := w.rule(t, w.own("a"), models.AccessRead, "")
		_, err = w.PurgeVersion(ctx, w.acting, w.project, secret)
		wants(t, "with the right to read", models.KindForbidden, err)
		w.usedBy(t, w.member, 17)
		if err := w.rules.Delete(ctx, w.managing, w.project, rule.ID); err != nil {
			t.Fatal(err)
		}
		if was, err := w.PurgeVersion(ctx, w.acting, w.project, secret); err != nil || was.Path != w.own("a") || was.Bytes != 6 {
			t.Errorf("%+v, %v", was, err)
		}
		_, err = w.OpenVersion(ctx, w.acting, w.project, secret, false)
		wants(t, "open what was removed", models.KindNotFound, err)
		_, err = w.PurgeVersion(ctx, w.acting, w.project, secret)
		wants(t, "remove it again", models.KindNotFound, err)
		if left, err := os.ReadDir(w.meta(versionsDir)); err != nil || len(left) != 1 || left[0].Name() != idName(kept) {
			t.Errorf("on the disk: %v, %v", left, err)
		}
		if left, err := w.Versions(ctx, w.acting, w.project, w.own("a"), store.Page{}); err != nil || len(left) != 1 || left[0].ID != kept {
			t.Errorf("%+v, %v", left, err)
		}
		if w.read(t, w.own("a")) != "now" || w.actions(t) != "purge-version delete create write write write" {
			t.Errorf("%q; audited: %s", w.read(t, w.own("a")), w.actions(t))
		}
		w.usedBy(t, w.member, 11)
		w.settled(t, 11)
	})
}
