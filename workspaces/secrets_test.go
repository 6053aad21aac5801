package workspaces_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/policies"
)

// The secret of a workspace is stored encrypted while it runs, also where an earlier version has
// stored it as it is, and not at all afterwards.
func TestStoredSecrets(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		stored := func(id int64) (secret string) {
			t.Helper()
			db, err := b.store.SQL()
			if err == nil {
				err = db.QueryRow("SELECT secret FROM workspaces WHERE id = $1", id).Scan(&secret)
			}
			if err != nil {
				t.Fatal(err)
			}
			return secret
		}
		before := b.launch(t, "before", models.LaunchParameters{})
		key, err := policies.NewKey([]byte("shared"), policies.WorkspaceKey)
		if err != nil {
			t.Fatal(err)
		}
		if stored(before.ID) != before.Secret {
			t.Errorf("without a key %q is stored", stored(before.ID))
		}
		b.store.Secrets = key
		after := b.launch(t, "after", models.LaunchParameters{})
		for _, w := range []models.Workspace{before, after} {
			b.until(t, w.ID, models.StateRunning)
			secret, encrypted := strings.CutPrefix(stored(w.ID), "enc:")
			if plain, err := key.Decrypt(secret); !encrypted || err != nil || plain != w.Secret {
				t.Errorf("%s: %q is stored", w.Name, stored(w.ID))
			}
			if a, err := b.AdmitActor(b.ctx, b.actor, w.ID); err != nil || a.Secret != w.Secret {
				t.Errorf("%s: the proxy sends %q, %v", w.Name, a.Secret, err)
			}
		}
		if b.store.Secrets, err = policies.NewKey([]byte("another"), policies.WorkspaceKey); err != nil {
			t.Fatal(err)
		}
		if got := b.row(t, after.ID).Secret; got != stored(after.ID) {
			t.Errorf("with another key, the secret is %q", got)
		}
		for _, w := range []models.Workspace{before, after} {
			if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
				t.Fatal(err)
			}
			b.until(t, w.ID, models.StateStopped)
			if got := stored(w.ID); got != "" {
				t.Errorf("%s: %q is stored after its end", w.Name, got)
			}
		}
	})
}
