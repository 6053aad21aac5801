package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// Every secret is valid until its end, and not a moment longer. A visit also
// ends with the session or access token that began it, and is of one workspace.
func TestSecretsEndOnTime(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		w := newWorld(t, s)
		other := w.workspace
		end := s.Now().Add(time.Hour)
		later := end.Add(time.Hour)
		storetest.InTx(t, s, func(q *store.Queries) error {
			other.ID, other.Name, other.Secret = 0, "other", "of the other"
			visit := models.Visit{WorkspaceID: w.workspace.ID, UserID: w.user.ID, SessionGeneration: w.user.SessionGeneration}
			of := func(hash, session string, expires time.Time) models.Visit {
				v := visit
				v.Hash, v.Session, v.ExpiresAt = hash, session, expires
				return v
			}
			if err := q.CreateWorkspace(&other, models.Say("Requested.")); err != nil {
				return err
			}
			ofOther := of("visit of the other", "long session", end)
			ofOther.WorkspaceID = other.ID
			return errors.Join(q.PutVisit(ofOther),
				q.PutSession(models.Session{Token: "session", Data: []byte{1}, ExpiresAt: end}),
				q.PutSession(models.Session{Token: "long session", Data: []byte{1}, ExpiresAt: later}),
				q.CreateAccessToken(&models.AccessToken{UserID: w.user.ID, Name: "ci", Hash: "token", Scopes: models.TokenScopes, ExpiresAt: end, CreatedAt: q.Now()}),
				q.PutOneTimeToken(models.OneTimeToken{Hash: "link", Purpose: "open", ExpiresAt: end}),
				q.PutVisit(of("visit", "long session", end)),
				q.PutVisit(of("of a session", "session", later)),
				q.PutVisit(of("of a token", "token", later)))
		})
		visit := func(hash string, to models.Workspace) func(*store.Queries) (bool, error) {
			return func(q *store.Queries) (bool, error) {
				a, err := q.AdmitVisit(hash, to.ID, q.Now())
				if err == nil && a.Secret != to.Secret {
					t.Errorf("%s leads to the notebook with the secret %q, not %q", hash, a.Secret, to.Secret)
				}
				return err == nil, models.IgnoreNotFound(err)
			}
		}
		authenticates := func(hash string) func(*store.Queries) (bool, error) {
			return func(q *store.Queries) (bool, error) {
				valid, err := q.Authenticated(q.Now(), hash)
				return slices.Equal(valid, []string{hash}), err
			}
		}
		valid := map[string]func(*store.Queries) (bool, error){
			"session": func(q *store.Queries) (bool, error) {
				_, err := q.SessionByToken("session", q.Now())
				return err == nil, models.IgnoreNotFound(err)
			},
			"token": func(q *store.Queries) (bool, error) {
				_, err := q.AccessTokenByHash("token", q.Now())
				return err == nil, models.IgnoreNotFound(err)
			},
			"session of a request": authenticates("session"),
			"token of a request":   authenticates("token"),
			"link": func(q *store.Queries) (bool, error) {
				_, err := q.OneTimeToken("link", "open", q.Now())
				return err == nil, models.IgnoreNotFound(err)
			},
			"visit":              visit("visit", w.workspace),
			"visit of the other": visit("visit of the other", other),
			"visit of a session": visit("of a session", w.workspace),
			"visit of a token":   visit("of a token", w.workspace),
		}
		check := func(want bool) {
			t.Helper()
			for name, is := range valid {
				if got, err := is(s.Read(t.Context())); err != nil || got != want {
					t.Errorf("%s of an end at %s: at %s valid is %t, %v", name, end, s.Now(), got, err)
				}
			}
		}
		clock.Advance(time.Hour - time.Microsecond)
		check(true)
		if ok, err := visit("visit", other)(s.Read(t.Context())); ok || err != nil {
			t.Errorf("a visit opens another workspace of its user: %t, %v", ok, err)
		}
		clock.Advance(time.Microsecond)
		check(false)
		kind(t, s.InTx(t.Context(), func(q *store.Queries) error {
			_, err := q.TakeOneTimeToken("link", "open", q.Now())
			return err
		}), models.KindNotFound)
	})
}
