package policies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func TestTheLastAdministratorStays(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		root := d.root.User
		for _, in := range []policies.UserChange{{Name: "Root"}, {Name: "Root", Admin: true, Disabled: true}, {Name: "Root", Disabled: true}} {
			_, err := d.UpdateUser(d.ctx, d.root, root.ID, in)
			want(t, err, models.KindConflict)
		}
		admins := []models.User{root}
		for i := range 7 {
			admins = append(admins, storetest.User(t, d.store, fmt.Sprintf("admin%d@example.org", i), true))
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(len(admins), func(i int) {
			in := policies.UserChange{Name: "Former", Disabled: i%2 == 0, Admin: i%2 == 0}
			_, err := d.UpdateUser(d.ctx, policies.System("test"), admins[i].ID, in)
			kinds.Add(err)
		})
		kinds.Want(t, len(admins)-1, models.KindConflict, 1)
		if n, err := d.store.Read(d.ctx).CountAdministrators(); err != nil || n != 1 {
			t.Errorf("%d administrators are left, %v", n, err)
		}
	})
}

func TestPeopleAreForAdministrators(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, d.add(t, "ada@example.org", false))
		change := policies.UserChange{Name: "Ada", Admin: true}
		calls := map[string]func(policies.Actor) error{
			"list":   func(a policies.Actor) error { _, err := d.Users(d.ctx, a, "", store.Page{}); return err },
			"read":   func(a policies.Actor) error { _, err := d.User(d.ctx, a, d.root.User.ID); return err },
			"create": func(a policies.Actor) error { _, err := d.CreateUser(d.ctx, a, policies.NewUser{}); return err },
			"update": func(a policies.Actor) error { _, err := d.UpdateUser(d.ctx, a, a.User.ID, change); return err },
			"reset":  func(a policies.Actor) error { return d.ResetPassword(d.ctx, a, d.root.User.ID, password) },
		}
		for name, call := range calls {
			if err := call(ada); models.KindOf(err) != models.KindForbidden {
				t.Errorf("%s: %v", name, err)
			}
			if name == "read" { // the zero user is nobody's own
				continue
			}
			if err := call(policies.Actor{}); models.KindOf(err) != models.KindUnauthenticated {
				t.Errorf("%s by nobody: %v", name, err)
			}
		}
		want(t, d.ChangePassword(d.ctx, policies.Actor{}, "", password), models.KindUnauthenticated)
		if u, err := d.User(d.ctx, ada, ada.User.ID); err != nil || u.Email != "ada@example.org" {
			t.Errorf("oneself: %+v, %v", u, err)
		}
	})
}

func TestAccountsAreChecked(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		d.add(t, "ada@example.org", false)
		long := strings.Repeat("x", 10_000)
		for _, c := range []struct {
			in     policies.NewUser
			fields []string
		}{
			{policies.NewUser{}, []string{"email", "name", "password"}},
			{policies.NewUser{Email: "b@example.org", Name: "a\x00", Password: "123456789"}, []string{"name", "password"}},
			{policies.NewUser{Email: long, Name: long, Password: long}, []string{"email", "name", "password"}},
			{policies.NewUser{Email: "ADA@example.org", Name: "Ada", Password: password}, []string{"email"}},
		} {
			_, err := d.CreateUser(d.ctx, d.root, c.in)
			if got := refusedFields(err); !slices.Equal(got, c.fields) {
				t.Errorf("%.60v refuses %v, want %v", c.in, got, c.fields)
			}
		}
		_, err := d.UpdateUser(d.ctx, d.root, 999, policies.UserChange{Name: "x"})
		want(t, err, models.KindNotFound)
		_, err = d.UpdateUser(d.ctx, d.root, d.root.User.ID, policies.UserChange{Name: "Root", Admin: true, Version: 99})
		want(t, err, models.KindConflict)
		want(t, d.ResetPassword(d.ctx, d.root, 999, password), models.KindNotFound)
		want(t, d.ResetPassword(d.ctx, d.root, d.root.User.ID, "short"), models.KindInvalid)
	})
}

func TestPasswordChangeEndsEverything(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, d.add(t, "ada@example.org", false))
		_, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		want(t, d.ChangePassword(d.ctx, ada, "wrong", "another good one"), models.KindInvalid)
		want(t, d.ChangePassword(d.ctx, ada, password, "short"), models.KindInvalid)
		if err := d.ChangePassword(d.ctx, ada, password, "another good one"); err != nil {
			t.Fatal(err)
		}
		_, err = d.ActorByToken(d.ctx, secret)
		want(t, err, models.KindUnauthenticated)
		_, err = d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", password)
		want(t, err, models.KindUnauthenticated)
		u, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "another good one")
		if err != nil || u.SessionGeneration != ada.User.SessionGeneration+1 {
			t.Errorf("session generation %d, %v", u.SessionGeneration, err)
		}
		if err := d.ResetPassword(d.ctx, d.root, u.ID, password); err != nil {
			t.Fatal(err)
		}
		wanted := []string{"root@example.org reset-password account", "ada@example.org reset-password account",
			"ada@example.org create token", "root@example.org create account"}
		if got := d.audit(t, 10); !slices.Equal(got, wanted) {
			t.Errorf("audit:\n%v\nwant\n%v", got, wanted)
		}
	})
}

// Sessions from before an account was disabled stay invalid after it is enabled.
func TestDisablingEndsEverything(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, d.add(t, "ada@example.org", false))
		_, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		for _, disabled := range []bool{true, false} {
			if _, err := d.UpdateUser(d.ctx, d.root, ada.User.ID, policies.UserChange{Name: "Ada", Disabled: disabled}); err != nil {
				t.Fatal(err)
			}
			_, err = d.ActorByToken(d.ctx, secret)
			want(t, err, models.KindUnauthenticated)
		}
		if got := d.load(t, ada.User); got.User.SessionGeneration != ada.User.SessionGeneration+1 {
			t.Errorf("session generation %d", got.User.SessionGeneration)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"root@example.org update account"}) {
			t.Errorf("audit: %v", got)
		}
	})
}

// Of many tokens, each is listed and can be revoked, and the number is bounded. Those that
// have expired do not count.
func TestTokensAreBounded(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, storetest.User(t, d.store, "ada@example.org", false))
		create := func(i int, lifetime time.Duration) error {
			_, _, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: fmt.Sprint("ci ", i), Lifetime: lifetime})
			return err
		}
		for i := range policies.MaxTokens {
			if err := create(i, time.Duration(1+i%2)*time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		err := create(policies.MaxTokens, time.Hour)
		want(t, err, models.KindConflict)
		if !strings.Contains(err.Error(), "100 access tokens, of at most 100") {
			t.Errorf("the refusal says %v", err)
		}
		d.clock.Advance(time.Hour)
		if err := create(policies.MaxTokens, time.Hour); err != nil {
			t.Errorf("after half of them have expired: %v", err)
		}
		storetest.InTx(t, d.store, func(q *store.Queries) error { // of an earlier version
			for i := range 300 {
				old := models.AccessToken{UserID: ada.User.ID, Name: fmt.Sprint("old ", i), Hash: fmt.Sprint("hash ", i), Scopes: []models.TokenScope{}, ExpiresAt: d.clock.Now().Add(time.Hour)}
				if err := q.CreateAccessToken(&old); err != nil {
					return err
				}
			}
			return nil
		})
		all, err := d.Tokens(d.ctx, ada)
		if err != nil || len(all) != 300+policies.MaxTokens/2+1 {
			t.Fatalf("%d tokens are listed: %v", len(all), err)
		}
		if err := d.DeleteToken(d.ctx, ada, all[len(all)-1].ID); err != nil {
			t.Errorf("the oldest is not revoked: %v", err)
		}
	})
}

func TestTokens(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada, bob := d.load(t, storetest.User(t, d.store, "ada@example.org", false)), d.load(t, storetest.User(t, d.store, "bob@example.org", false))
		token, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci", Lifetime: time.Hour})
		if err != nil || !strings.HasPrefix(secret, policies.TokenPrefix) || token.Hash == secret {
			t.Fatalf("%+v, %v", token, err)
		}
		used := func() time.Time {
			t.Helper()
			actor, err := d.ActorByToken(policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.7"}), secret)
			if err != nil || actor.User.ID != ada.User.ID || actor.Session != token.Hash {
				t.Fatalf("%+v, %v", actor, err)
			}
			tokens, err := d.Tokens(d.ctx, ada)
			if err != nil || len(tokens) != 1 || tokens[0].LastUsedAt == nil || tokens[0].LastUsedFrom != "192.0.2.7" {
				t.Fatalf("%+v, %v", tokens, err)
			}
			return *tokens[0].LastUsedAt
		}
		first := used()
		d.clock.Advance(time.Minute)
		if again := used(); !again.Equal(first) {
			t.Errorf("recorded again after a minute: %v", again)
		}
		d.clock.Advance(time.Second)
		if again := used(); !again.Equal(d.clock.Now()) {
			t.Errorf("last use %v", again)
		}
		for _, wrong := range []string{"", secret + "x", strings.TrimPrefix(secret, policies.TokenPrefix), token.Hash, policies.TokenPrefix, policies.TokenPrefix + strings.Repeat("x", 10_000), "weir_\x00"} {
			_, err := d.ActorByToken(d.ctx, wrong)
			want(t, err, models.KindUnauthenticated)
		}
		want(t, d.DeleteToken(d.ctx, bob, token.ID), models.KindNotFound)
		_, _, err = d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci"})
		want(t, err, models.KindConflict)
		if _, _, err = d.CreateToken(d.ctx, bob, policies.NewToken{Name: "ci"}); err != nil {
			t.Errorf("the same name for somebody else: %v", err)
		}
		d.clock.Advance(time.Hour)
		_, err = d.ActorByToken(d.ctx, secret)
		want(t, err, models.KindUnauthenticated)
	})
}

func TestTokensAreRevokedAndChecked(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		_, _, err := d.CreateTokenFor(d.ctx, d.root, "root@example.org", policies.NewToken{Name: "x"})
		want(t, err, models.KindForbidden)
		token, secret, err := d.CreateTokenFor(d.ctx, policies.System("command line"), " Root@example.org", policies.NewToken{Name: "cli"})
		if err != nil || !token.ExpiresAt.Equal(d.clock.Now().Add(policies.DefaultTokenLifetime)) {
			t.Fatalf("%+v, %v", token, err)
		}
		_, _, err = d.CreateTokenFor(d.ctx, policies.System("command line"), "nobody\x00", policies.NewToken{Name: "cli"})
		want(t, err, models.KindNotFound)
		if err := d.DeleteToken(d.ctx, d.root, token.ID); err != nil {
			t.Fatal(err)
		}
		_, err = d.ActorByToken(d.ctx, secret)
		want(t, err, models.KindUnauthenticated)
		want(t, d.DeleteToken(d.ctx, d.root, token.ID), models.KindNotFound)
		wanted := []string{"root@example.org delete token", "weir command line create token"}
		if got := d.audit(t, 10); !slices.Equal(got, wanted) {
			t.Errorf("audit: %v", got)
		}
		for _, lifetime := range []time.Duration{-time.Hour, time.Second, policies.MaxTokenLifetime + 1, 1<<63 - 1} {
			_, _, err := d.CreateToken(d.ctx, d.root, policies.NewToken{Name: "", Lifetime: lifetime})
			if got := refusedFields(err); !slices.Equal(got, []string{"name", "lifetime"}) {
				t.Errorf("%s refuses %v", lifetime, got)
			}
		}
		_, _, err = d.CreateToken(d.ctx, policies.Actor{}, policies.NewToken{Name: "x"})
		want(t, err, models.KindUnauthenticated)
		_, err = d.Tokens(d.ctx, policies.Actor{})
		want(t, err, models.KindUnauthenticated)
		want(t, d.DeleteToken(d.ctx, policies.Actor{}, 1), models.KindUnauthenticated)
	})
}
