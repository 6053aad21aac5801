package policies_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func TestAuditOrigin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		u := storetest.User(t, s, "ann@example.org", false)
		agent := policies.Origin{Address: "192.0.2.1", Via: policies.ViaAgent}
		for _, c := range []struct {
			name    string
			actor   policies.Actor
			origin  policies.Origin
			via, at string
		}{
			{"a person", policies.Actor{User: u, Via: policies.ViaSession}, policies.Origin{Address: "192.0.2.1"}, "session", "192.0.2.1"},
			{"a person's word goes first", policies.Actor{User: u, Via: "token ci"}, agent, "token ci", "192.0.2.1"},
			{"Weir for an agent", policies.System("enrollment"), agent, "agent", "192.0.2.1"},
			{"Weir by itself", policies.System("reconciler"), policies.Origin{}, "system", ""},
		} {
			ctx := t.Context()
			if c.origin != (policies.Origin{}) {
				ctx = policies.WithOrigin(ctx, c.origin)
			}
			if err := s.InTx(ctx, func(q *store.Queries) error {
				return c.actor.Audit(q, policies.Change{Action: "update", Object: "thing", ID: 1, Before: map[string]any{"n": 1}})
			}); err != nil {
				t.Fatal(err)
			}
			list, err := s.Read(ctx).Audit(store.AuditFilter{}, store.Page{Limit: 1})
			if err != nil || list[0].Via != c.via || list[0].Address != c.at || list[0].Before != `{"n":1}` || list[0].After != "" {
				t.Errorf("%s: %+v, %v", c.name, list, err)
			}
		}
	})
}

// Write keeps an actor's Via, and the audit names a deleted token.
func TestAuditOfTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		accounts := policies.NewAccounts(s, access)
		storetest.User(t, s, "ann@example.org", false)
		_, secret, err := accounts.CreateTokenFor(t.Context(), policies.System("admin"), "ann@example.org", policies.NewToken{Name: "ci", Lifetime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		actor, err := accounts.ActorByToken(t.Context(), secret)
		if err != nil || actor.Via != "token ci" {
			t.Fatalf("speaks by %q, %v", actor.Via, err)
		}
		if actor, err = accounts.RefreshActor(t.Context(), actor); err != nil || actor.Via != "token ci" {
			t.Errorf("read again, it speaks by %q, %v", actor.Via, err)
		}
		if err := accounts.DeleteToken(t.Context(), actor, 1); err != nil {
			t.Fatal(err)
		}
		list, err := s.Read(t.Context()).Audit(store.AuditFilter{Action: "delete", Object: "token"}, store.Page{})
		if err != nil || len(list) != 1 || !strings.Contains(list[0].Before, `"name":"ci"`) || list[0].Via != "token ci" {
			t.Errorf("%+v, %v", list, err)
		}
		if _, err := accounts.AuditEntries(t.Context(), actor, policies.AuditQuery{}, store.Page{}); models.KindOf(err) != models.KindForbidden {
			t.Errorf("who is no administrator reads the audit: %v", err)
		}
	})
}

// Who reads the audit of a project, and not of the platform, sees neither the
// addresses of clients nor by how much an approval exceeded the capacity.
func TestAuditOfAProject(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		p := newProjectFixture(t, d, "vision")
		ctx := policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.1"})
		if err := d.store.InTx(ctx, func(q *store.Queries) error {
			return d.root.Audit(q, policies.Change{Action: "approve", Object: "request", ID: 1, Project: p.project.ID, After: map[string]any{"beyond": 5, "n": 1}})
		}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			reader         models.User
			address, after string
		}{
			{d.root.User, "192.0.2.1", `{"beyond":5,"n":1}`},
			{p.people[models.PermissionManager], "", `{"n":1}`},
		} {
			list, err := d.AuditEntries(d.ctx, d.load(t, c.reader), policies.AuditQuery{ProjectID: p.project.ID}, store.Page{})
			if err != nil || len(list) != 1 || list[0].Address != c.address || list[0].After != c.after {
				t.Errorf("%s reads %+v, %v; want the address %q and %s", c.reader.Email, list, err, c.address, c.after)
			}
		}
	})
}
