package policies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func universityRules() policies.ProviderRules {
	return policies.ProviderRules{Name: "Example University", Domains: []string{"example.org"}, Groups: []policies.GroupRule{
		{Group: "admins", Admin: true}, {Group: "vision", Project: "vision", Role: "lead"}, {Group: "staff", Project: "vision", Role: "engineer"}}}
}

// assertionOf is an assertion about a user with this name.
func assertionOf(name string, groups ...string) policies.Assertion {
	return policies.Assertion{Issuer: "https://id.example.org", Subject: name, Email: name + "@example.org", Verified: true, Name: name, Groups: groups}
}

func (d *fixture) signIn(t *testing.T, as policies.Assertion) policies.SignInResult {
	t.Helper()
	in, err := d.SignInWithProvider(d.ctx, universityRules(), as)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// Whoever made an account for an address that is not theirs would share it with the
// person who signs in with a provider later.
func TestProviderIsNotLinkedToAnUnconfirmedAddress(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		u := models.User{Email: "kim@example.org", Name: "Kim", PasswordHash: "x", EmailUnconfirmed: true, SessionGeneration: 1, Version: 1, CreatedAt: d.store.Now()}
		storetest.InTx(t, d.store, func(q *store.Queries) error { return q.CreateUser(&u) })
		rules := universityRules()
		rules.Link = true
		if _, err := d.SignInWithProvider(d.ctx, rules, assertionOf("kim")); models.KindOf(err) != models.KindForbidden {
			t.Fatalf("signed in: %v", err)
		}
		if _, err := d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "Kim", EmailConfirmed: true}); err != nil {
			t.Fatal(err)
		}
		if in, err := d.SignInWithProvider(d.ctx, rules, assertionOf("kim")); err != nil || in.User.ID != u.ID {
			t.Errorf("account %d, %v", in.User.ID, err)
		}
	})
}

func TestConcurrentSignInsCreateOneAccount(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		var kinds storetest.ErrorCounts
		users := make([]int64, 8)
		storetest.Concurrently(len(users), func(i int) {
			in, err := d.SignInWithProvider(d.ctx, universityRules(), assertionOf("kim", "admins"))
			users[i] = in.User.ID
			kinds.Add(err)
		})
		kinds.Want(t, len(users), models.KindConflict, 0)
		if len(slices.Compact(users)) != 1 {
			t.Errorf("accounts %v", users)
		}
		if n, err := d.store.Read(d.ctx).CountUsers(); err != nil || n != 2 {
			t.Errorf("%d accounts, %v", n, err)
		}
		if list, err := d.Identities(d.ctx, d.root, users[0]); err != nil || len(list) != 1 {
			t.Errorf("identities %v, %v", list, err)
		}
	})
}

func TestGroupsLeaveTheLastAdministrator(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		const n = 6
		for i := range n {
			d.signIn(t, assertionOf(fmt.Sprint("kim", i), "admins"))
		}
		stayed := make([]bool, n)
		storetest.Concurrently(n, func(i int) {
			in, err := d.SignInWithProvider(d.ctx, universityRules(), assertionOf(fmt.Sprint("kim", i)))
			if err != nil {
				t.Errorf("kim%d: %v", i, err)
			}
			stayed[i] = in.User.Admin && len(in.Notes) == 1
		})
		admins, err := d.store.Read(d.ctx).CountAdministrators()
		if err != nil || admins != 1 {
			t.Errorf("%d administrators are left, %v", admins, err)
		}
		if left := slices.DeleteFunc(stayed, func(b bool) bool { return !b }); len(left) != 1 {
			t.Errorf("%d were told to be the last", len(left))
		}
	})
}

func TestGroupsDoNotRevokeManualAdministration(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		u := d.signIn(t, assertionOf("kim")).User
		if _, err := d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "Kim", Admin: true}); err != nil {
			t.Fatal(err)
		}
		if in := d.signIn(t, assertionOf("kim")); !in.User.Admin || in.User.SessionGeneration != u.SessionGeneration {
			t.Errorf("what an administrator gave was taken: %+v", in.User)
		}
		d.signIn(t, assertionOf("kim", "admins"))
		if in := d.signIn(t, assertionOf("kim")); !in.User.Admin || in.Identity.Admin {
			t.Errorf("a group took what it had not given: %+v", in)
		}
		lee := d.signIn(t, assertionOf("lee", "admins")).User
		if in := d.signIn(t, assertionOf("lee")); in.User.Admin || in.User.SessionGeneration != lee.SessionGeneration+1 {
			t.Errorf("a group's right stays without the group: %+v", in.User)
		}
		if got := d.audit(t, 1)[0]; got != "weir sign-in update account" {
			t.Errorf("audit: %s", got)
		}
	})
}

func TestEmailIsUpdated(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		u := d.signIn(t, assertionOf("kim")).User
		married := assertionOf("kim")
		married.Email = "kim.lee@example.org"
		if in := d.signIn(t, married); in.User.ID != u.ID || in.User.Email != married.Email || in.User.Name != "kim" {
			t.Errorf("the account is %+v", in.User)
		}
		married.Email = "root@example.org"
		in := d.signIn(t, married)
		if in.User.ID != u.ID || in.User.Email != "kim.lee@example.org" || len(in.Notes) != 1 || !strings.Contains(in.Notes[0].String(), "root@example.org") {
			t.Errorf("another account's email: %+v", in)
		}
		outside := assertionOf("kim")
		outside.Email = "kim@example.com"
		_, err := d.SignInWithProvider(d.ctx, universityRules(), outside)
		want(t, err, models.KindForbidden)
		heir := assertionOf("heir") // got the old email at the provider
		heir.Email = "kim.lee@example.org"
		_, err = d.SignInWithProvider(d.ctx, universityRules(), heir)
		want(t, err, models.KindForbidden)
	})
}

func TestLinkingKeepsThePassword(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.add(t, "ada@example.org", true)
		as := assertionOf("ada")
		_, err := d.SignInWithProvider(d.ctx, universityRules(), as)
		want(t, err, models.KindForbidden)
		rules := universityRules()
		rules.Link = true
		in, err := d.SignInWithProvider(d.ctx, rules, as)
		if err != nil || in.User.ID != ada.ID || !in.User.Admin {
			t.Fatalf("%+v, %v", in, err)
		}
		as.Email = "ada.new@example.org" // the password belongs to the old one
		if in, err = d.SignInWithProvider(d.ctx, universityRules(), as); err != nil || in.User.Email != "ada@example.org" {
			t.Errorf("%+v, %v", in.User, err)
		}
		if _, err := d.SignIn(d.ctx, "", "ada@example.org", password); err != nil {
			t.Error(err)
		}
		if err := d.ResetPassword(d.ctx, d.root, ada.ID, "another password"); err != nil {
			t.Error(err)
		}
		other := as
		other.Issuer = "https://other.example.org" // says the same of somebody of its own
		other.Email = "ada2@example.org"
		if in, err := d.SignInWithProvider(d.ctx, rules, other); err != nil || in.User.ID == ada.ID {
			t.Errorf("the subject of another issuer: %+v, %v", in, err)
		}
	})
}

func TestDisabledAccountsCannotSignIn(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		u := d.signIn(t, assertionOf("kim")).User
		if _, err := d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "Kim", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		_, err := d.SignInWithProvider(d.ctx, universityRules(), assertionOf("kim", "admins"))
		want(t, err, models.KindForbidden)
		if now, err := d.User(d.ctx, d.root, u.ID); err != nil || now.Admin {
			t.Errorf("a group made a disabled account %+v, %v", now, err)
		}
	})
}

func TestIdentitiesAreForAdministrators(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		kim := d.signIn(t, assertionOf("kim"))
		lee := d.load(t, d.signIn(t, assertionOf("lee")).User)
		_, err := d.Identities(d.ctx, lee, kim.User.ID)
		want(t, err, models.KindForbidden)
		want(t, d.DeleteIdentity(d.ctx, lee, kim.User.ID, kim.Identity.ID), models.KindForbidden)
		want(t, d.DeleteIdentity(d.ctx, lee, lee.User.ID, kim.Identity.ID), models.KindForbidden)
		want(t, d.DeleteIdentity(d.ctx, d.root, lee.User.ID, kim.Identity.ID), models.KindNotFound)
		if own, err := d.Identities(d.ctx, lee, lee.User.ID); err != nil || len(own) != 1 {
			t.Errorf("one's own: %v, %v", own, err)
		}
		want(t, d.ResetPassword(d.ctx, d.root, kim.User.ID, password), models.KindConflict)
		if err := d.DeleteIdentity(d.ctx, d.root, kim.User.ID, kim.Identity.ID); err != nil {
			t.Fatal(err)
		}
		if now, err := d.User(d.ctx, d.root, kim.User.ID); err != nil || now.SessionGeneration != kim.User.SessionGeneration+1 {
			t.Errorf("sessions go on: %+v, %v", now, err)
		}
		if err := d.ResetPassword(d.ctx, d.root, kim.User.ID, password); err != nil {
			t.Error(err)
		}
	})
}

func TestPlacesAreInTheOrderOfTheRules(t *testing.T) {
	got := universityRules().ProjectRoles([]string{"staff", "others", "vision", "admins"})
	if want := []policies.ProjectRole{{Project: "vision", Role: "lead"}, {Project: "vision", Role: "engineer"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
