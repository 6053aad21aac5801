package policies_test

import (
	"slices"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/policies/passkeys"
)

// withPerson is withRoot with Ada, who has a password.
func withPerson(t *testing.T, test func(t *testing.T, d *fixture, ada policies.Actor)) {
	withRoot(t, func(t *testing.T, d *fixture) {
		key, err := policies.NewKey([]byte("shared"), policies.SecondFactorKey)
		if err != nil {
			t.Fatal(err)
		}
		d.Key = key
		if d.PasskeyKey, err = policies.NewKey([]byte("shared"), policies.PasskeyKey); err != nil {
			t.Fatal(err)
		}
		if d.RelyingParty, err = passkeys.New(origin); err != nil {
			t.Fatal(err)
		}
		d.ctx = policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.1"})
		test(t, d, d.load(t, d.add(t, "ada@example.org", false)))
	})
}

// code is the code that an app with a secret shows, some steps from now.
func (d *fixture) code(t *testing.T, secret string, steps int) string {
	t.Helper()
	at := d.clock.Now().Add(time.Duration(steps) * 30 * time.Second)
	code, err := totp.GenerateCodeCustom(secret, at, totp.ValidateOpts{Period: 30, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// enroll gives an account a second factor.
func (d *fixture) enroll(t *testing.T, actor policies.Actor) (after policies.Actor, secret string, codes []string) {
	t.Helper()
	e, err := d.BeginSecondFactor(d.ctx, actor, policies.Proof{Password: password})
	if err != nil {
		t.Fatal(err)
	}
	if codes, err = d.ConfirmSecondFactor(d.ctx, actor, d.code(t, e.Secret, 0)); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(30 * time.Second)
	return d.load(t, actor.User), e.Secret, codes
}

// enters signs in with the password, and returns the next step.
func (d *fixture) enters(t *testing.T, email string) (models.User, policies.SignInStep, policies.PendingSignIn) {
	t.Helper()
	u, err := d.SignIn(d.ctx, "192.0.2.1", email, password)
	if err != nil {
		t.Fatal(err)
	}
	step, pending, err := d.NextStep(d.ctx, u, false)
	if err != nil {
		t.Fatal(err)
	}
	return u, step, pending
}

func TestEnrollment(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		_, err := d.BeginSecondFactor(d.ctx, ada, policies.Proof{Password: "wrong"})
		want(t, err, models.KindInvalid)
		if got := refusedFields(err); !slices.Equal(got, []string{"password"}) {
			t.Errorf("refused %v", got)
		}
		_, err = d.Enrollment(d.ctx, ada)
		want(t, err, models.KindConflict)
		e, err := d.BeginSecondFactor(d.ctx, ada, policies.Proof{Password: password})
		if err != nil {
			t.Fatal(err)
		}
		if again, err := d.Enrollment(d.ctx, ada); err != nil || again != e {
			t.Errorf("%+v, %v; want %+v", again, err, e)
		}
		_, err = d.ConfirmSecondFactor(d.ctx, ada, "000000")
		want(t, err, models.KindInvalid)
		if _, step, _ := d.enters(t, "ada@example.org"); step != policies.SignedIn {
			t.Errorf("step %d before the confirmation", step)
		}
		d.clock.Advance(15 * time.Minute)
		_, err = d.ConfirmSecondFactor(d.ctx, ada, d.code(t, e.Secret, 0))
		want(t, err, models.KindConflict)
		after, secret, codes := d.enroll(t, ada)
		if after.User.SecondFactorAt == nil || after.User.SessionGeneration != ada.User.SessionGeneration+1 || len(codes) != 10 || secret == e.Secret {
			t.Errorf("after %+v, %d codes", after.User, len(codes))
		}
		_, err = d.Enrollment(d.ctx, after) // never rendered again
		want(t, err, models.KindConflict)
		stored, err := d.store.Read(d.ctx).SecondFactor(ada.User.ID)
		if err != nil || stored.Secret == "" || stored.Secret == secret || stored.NewSecret != "" {
			t.Errorf("stored %+v, %v", stored, err)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"ada@example.org enable-second-factor account"}) {
			t.Errorf("audit %v", got)
		}
		inbox, err := d.store.Read(d.ctx).Notifications(ada.User.ID, store.Page{})
		if err != nil || len(inbox) != 1 || inbox[0].Kind != models.NotificationSecondFactor {
			t.Errorf("notified %+v, %v", inbox, err)
		}
	})
}

func TestSecondFactorNeedsAPasswordAndTheScope(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		proof := policies.Proof{Password: password}
		campus := policies.ProviderRules{Name: "Campus", Domains: []string{"campus.example"}}
		in, err := d.SignInWithProvider(d.ctx, campus,
			policies.Assertion{Issuer: "https://id", Subject: "eve", Email: "eve@campus.example", Verified: true})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.BeginSecondFactor(d.ctx, d.load(t, in.User), proof)
		want(t, err, models.KindConflict)
		_, err = d.BeginSecondFactor(d.ctx, policies.Actor{}, proof)
		want(t, err, models.KindUnauthenticated)
		_, secret, err := d.CreateToken(d.ctx, ada, policies.NewToken{Name: "ci", Scopes: []models.TokenScope{models.ScopeProject}})
		if err != nil {
			t.Fatal(err)
		}
		program, err := d.ActorByToken(d.ctx, secret)
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.BeginSecondFactor(d.ctx, program, proof)
		want(t, err, models.KindForbidden)
		_, err = d.ConfirmSecondFactor(d.ctx, program, "000000")
		want(t, err, models.KindForbidden)
		_, err = d.NewRecoveryCodes(d.ctx, program, proof)
		want(t, err, models.KindForbidden)
		want(t, d.DisableSecondFactor(d.ctx, program, proof), models.KindForbidden)
		_, err = d.Enrollment(d.ctx, program)
		want(t, err, models.KindForbidden)
	})
}

func TestSignInWithACode(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		_, secret, codes := d.enroll(t, ada)
		_, step, pending := d.enters(t, "ada@example.org")
		if step != policies.CodeStep {
			t.Fatalf("step %d", step)
		}
		want(t, d.CheckPending(d.ctx, pending, policies.EnrollmentStep), models.KindUnauthenticated)
		_, err := d.BeginRequiredSecondFactor(d.ctx, pending) // the password alone replaces nothing
		want(t, err, models.KindUnauthenticated)
		_, _, err = d.ConfirmRequiredSecondFactor(d.ctx, pending, d.code(t, secret, 0))
		want(t, err, models.KindUnauthenticated)
		for _, wrong := range []string{"", "000000", d.code(t, secret, -2), d.code(t, secret, 2), "x", codes[0][:18]} {
			_, err := d.SignInWithCode(d.ctx, pending, wrong)
			want(t, err, models.KindInvalid)
		}
		var kinds storetest.ErrorCounts
		code := d.code(t, secret, 0)
		storetest.Concurrently(3, func(int) {
			_, err := d.SignInWithCode(d.ctx, pending, code[:3]+" "+code[3:])
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindInvalid, 2)
		if u, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 1)); err != nil || u.ID != ada.User.ID {
			t.Errorf("the next code: %+v, %v", u, err)
		}
		_, err = d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0))
		want(t, err, models.KindInvalid) // before one that was accepted
		if _, err := d.SignInWithCode(d.ctx, pending, codes[3]); err != nil {
			t.Error(err)
		}
		_, err = d.SignInWithCode(d.ctx, pending, codes[3])
		want(t, err, models.KindInvalid)
		if got := d.audit(t, 1); !slices.Equal(got, []string{"ada@example.org use-recovery-code account"}) {
			t.Errorf("audit %v", got)
		}
		if s, err := d.SecondFactor(d.ctx, d.load(t, ada.User)); err != nil || s.RecoveryCodes != 9 || s.EnabledAt == nil || !s.Available || s.Required {
			t.Errorf("%+v, %v", s, err)
		}
		d.clock.Advance(policies.PendingSignInLifetime)
		_, err = d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0))
		want(t, err, models.KindUnauthenticated)
		want(t, d.CheckPending(d.ctx, policies.PendingSignIn{}, policies.CodeStep), models.KindUnauthenticated)
	})
}

// A right password does not forget the codes that were tried.
func TestAttemptsAtCodesAreBounded(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		_, secret, _ := d.enroll(t, ada)
		var pending policies.PendingSignIn
		for range 10 {
			_, _, pending = d.enters(t, "ada@example.org")
			_, err := d.SignInWithCode(d.ctx, pending, "000000")
			want(t, err, models.KindInvalid)
		}
		_, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0))
		want(t, err, models.KindRateLimited)
		elsewhere := policies.WithOrigin(d.ctx, policies.Origin{Address: "192.0.2.2"})
		if _, err := d.SignInWithCode(elsewhere, pending, d.code(t, secret, 0)); err != nil {
			t.Errorf("from another client: %v", err)
		}
		refused := 0
		for range 12 { // 90 more attempts in this day, whenever they are made
			d.clock.Advance(15 * time.Minute)
			_, _, pending = d.enters(t, "ada@example.org")
			for range 10 {
				_, err := d.SignInWithCode(d.ctx, pending, "000000")
				if models.KindOf(err) == models.KindRateLimited {
					refused++
				}
			}
		}
		if refused != 30 {
			t.Errorf("%d of 120 attempts are refused", refused)
		}
		d.clock.Advance(24 * time.Hour)
		_, _, pending = d.enters(t, "ada@example.org")
		if _, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0)); err != nil {
			t.Errorf("a day later: %v", err)
		}
	})
}

func TestReplaceAndDisable(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		want(t, d.DisableSecondFactor(d.ctx, ada, policies.Proof{Password: password}), models.KindConflict)
		_, err := d.NewRecoveryCodes(d.ctx, ada, policies.Proof{Password: password})
		want(t, err, models.KindConflict)
		now, secret, codes := d.enroll(t, ada)
		_, err = d.BeginSecondFactor(d.ctx, now, policies.Proof{Password: password})
		want(t, err, models.KindInvalid)
		e, err := d.BeginSecondFactor(d.ctx, now, policies.Proof{Password: password, Code: d.code(t, secret, 0)})
		if err != nil {
			t.Fatal(err)
		}
		_, _, pending := d.enters(t, "ada@example.org")
		if _, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 1)); err != nil {
			t.Errorf("the old app before the new one is confirmed: %v", err)
		}
		d.clock.Advance(time.Minute)
		fresh, err := d.ConfirmSecondFactor(d.ctx, now, d.code(t, e.Secret, 0))
		if err != nil {
			t.Fatal(err)
		}
		_, _, pending = d.enters(t, "ada@example.org")
		for _, old := range []string{d.code(t, secret, 0), codes[0]} {
			_, err := d.SignInWithCode(d.ctx, pending, old)
			want(t, err, models.KindInvalid)
		}
		now = d.load(t, ada.User)
		// The password alone makes no codes: with one of them, it would replace the app.
		for _, proof := range []policies.Proof{{Password: "wrong", Code: fresh[1]}, {Password: password}, {Password: password, Code: codes[1]}} {
			_, err = d.NewRecoveryCodes(d.ctx, now, proof)
			want(t, err, models.KindInvalid)
		}
		if _, err := d.NewRecoveryCodes(d.ctx, now, policies.Proof{Password: password, Code: fresh[1]}); err != nil {
			t.Fatal(err)
		}
		_, err = d.SignInWithCode(d.ctx, pending, fresh[0])
		want(t, err, models.KindInvalid)
		want(t, d.DisableSecondFactor(d.ctx, now, policies.Proof{Password: "wrong", Code: d.code(t, e.Secret, 1)}), models.KindInvalid)
		want(t, d.DisableSecondFactor(d.ctx, now, policies.Proof{Password: password}), models.KindInvalid)
		if err := d.DisableSecondFactor(d.ctx, now, policies.Proof{Password: password, Code: d.code(t, e.Secret, 1)}); err != nil {
			t.Fatal(err)
		}
		if _, step, _ := d.enters(t, "ada@example.org"); step != policies.SignedIn {
			t.Errorf("step %d", step)
		}
		lines := []string{"ada@example.org disable-second-factor account", "ada@example.org create-recovery-codes account",
			"ada@example.org use-recovery-code account", "ada@example.org enable-second-factor account"}
		if got := d.audit(t, 4); !slices.Equal(got, lines) {
			t.Errorf("audit %v", got)
		}
	})
}

func TestResetSecondFactor(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		want(t, d.ResetSecondFactor(d.ctx, d.root, ada.User.ID), models.KindConflict)
		now, secret, _ := d.enroll(t, ada)
		_, _, pending := d.enters(t, "ada@example.org")
		want(t, d.ResetSecondFactor(d.ctx, now, d.root.User.ID), models.KindForbidden)
		want(t, d.ResetSecondFactor(d.ctx, d.root, 999), models.KindNotFound)
		root := d.load(t, d.add(t, "boss@example.org", true))
		boss, _, _ := d.enroll(t, root)
		want(t, d.ResetSecondFactor(d.ctx, boss, boss.User.ID), models.KindConflict)
		if err := d.ResetSecondFactor(d.ctx, d.root, ada.User.ID); err != nil {
			t.Fatal(err)
		}
		_, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0))
		want(t, err, models.KindUnauthenticated)
		after := d.load(t, ada.User)
		if after.User.SecondFactorAt != nil || after.User.SessionGeneration != now.User.SessionGeneration+1 {
			t.Errorf("%+v", after.User)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"root@example.org reset-second-factor account"}) {
			t.Errorf("audit %v", got)
		}
		if err := d.ResetSecondFactor(d.ctx, policies.System("admin"), boss.User.ID); err != nil { // the command line
			t.Error(err)
		}
	})
}

func TestSignInPolicy(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		set := func(actor policies.Actor, a models.Audience) error {
			_, err := d.SetSignInPolicy(d.ctx, actor, policies.SignInPolicyInput{SecondFactor: a})
			return err
		}
		_, err := d.SignInPolicy(d.ctx, ada)
		want(t, err, models.KindForbidden)
		want(t, set(ada, models.Everyone), models.KindForbidden)
		want(t, set(d.root, "some"), models.KindInvalid)
		_, err = d.SetSignInPolicy(d.ctx, d.root, policies.SignInPolicyInput{SecondFactor: models.Everyone, Version: 9})
		want(t, err, models.KindConflict)
		boss := d.load(t, d.add(t, "boss@example.org", true))
		want(t, set(boss, models.Administrators), models.KindConflict) // it would sign out the boss
		visit := ada
		visit.Via = policies.ViaSession
		if _, err := d.RefreshActor(d.ctx, visit); err != nil {
			t.Fatal(err)
		}
		if err := set(d.root, models.Administrators); err != nil { // root has no password
			t.Fatal(err)
		}
		if _, step, _ := d.enters(t, "ada@example.org"); step != policies.SignedIn {
			t.Errorf("Ada's step %d", step)
		}
		if _, step, _ := d.enters(t, "boss@example.org"); step != policies.EnrollmentStep {
			t.Errorf("the boss's step %d", step)
		}
		if err := set(d.root, models.Everyone); err != nil {
			t.Fatal(err)
		}
		_, err = d.RefreshActor(d.ctx, visit)
		want(t, err, models.KindUnauthenticated)
		visit.ByProvider = true
		if _, err := d.RefreshActor(d.ctx, visit); err != nil {
			t.Errorf("a session that an identity provider began: %v", err)
		}
		if got := d.audit(t, 1); !slices.Equal(got, []string{"root@example.org update sign-in-policy"}) {
			t.Errorf("audit %v", got)
		}
		d.signsInByEnrolling(t, ada)
		now := d.load(t, ada.User)
		e, err := d.BeginSecondFactor(d.ctx, now, policies.Proof{Password: password, Code: "000000"})
		want(t, err, models.KindInvalid)
		if e != (policies.Enrollment{}) {
			t.Errorf("%+v", e)
		}
		if s, err := d.SecondFactor(d.ctx, now); err != nil || !s.Required {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// signsInByEnrolling signs in somebody who must set up a second factor first, and may not
// disable it then.
func (d *fixture) signsInByEnrolling(t *testing.T, actor policies.Actor) {
	t.Helper()
	_, step, pending := d.enters(t, actor.User.Email)
	if step != policies.EnrollmentStep {
		t.Fatalf("step %d", step)
	}
	_, err := d.SignInWithCode(d.ctx, pending, "000000")
	want(t, err, models.KindUnauthenticated)
	_, err = d.RequiredEnrollment(d.ctx, pending)
	want(t, err, models.KindConflict)
	e, err := d.BeginRequiredSecondFactor(d.ctx, pending)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.RequiredEnrollment(d.ctx, pending); err != nil || again != e {
		t.Errorf("%+v, %v", again, err)
	}
	u, codes, err := d.ConfirmRequiredSecondFactor(d.ctx, pending, d.code(t, e.Secret, 0))
	if err != nil || len(codes) != 10 || u.SecondFactorAt == nil {
		t.Fatalf("%+v, %d codes, %v", u, len(codes), err)
	}
	now := d.load(t, u)
	want(t, d.DisableSecondFactor(d.ctx, now, policies.Proof{Password: password, Code: codes[0]}), models.KindConflict)
	if s, err := d.SecondFactor(d.ctx, now); err != nil || s.RecoveryCodes != 10 { // the refusal used none
		t.Errorf("%+v, %v", s, err)
	}
}

// Without the key that encrypted its secret, an app is of no use, but recovery codes are.
func TestAnotherKeyReadsNoSecret(t *testing.T) {
	withPerson(t, func(t *testing.T, d *fixture, ada policies.Actor) {
		_, secret, codes := d.enroll(t, ada)
		_, _, pending := d.enters(t, "ada@example.org")
		right := d.Key
		var err error
		if d.Key, err = policies.NewKey([]byte("another"), policies.SecondFactorKey); err != nil {
			t.Fatal(err)
		}
		for range 11 { // such attempts do not count
			_, err = d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0))
			want(t, err, models.KindUnavailable)
		}
		if _, err := d.SignInWithCode(d.ctx, pending, codes[0]); err != nil {
			t.Error(err)
		}
		if _, err := d.BeginSecondFactor(d.ctx, d.load(t, ada.User), policies.Proof{Password: password, Code: codes[1]}); err != nil {
			t.Error(err)
		}
		d.Key = right
		if _, err := d.SignInWithCode(d.ctx, pending, d.code(t, secret, 0)); err != nil {
			t.Error(err)
		}
	})
}
