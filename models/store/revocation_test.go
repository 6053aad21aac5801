package store_test

import (
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// Every query that can take rights away revokes the keys.
func TestWhatRevokes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		running(t, w)
		token := models.AccessToken{UserID: w.user.ID, Name: "t", Hash: "h", Scopes: models.TokenScopes, ExpiresAt: s.Now().Add(time.Hour), CreatedAt: s.Now()}
		storetest.InTx(t, s, func(q *store.Queries) error {
			if err := q.PutSession(models.Session{Token: "cookie", Data: []byte("x"), ExpiresAt: s.Now().Add(time.Hour)}); err != nil {
				return err
			}
			return q.CreateAccessToken(&token)
		})
		user, project := store.RevocationKey("user", w.user.ID), store.RevocationKey("project", w.project.ID)
		h := &recordingListener{}
		s.OnRevoke(h)
		for _, c := range []struct {
			name string
			do   func(*store.Queries) error
			want []string
		}{
			{"account", func(q *store.Queries) error { w.user.Disabled = true; return q.UpdateUser(&w.user) }, []string{user}},
			{"token", func(q *store.Queries) error { return q.DeleteAccessToken(w.user.ID, token.ID) }, []string{user}},
			{"secrets", func(q *store.Queries) error { return q.DeleteTokensOf(w.user.ID) }, []string{user}},
			{"session", func(q *store.Queries) error { return q.DeleteSession("cookie") }, []string{store.SessionKey("cookie")}},
			{"no session", func(q *store.Queries) error { return q.DeleteSession("another") }, nil},
			{"member", func(q *store.Queries) error { w.member.Until = ago(s, -time.Hour); return q.UpdateMember(&w.member) }, []string{user}},
			{"role", func(q *store.Queries) error { return q.UpdateRole(&w.role) }, []string{project}},
			{"project", func(q *store.Queries) error { return q.UpdateProject(&w.project) }, []string{project}},
			{"stop", func(q *store.Queries) error {
				w.workspace.State = models.StateStopping
				return q.Transition(&w.workspace, models.StateRunning, models.Say("Stopped."))
			}, []string{store.RevocationKey("workspace", w.workspace.ID)}},
			{"end", func(q *store.Queries) error {
				w.workspace.State = models.StateStopped
				return q.Transition(&w.workspace, models.StateStopping, models.Say("Stopped."))
			}, nil},
			{"a page", func(q *store.Queries) error { q.Touch("pool"); return nil }, nil},
		} {
			h.revoked = nil
			storetest.InTx(t, s, c.do)
			if !slices.Equal(h.revoked, c.want) {
				t.Errorf("%s revokes %q, not %q", c.name, h.revoked, c.want)
			}
		}
		h.revoked = nil
		err := s.InTx(t.Context(), func(q *store.Queries) error { q.Revoke("user", 1); return errSecret })
		if err == nil || h.revoked != nil {
			t.Errorf("what was undone revokes %q, %v", h.revoked, err)
		}
	})
}

// running moves a world's workspace to the state running.
func running(t *testing.T, w *world) {
	t.Helper()
	for _, state := range []models.WorkspaceState{models.StateStarting, models.StateRunning} {
		from := w.workspace.State
		w.workspace.State = state
		storetest.InTx(t, w.store, func(q *store.Queries) error { return q.Transition(&w.workspace, from, models.Say("On.")) })
	}
}

// Revocations are stored as long as a server may have to apply them.
func TestOldRevocationsAreDeleted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		count := func() (n int) {
			db, err := s.SQL()
			if err == nil {
				err = db.QueryRow("SELECT COUNT(*) FROM revocations").Scan(&n)
			}
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		for range 2 {
			storetest.InTx(t, s, func(q *store.Queries) error { q.Revoke("user", 1); q.Revoke("user", 1); return nil })
			clock.Advance(40 * time.Minute)
		}
		if n := count(); n != 2 {
			t.Errorf("%d revocations are kept", n)
		}
		storetest.InTx(t, s, func(q *store.Queries) error { _, err := q.DeleteExpired(q.Now()); return err })
		if n := count(); n != 1 {
			t.Errorf("%d revocations are kept", n)
		}
	})
}
