package store_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestAuthorizationIsRedeemedOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		u := storetest.User(t, s, "root@example.org", true)
		now := s.Now()
		for _, hash := range []string{"a", "b"} {
			storetest.InTx(t, s, func(q *store.Queries) error {
				return q.CreateAuthorization(&models.Authorization{Hash: hash, GPUCode: "code", OwnerID: u.ID, IssuedBy: u.ID, CreatedAt: now, ExpiresAt: now.Add(time.Minute)})
			})
		}
		redeem := func(hash, key string) (ok bool) {
			storetest.InTx(t, s, func(q *store.Queries) (err error) {
				ok, err = q.RedeemAuthorization(hash, key, s.Now())
				return err
			})
			return ok
		}
		if !redeem("a", "key") || redeem("a", "key") || redeem("a", "other") || redeem("c", "key") {
			t.Error("not redeemed exactly once")
		}
		q := s.Read(t.Context())
		if a, err := q.AuthorizationByHash("a"); err != nil || a.KeyHash != "key" || a.RedeemedAt == nil || !a.RedeemedAt.Equal(now) {
			t.Errorf("%+v, %v", a, err)
		}
		if open, err := q.OpenAuthorizations(s.Now()); err != nil || len(open) != 1 || open[0].Hash != "b" {
			t.Errorf("open are %+v, %v", open, err)
		}
		clock.Advance(time.Minute)
		if open, err := q.OpenAuthorizations(s.Now()); err != nil || len(open) != 0 || redeem("b", "key") {
			t.Errorf("after their time open are %+v, %v", open, err)
		}
		if _, err := q.AuthorizationByHash("c"); models.KindOf(err) != models.KindNotFound {
			t.Error(err)
		}
	})
}

func TestAgents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		now := s.Now()
		p := models.Provider{Name: "node", State: models.ProviderOnline, SeenAt: now, Version: 1, CreatedAt: now}
		storetest.InTx(t, s, func(q *store.Queries) error { p.ID = 0; return q.CreateProvider(&p) })
		agent := func(serial string) (models.Agent, error) {
			a := models.Agent{ProviderID: p.ID, KeyHash: "key", Serial: serial, IssuedAt: now, ExpiresAt: now.Add(time.Hour), CreatedAt: now}
			return a, s.InTx(t.Context(), func(q *store.Queries) error { a.ID = 0; return q.CreateAgent(&a) })
		}
		first, err := agent("1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := agent("2"); !store.Duplicate(err) {
			t.Errorf("a second live agent: %v", err)
		}
		first.NextSerial, first.TokenHash = "1b", "token"
		storetest.InTx(t, s, func(q *store.Queries) error { return q.UpdateAgent(&first) })
		q := s.Read(t.Context())
		for _, serial := range []string{"1", "1b"} {
			if a, err := q.AgentBySerial(serial); err != nil || a.ID != first.ID || a.TokenHash != "token" || !a.CreatedAt.Equal(now) {
				t.Errorf("by %s: %+v, %v", serial, a, err)
			}
		}
		for _, serial := range []string{"", "2"} {
			if _, err := q.AgentBySerial(serial); models.KindOf(err) != models.KindNotFound {
				t.Errorf("by %q: %v", serial, err)
			}
		}
		why := models.Say("%s of them", "two")
		storetest.InTx(t, s, func(q *store.Queries) error { return q.RevokeAgents(p.ID, now, why, false) })
		if _, err := q.AgentOf(p.ID); models.KindOf(err) != models.KindNotFound {
			t.Errorf("a revoked agent is live: %v", err)
		}
		if a, err := q.Agent(first.ID); err != nil || a.RevokedAt == nil || a.RevokedWhy.String() != "two of them" {
			t.Errorf("%+v, %v", a, err)
		}
		err = s.InTx(t.Context(), func(q *store.Queries) error { return q.UpdateAgent(&first) })
		if models.KindOf(err) != models.KindConflict {
			t.Errorf("a revoked agent was changed: %v", err)
		}
		if _, err := agent("3"); err != nil {
			t.Error(err)
		}
		if all, err := q.AgentsOf(p.ID, 10); err != nil || len(all) != 2 || all[0].Serial != "3" {
			t.Errorf("all are %+v, %v", all, err)
		}
	})
}
