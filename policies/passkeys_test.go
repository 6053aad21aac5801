package policies_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/policies/passkeys/passkeystest"
)

const origin = "http://localhost:8080"

// adds has an authenticator create a passkey for an account.
func (d *fixture) adds(t *testing.T, actor policies.Actor, proof policies.Proof, name string) (*passkeystest.Authenticator, models.Passkey) {
	t.Helper()
	c, err := d.BeginPasskey(d.ctx, actor, proof)
	if err != nil {
		t.Fatal(err)
	}
	a := &passkeystest.Authenticator{Origin: origin}
	p, err := d.AddPasskey(d.ctx, actor, policies.NewPasskey{Name: name, Ceremony: c.Ceremony, Credential: a.Create(t, c.Options)})
	if err != nil {
		t.Fatal(err)
	}
	return a, p
}

// answers is what an authenticator answers to a new ceremony of signing in.
func (d *fixture) answers(t *testing.T, a *passkeystest.Authenticator) policies.PasskeySignIn {
	t.Helper()
	d.clock.Advance(time.Second)
	c, err := d.BeginPasskeySignIn()
	if err != nil {
		t.Fatal(err)
	}
	return policies.PasskeySignIn{Ceremony: c.Ceremony, Credential: a.Get(t, c.Options)}
}

func (d *fixture) signsInWith(in policies.PasskeySignIn) (models.User, error) {
	return d.SignInWithPasskey(d.ctx, "192.0.2.1", in)
}

func TestAddPasskey(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		proof := policies.Proof{Password: password}
		_, err := d.BeginPasskey(d.ctx, ada, policies.Proof{Password: "wrong"})
		want(t, err, models.KindInvalid)
		a, p := d.adds(t, ada, proof, "  Ada's phone ")
		list, err := d.Passkeys(d.ctx, ada, ada.User.ID)
		if err != nil || len(list) != 1 || list[0].Name != "Ada's phone" || list[0].LastUsedAt != nil || list[0].ID != p.ID {
			t.Errorf("listed %+v, %v", list, err)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"ada@example.org add-passkey account"}) {
			t.Errorf("audit %v", got)
		}
		inbox, err := d.store.Read(d.ctx).Notifications(ada.User.ID, store.Page{})
		if err != nil || len(inbox) != 1 || inbox[0].Kind != models.NotificationSecondFactor {
			t.Errorf("notified %+v, %v", inbox, err)
		}
		c, err := d.BeginPasskey(d.ctx, ada, proof)
		if err != nil {
			t.Fatal(err)
		}
		made := (&passkeystest.Authenticator{Origin: origin}).Create(t, c.Options)
		eve := d.load(t, d.add(t, "eve@example.org", false))
		for field, in := range map[string]policies.NewPasskey{"name": {Ceremony: c.Ceremony, Credential: made},
			"ceremony":   {Name: "x", Ceremony: c.Ceremony + "x", Credential: made},
			"credential": {Name: "x", Ceremony: c.Ceremony, Credential: a.Get(t, c.Options)}} {
			_, err := d.AddPasskey(d.ctx, ada, in)
			if want(t, err, models.KindInvalid); !slices.Equal(refusedFields(err), []string{field}) {
				t.Errorf("%s: %v", field, err)
			}
		}
		_, err = d.AddPasskey(d.ctx, eve, policies.NewPasskey{Name: "x", Ceremony: c.Ceremony, Credential: made}) // it is Ada's
		want(t, err, models.KindInvalid)
		if _, err := d.AddPasskey(d.ctx, ada, policies.NewPasskey{Name: "x", Ceremony: c.Ceremony, Credential: made}); err != nil {
			t.Error(err)
		}
		_, err = d.AddPasskey(d.ctx, ada, policies.NewPasskey{Name: "x", Ceremony: c.Ceremony, Credential: made})
		want(t, err, models.KindConflict)
		d.clock.Advance(15 * time.Minute)
		_, err = d.AddPasskey(d.ctx, ada, policies.NewPasskey{Name: "x", Ceremony: c.Ceremony, Credential: made})
		want(t, err, models.KindInvalid)
		_, err = d.Passkeys(d.ctx, eve, ada.User.ID)
		want(t, err, models.KindForbidden)
		if list, err := d.Passkeys(d.ctx, d.root, ada.User.ID); err != nil || len(list) != 2 {
			t.Errorf("of an administrator: %+v, %v", list, err)
		}
	})
}

func TestPasskeysAreBounded(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		proof := policies.Proof{Password: password}
		late, err := d.BeginPasskey(d.ctx, ada, proof)
		if err != nil {
			t.Fatal(err)
		}
		for range policies.MaxPasskeys {
			d.adds(t, ada, proof, "x")
		}
		_, err = d.BeginPasskey(d.ctx, ada, proof)
		want(t, err, models.KindConflict)
		made := (&passkeystest.Authenticator{Origin: origin}).Create(t, late.Options)
		_, err = d.AddPasskey(d.ctx, ada, policies.NewPasskey{Name: "x", Ceremony: late.Ceremony, Credential: made})
		want(t, err, models.KindConflict)
	})
}

func TestSignInWithPasskey(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		a, p := d.adds(t, ada, policies.Proof{Password: password}, "phone")
		d.answers(t, a) // one that is never sent
		in := d.answers(t, a)
		earlier := d.answers(t, a)
		u, err := d.signsInWith(in)
		if err != nil || u.ID != ada.User.ID {
			t.Fatalf("%+v, %v", u, err)
		}
		if list, err := d.Passkeys(d.ctx, ada, u.ID); err != nil || list[0].LastUsedAt == nil || !list[0].LastUsedAt.Equal(d.clock.Now()) {
			t.Errorf("%+v, %v", list, err)
		}
		_, err = d.signsInWith(in) // whoever has seen it cannot use it again
		want(t, err, models.KindInvalid)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(3, func(int) {
			_, err := d.signsInWith(earlier)
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindInvalid, 2)
		late := d.answers(t, a)
		d.clock.Advance(5 * time.Minute)
		_, err = d.signsInWith(late)
		want(t, err, models.KindInvalid)
		for _, ceremony := range []string{"", "x", late.Ceremony[:len(late.Ceremony)-4] + "AAAA"} {
			_, err = d.signsInWith(policies.PasskeySignIn{Ceremony: ceremony, Credential: late.Credential})
			want(t, err, models.KindInvalid)
		}
		begun, err := d.BeginPasskey(d.ctx, ada, policies.Proof{Password: password}) // a ceremony of another kind
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.signsInWith(policies.PasskeySignIn{Ceremony: begun.Ceremony, Credential: a.Get(t, begun.Options)})
		want(t, err, models.KindInvalid)
		if _, err := d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "Ada", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		_, err = d.signsInWith(d.answers(t, a))
		want(t, err, models.KindUnauthenticated)
		if _, err := d.UpdateUser(d.ctx, d.root, u.ID, policies.UserChange{Name: "Ada"}); err != nil {
			t.Fatal(err)
		}
		ada = d.load(t, u)
		eve := d.load(t, d.add(t, "eve@example.org", false))
		_, err = d.RenamePasskey(d.ctx, eve, p.ID, policies.PasskeyName{Name: "mine"})
		want(t, err, models.KindNotFound)
		want(t, d.DeletePasskey(d.ctx, eve, p.ID), models.KindNotFound)
		for range 2 { // the second time, nothing changes
			if _, err := d.RenamePasskey(d.ctx, ada, p.ID, policies.PasskeyName{Name: "old phone"}); err != nil {
				t.Fatal(err)
			}
		}
		renamed, err := d.store.Read(d.ctx).Audit(store.AuditFilter{Action: "rename-passkey", Object: "account"}, store.Page{})
		if err != nil || len(renamed) != 1 || !strings.Contains(renamed[0].After, "old phone") {
			t.Errorf("the audit: %+v, %v", renamed, err)
		}
		if err := d.DeletePasskey(d.ctx, ada, p.ID); err != nil {
			t.Fatal(err)
		}
		if after := d.load(t, u); after.User.SessionGeneration != ada.User.SessionGeneration+1 || after.User.SecondFactorAt != nil {
			t.Errorf("after %+v", after.User)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"ada@example.org delete-passkey account"}) {
			t.Errorf("audit %v", got)
		}
		want(t, d.DeletePasskey(d.ctx, d.load(t, u), p.ID), models.KindNotFound)
		_, err = d.signsInWith(d.answers(t, a))
		want(t, err, models.KindUnauthenticated)
	})
}

// TestPasskeyStandsForACode: it needs no code of the app, but where the policy requires a
// second factor for the password, the account must have one.
func TestPasskeyStandsForACode(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		a, _ := d.adds(t, ada, policies.Proof{Password: password}, "phone")
		policy := policies.SignInPolicyInput{SecondFactor: models.Everyone}
		if _, err := d.SetSignInPolicy(d.ctx, policies.System("test"), policy); err != nil {
			t.Fatal(err)
		}
		next := func() policies.SignInStep {
			t.Helper()
			u, err := d.signsInWith(d.answers(t, a))
			if err != nil {
				t.Fatal(err)
			}
			step, _, err := d.NextStep(d.ctx, u, true)
			if err != nil {
				t.Fatal(err)
			}
			return step
		}
		if step := next(); step != policies.EnrollmentStep {
			t.Errorf("step %d", step)
		}
		now, secret, _ := d.enroll(t, ada)
		if step := next(); step != policies.SignedIn {
			t.Errorf("step %d", step)
		}
		if _, step, _ := d.enters(t, "ada@example.org"); step != policies.CodeStep {
			t.Errorf("step %d after the password", step)
		}
		_, err := d.BeginPasskey(d.ctx, now, policies.Proof{Password: password})
		want(t, err, models.KindInvalid)
		d.adds(t, now, policies.Proof{Password: password, Code: d.code(t, secret, 0)}, "key")
		if err := d.ResetSecondFactor(d.ctx, d.root, ada.User.ID); err != nil {
			t.Fatal(err)
		}
		if list, err := d.Passkeys(d.ctx, ada, ada.User.ID); err != nil || len(list) != 0 {
			t.Errorf("after the reset: %+v, %v", list, err)
		}
		_, err = d.signsInWith(d.answers(t, a))
		want(t, err, models.KindUnauthenticated)
		want(t, d.ResetSecondFactor(d.ctx, d.root, ada.User.ID), models.KindConflict)
	})
}

// A program may add a passkey only with the scope for it, and strangers are bounded.
func TestPasskeyRights(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		_, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci", Scopes: []models.TokenScope{models.ScopeProject}})
		if err != nil {
			t.Fatal(err)
		}
		program, err := d.ActorByToken(d.ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.BeginPasskey(d.ctx, program, policies.Proof{Password: password})
		want(t, err, models.KindForbidden)
		_, err = d.AddPasskey(d.ctx, program, policies.NewPasskey{})
		want(t, err, models.KindForbidden)
		want(t, d.DeletePasskey(d.ctx, program, 1), models.KindForbidden)
		_, err = d.RenamePasskey(d.ctx, program, 1, policies.PasskeyName{Name: "x"})
		want(t, err, models.KindForbidden)
		a, _ := d.adds(t, ada, policies.Proof{Password: password}, "phone")
		for range 100 {
			_, err = d.signsInWith(policies.PasskeySignIn{})
			want(t, err, models.KindInvalid)
		}
		_, err = d.signsInWith(d.answers(t, a))
		want(t, err, models.KindRateLimited)
		if _, err := d.SignInWithPasskey(d.ctx, "192.0.2.2", d.answers(t, a)); err != nil {
			t.Errorf("from another client: %v", err)
		}
		d.clock.Advance(15 * time.Minute)
		for range 101 { // successes do not count
			if _, err := d.signsInWith(d.answers(t, a)); err != nil {
				t.Fatal(err)
			}
		}
		d.RelyingParty = nil
		_, err = d.BeginPasskeySignIn()
		want(t, err, models.KindConflict)
		_, err = d.BeginPasskey(d.ctx, ada, policies.Proof{Password: password})
		want(t, err, models.KindConflict)
	})
}

// Whoever knew the last password may have added a passkey: who recovers an account gets it alone.
func TestRecoveryRemovesPasskeys(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		a, _ := d.adds(t, ada, policies.Proof{Password: password}, "phone")
		if err := d.ChangePassword(d.ctx, ada, password, password+"!"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.signsInWith(d.answers(t, a)); err != nil {
			t.Errorf("after an own change: %v", err)
		}
		if err := d.ResetPassword(d.ctx, d.root, ada.User.ID, password); err != nil {
			t.Fatal(err)
		}
		_, err := d.signsInWith(d.answers(t, a))
		want(t, err, models.KindUnauthenticated)
	})
}
