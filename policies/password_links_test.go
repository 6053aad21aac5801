package policies_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func TestPasswordLinkWorksOnce(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, d.add(t, "ada@example.org", false))
		_, token, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci"})
		if err != nil {
			t.Fatal(err)
		}
		link := func() policies.Link {
			t.Helper()
			l, err := d.CreatePasswordLink(d.ctx, d.root, ada.User.ID)
			if err != nil || !l.ExpiresAt.Equal(d.clock.Now().Add(policies.DefaultPasswordLinkLifetime)) {
				t.Fatalf("%+v, %v", l, err)
			}
			return l
		}
		_, err = d.CreatePasswordLink(d.ctx, ada, d.root.User.ID)
		want(t, err, models.KindForbidden)
		_, err = d.CreatePasswordLink(d.ctx, policies.Actor{}, ada.User.ID)
		want(t, err, models.KindUnauthenticated)
		_, err = d.CreatePasswordLink(d.ctx, d.root, 999)
		want(t, err, models.KindNotFound)
		late := link()
		d.clock.Advance(policies.DefaultPasswordLinkLifetime)
		first, second := link(), link()
		for _, wrong := range []string{"", "x", late.Secret, first.Secret + "x", "\x00"} {
			_, err := d.SetPasswordByLink(d.ctx, wrong, "another good one")
			want(t, err, models.KindNotFound)
		}
		_, err = d.SetPasswordByLink(d.ctx, first.Secret, "short")
		want(t, err, models.KindInvalid)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(4, func(i int) {
			secret := []string{first.Secret, second.Secret}[i%2]
			_, err := d.SetPasswordByLink(d.ctx, secret, fmt.Sprint("another good one ", i))
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindNotFound, 3)
		_, err = d.ActorByToken(d.ctx, token)
		want(t, err, models.KindUnauthenticated)
		if got := d.load(t, ada.User); got.User.SessionGeneration != ada.User.SessionGeneration+1 {
			t.Errorf("epoch %d", got.User.SessionGeneration)
		}
		if got := d.audit(t, 2); !slices.Equal(got, []string{"ada@example.org reset-password account", "root@example.org create-password-link account"}) {
			t.Errorf("audit: %v", got)
		}
		third := link()
		if _, err := d.UpdateUser(d.ctx, d.root, ada.User.ID, policies.UserChange{Name: "Ada", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		_, err = d.SetPasswordByLink(d.ctx, third.Secret, "another good one")
		want(t, err, models.KindNotFound)
		_, err = d.CreatePasswordLink(d.ctx, d.root, ada.User.ID)
		want(t, err, models.KindConflict)
	})
}

// Accounts whose identity provider owns the password get no link.
func TestPasswordLinkOfAProvidersAccount(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		campus := policies.ProviderRules{Name: "Campus", Domains: []string{"campus.example"}}
		in, err := d.SignInWithProvider(d.ctx, campus, policies.Assertion{Issuer: "https://id", Subject: "ada", Email: "ada@campus.example", Verified: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.CreatePasswordLink(d.ctx, d.root, in.User.ID)
		want(t, err, models.KindConflict)
		imported := models.User{Email: "bob@campus.example", Name: "Bob", SessionGeneration: 1, Version: 1, CreatedAt: d.store.Now()}
		storetest.InTx(t, d.store, func(q *store.Queries) error { return q.CreateUser(&imported) })
		if _, err := d.CreatePasswordLink(d.ctx, d.root, imported.ID); err != nil {
			t.Errorf("an imported account gets no link: %v", err)
		}
		campus.Link = true
		d.Provider = &campus
		_, err = d.CreatePasswordLink(d.ctx, d.root, imported.ID)
		want(t, err, models.KindConflict)
	})
}

// A request is answered and recorded alike whether an account has the address or not.
func TestForgotPasswordRevealsNothing(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		first, second := policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.1"}), policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.2"})
		want(t, d.ForgotPassword(first, "root@example.org"), models.KindConflict)
		d.store.Mail = true
		want(t, d.ForgotPassword(first, "root"), models.KindInvalid)
		statements := func(email string) (n int) {
			t.Helper()
			if err := d.ForgotPassword(first, email); err != nil {
				t.Fatal(err)
			}
			list, err := d.store.Read(d.ctx).Deliveries(store.DeliveryFilter{Mail: true}, store.Page{})
			if err != nil || list[0].UserEmail != email || list[0].Kind != models.LetterPassword {
				t.Errorf("queued %+v, %v", list, err)
			}
			return len(list)
		}
		if a, b := statements("root@example.org"), statements("nobody@example.org"); a != 1 || b != 2 {
			t.Errorf("%d and %d deliveries", a, b)
		}
		for _, email := range []string{"root@example.org", "nobody@example.org"} {
			statements(email)
			statements(email)
			want(t, d.ForgotPassword(second, email), models.KindRateLimited)
		}
		for i := range 14 {
			statements(fmt.Sprintf("other%d@example.org", i))
		}
		want(t, d.ForgotPassword(first, "one-more@example.org"), models.KindRateLimited)
		if err := d.ForgotPassword(second, "one-more@example.org"); err != nil {
			t.Error(err)
		}
		for range 3 {
			d.clock.Advance(15 * time.Minute)
			statements("root@example.org")
		}
		d.clock.Advance(15 * time.Minute)
		want(t, d.ForgotPassword(second, "root@example.org"), models.KindRateLimited) // the day's
		d.clock.Advance(24 * time.Hour)
		statements("root@example.org")
	})
}

// The addresses of a network of IPv6 are one client, and many requests do not lift the
// limits of others.
func TestForgotPasswordFromManyAddresses(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		d.store.Mail = true
		ask := func(client int, email string) error {
			return d.ForgotPassword(policies.WithOrigin(d.ctx, policies.Origin{Address: fmt.Sprintf("2001:db8::%x", client)}), email)
		}
		for i := range 20 {
			if err := ask(i, fmt.Sprintf("other%d@example.org", i)); err != nil {
				t.Fatal(err)
			}
		}
		want(t, ask(99, "one-more@example.org"), models.KindRateLimited)
		d.clock.Advance(15 * time.Minute)
		for range 3 {
			if err := ask(1, "victim@example.org"); err != nil {
				t.Fatal(err)
			}
		}
		d.FillResets()
		want(t, ask(1, "victim@example.org"), models.KindRateLimited)
		d.clock.Advance(15 * time.Minute)
		if err := ask(1, "victim@example.org"); err != nil {
			t.Error(err)
		}
	})
}
