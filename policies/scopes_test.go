package policies_test

import (
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store/storetest"
	"weir/policies"
)

func scopes(list ...models.TokenScope) []models.TokenScope { return list }

// lacks fails unless err names the scope that a token lacks.
func lacks(t *testing.T, err error, scope models.TokenScope) {
	t.Helper()
	var e *models.Error
	if !errors.As(err, &e) || e.Kind != models.KindForbidden || e.Scope != scope {
		t.Errorf("%v, want the scope %s to be missing", err, scope)
	}
}

// A scope takes rights away from an actor, and never gives any.
func TestScopesLimitRights(t *testing.T) {
	a := access(t)
	rights := map[policies.Right]models.TokenScope{
		policies.PoolRead: models.ScopeRead, policies.WorkspaceRead: models.ScopeRead, policies.WorkspaceLaunch: models.ScopeLaunch,
		policies.WorkspaceStop: models.ScopeLaunch, policies.RoleWrite: models.ScopeProject, policies.MemberWrite: models.ScopeProject,
		policies.RequestCreate: models.ScopeProject, policies.ProjectWrite: models.ScopeProject, policies.UserWrite: models.ScopeAdmin,
		policies.WebhookWrite: models.ScopeAdmin, policies.DeviceWrite: models.ScopeAdmin}
	for name, actor := range actors {
		for right, needed := range rights {
			may := a.May(actor, home, right)
			for _, scope := range models.TokenScopes {
				limited := actor
				limited.Scopes = scopes(scope)
				enough := models.Covers(limited.Scopes, needed)
				if got := a.May(limited, home, right); got != (may && enough) {
					t.Errorf("%s with scope %s may %s: %t", name, scope, right, got)
				}
				if err := a.Check(limited, home, right); may && !enough {
					lacks(t, err, needed)
				}
			}
			limited := actor
			limited.Scopes = []models.TokenScope{}
			if a.May(limited, home, right) {
				t.Errorf("%s without scopes may %s", name, right)
			}
		}
	}
}

func TestScopesOfTokens(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, storetest.User(t, d.store, "ada@example.org", false))
		by := func(list ...models.TokenScope) policies.Actor {
			t.Helper()
			token, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: policies.NewSecret(), Scopes: list})
			if err != nil {
				t.Fatal(err)
			}
			actor, err := d.ActorByToken(d.ctx, secret)
			if err != nil || len(actor.Scopes) != len(token.Scopes) {
				t.Fatalf("%+v, %v", actor, err)
			}
			return actor
		}
		if got := by(); len(got.Scopes) != 1 || got.Scopes[0] != models.ScopeRead {
			t.Errorf("a token has by default %v", got.Scopes)
		}
		_, _, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "x", Scopes: scopes("root")})
		want(t, err, models.KindInvalid)
		reader, account, all := by(models.ScopeRead), by(models.ScopeAdmin), by(models.TokenScopes...)
		_, _, err = d.CreateToken(d.ctx, reader, policies.NewToken{Name: "x"})
		lacks(t, err, models.ScopeAdmin)
		_, _, err = d.CreateToken(d.ctx, account, policies.NewToken{Name: "x", Scopes: scopes(models.ScopeLaunch)})
		lacks(t, err, models.ScopeLaunch)
		for _, may := range []struct {
			by   policies.Actor
			list []models.TokenScope
		}{{account, scopes(models.ScopeProject, models.ScopeRead)}, {all, models.TokenScopes}} {
			if _, _, err := d.CreateToken(d.ctx, may.by, policies.NewToken{Name: policies.NewSecret(), Scopes: may.list}); err != nil {
				t.Error(err)
			}
		}
		_, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "brief", Scopes: models.TokenScopes, Lifetime: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		brief, err := d.ActorByToken(d.ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		brief, err = d.RefreshActor(d.ctx, brief)
		if err != nil {
			t.Fatal(err)
		}
		child, _, err := d.CreateToken(d.ctx, brief, policies.NewToken{Name: "child", Lifetime: policies.MaxTokenLifetime})
		if err != nil || child.ExpiresAt.After(brief.Expires) || brief.Expires.After(d.store.Now().Add(time.Minute)) {
			t.Errorf("a token until %s creates one until %s, %v", brief.Expires, child.ExpiresAt, err)
		}
		lacks(t, d.DeleteToken(d.ctx, reader, 1), models.ScopeAdmin)
		lacks(t, d.ChangePassword(d.ctx, by(models.ScopeProject), password, "another good one"), models.ScopeAdmin)
		if got, err := d.RefreshActor(d.ctx, policies.Actor{User: ada.User, Session: reader.Session, Via: reader.Via}); err != nil || len(got.Scopes) != 1 {
			t.Errorf("a stream's actor has the scopes %v, %v", got.Scopes, err)
		}
	})
}
