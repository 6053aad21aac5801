package policies_test

import (
	"context"
	"errors"
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

const password = "correct horse battery"

func has(list, word string) bool { return slices.Contains(strings.Fields(list), word) }

// fixture is the accounts of a fresh store with a stopped clock.
type fixture struct {
	*policies.Accounts
	ctx   context.Context
	store *store.Store
	clock *storetest.Clock
	root  policies.Actor
}

func each(t *testing.T, test func(t *testing.T, d *fixture)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, newFixture(t, s)) })
}

func newFixture(t *testing.T, s *store.Store) *fixture {
	return &fixture{Accounts: policies.NewAccounts(s, access(t)), ctx: t.Context(), store: s, clock: storetest.NewClock(s)}
}

// withRoot is each with an administrator.
func withRoot(t *testing.T, test func(t *testing.T, d *fixture)) {
	each(t, func(t *testing.T, d *fixture) {
		d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
		test(t, d)
	})
}

func (d *fixture) load(t *testing.T, u models.User) policies.Actor {
	t.Helper()
	actor, err := d.Load(d.ctx, u.ID)
	if err != nil {
		t.Fatal(err)
	}
	return actor
}

func (d *fixture) add(t *testing.T, email string, admin bool) models.User {
	t.Helper()
	u, err := d.CreateUser(d.ctx, d.root, policies.NewUser{Email: email, Name: "Ada", Password: password, Admin: admin})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// audit returns the newest entries, as "actor action object".
func (d *fixture) audit(t *testing.T, n int) []string {
	t.Helper()
	entries, err := d.store.Read(d.ctx).Audit(store.AuditFilter{}, store.Page{Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, e.Actor+" "+e.Action+" "+e.Object)
		if strings.Contains(e.Before+e.After, "argon2") || strings.Contains(e.Before+e.After, password) {
			t.Errorf("the audit keeps a secret: %+v", e)
		}
	}
	return lines
}

func want(t *testing.T, err error, kind models.Kind) {
	t.Helper()
	if err == nil || models.KindOf(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
	}
}

// refusedFields returns the fields of an error.
func refusedFields(err error) (names []string) {
	var e *models.Error
	if errors.As(err, &e) {
		for _, f := range e.Fields {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestSetupIsForOne(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		in := policies.NewUser{Email: "Root@Example.org", Name: "Root", Password: password}
		void, err1 := d.SetupToken(d.ctx, time.Hour)
		token, err2 := d.SetupToken(d.ctx, time.Hour)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{void, "", "wrong", strings.Repeat("x", 10_000), "\x00"} {
			want(t, d.CheckSetupToken(d.ctx, wrong), models.KindNotFound)
			_, err := d.Setup(d.ctx, wrong, in)
			want(t, err, models.KindNotFound)
		}
		_, err := d.Setup(d.ctx, token, policies.NewUser{Email: "x", Password: "short"})
		if got := refusedFields(err); !slices.Equal(got, []string{"email", "name", "password"}) {
			t.Errorf("refused %v: %v", got, err)
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(20, func(int) {
			_, err := d.Setup(d.ctx, token, in)
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindNotFound, 19)
		want(t, d.CheckSetupToken(d.ctx, token), models.KindNotFound)
		if again, err := d.SetupToken(d.ctx, time.Hour); err != nil || again != "" {
			t.Errorf("a second setup is offered: %q, %v", again, err)
		}
		u, err := d.SignIn(d.ctx, "192.0.2.1", "ROOT@example.org", password)
		if err != nil || !u.Admin {
			t.Errorf("%+v, %v", u, err)
		}
		if got := d.audit(t, 10); !slices.Equal(got, []string{"weir setup create account"}) {
			t.Errorf("audit: %v", got)
		}
	})
}

func TestSetupLinkEnds(t *testing.T) {
	each(t, func(t *testing.T, d *fixture) {
		token, err := d.SetupToken(d.ctx, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		d.clock.Advance(time.Hour - time.Microsecond)
		if err := d.CheckSetupToken(d.ctx, token); err != nil {
			t.Error(err)
		}
		d.clock.Advance(time.Microsecond)
		want(t, d.CheckSetupToken(d.ctx, token), models.KindNotFound)
		_, err = d.Setup(d.ctx, token, policies.NewUser{Email: "a@example.org", Name: "A", Password: password})
		want(t, err, models.KindNotFound)
	})
}

func TestSignIn(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.add(t, "ada@example.org", false)
		gone := d.add(t, "gone@example.org", false)
		if _, err := d.UpdateUser(d.ctx, d.root, gone.ID, policies.UserChange{Name: "Gone", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		if u, err := d.SignIn(d.ctx, "192.0.2.1", " Ada@Example.ORG ", password); err != nil || u.ID != ada.ID {
			t.Errorf("%+v, %v", u, err)
		}
		answers := map[string]bool{}
		for _, c := range []struct{ email, password string }{
			{"ada@example.org", "wrong"}, {"ada@example.org", ""}, {"ada@example.org", password + "\x00"},
			{"nobody@example.org", password}, {"gone@example.org", password}, {"root@example.org", ""},
			{"", password}, {"a\x00b", password}, {"\xff", password}, {strings.Repeat("x", 10_000), password},
		} {
			_, err := d.SignIn(d.ctx, "192.0.2.1", c.email, c.password)
			want(t, err, models.KindUnauthenticated)
			answers[err.Error()] = true
		}
		if len(answers) != 1 {
			t.Errorf("the answers tell apart what they should not: %v", answers)
		}
		_, err := d.Load(d.ctx, gone.ID)
		want(t, err, models.KindUnauthenticated)
		_, err = d.Load(d.ctx, 999)
		want(t, err, models.KindUnauthenticated)
	})
}

// Failures are counted in memory, so one database is enough.
func TestFailuresLockAnEmailForAWhile(t *testing.T) {
	d := newFixture(t, storetest.Open(t, "sqlite"))
	d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
	d.add(t, "ada@example.org", false)
	d.add(t, "bob@example.org", false)
	for range 10 {
		_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "wrong")
		want(t, err, models.KindUnauthenticated)
	}
	_, err := d.SignIn(d.ctx, "192.0.2.1", "Ada@example.org", password)
	want(t, err, models.KindRateLimited)
	if _, err := d.SignIn(d.ctx, "192.0.2.2", "ada@example.org", password); err != nil {
		t.Errorf("a stranger's failures lock Ada out: %v", err)
	}
	if _, err := d.SignIn(d.ctx, "192.0.2.1", "bob@example.org", password); err != nil {
		t.Errorf("another email: %v", err)
	}
	d.clock.Advance(15*time.Minute - time.Second)
	_, err = d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", password)
	want(t, err, models.KindRateLimited)
	d.clock.Advance(time.Second)
	if _, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", password); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	for range 9 { // success forgets the failures
		_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "wrong")
		want(t, err, models.KindUnauthenticated)
	}
	if _, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", password); err != nil {
		t.Errorf("after 9 failures: %v", err)
	}
}

func TestManyClientsLockAnEmailTogether(t *testing.T) {
	d := newFixture(t, storetest.Open(t, "sqlite"))
	d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
	var err error
	if d.DeviceKey, err = policies.NewKey([]byte("shared"), policies.DeviceKey); err != nil {
		t.Fatal(err)
	}
	ada := d.add(t, "ada@example.org", false)
	deviceOf := func(u models.User) string {
		device, err := d.Device(u)
		if err != nil {
			t.Fatal(err)
		}
		return device
	}
	own, other := deviceOf(ada), deviceOf(d.add(t, "bob@example.org", false))
	for i := range 100 {
		_, err := d.SignIn(d.ctx, fmt.Sprintf("192.0.2.%d", i), "ada@example.org", "wrong", "planted", other)
		want(t, err, models.KindUnauthenticated)
	}
	from := func(devices ...string) error {
		_, err := d.SignIn(d.ctx, "198.51.100.1", "ada@example.org", password, devices...)
		return err
	}
	want(t, from(), models.KindRateLimited)
	want(t, from("planted", other), models.KindRateLimited)
	for range 9 { // a device in which she has signed in has its own ten
		_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "wrong", own)
		want(t, err, models.KindUnauthenticated)
	}
	if err := from("planted", own); err != nil {
		t.Errorf("her own device: %v", err)
	}
	for range 10 {
		_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "wrong", own)
		want(t, err, models.KindUnauthenticated)
	}
	want(t, from(own), models.KindRateLimited)
	fresh := deviceOf(ada)
	if err := d.ChangePassword(d.ctx, d.load(t, ada), password, password+"!"); err != nil { // not locked either
		t.Fatal(err)
	}
	_, err = d.SignIn(d.ctx, "198.51.100.1", "ada@example.org", password+"!", fresh)
	want(t, err, models.KindRateLimited)
}

// Guesses that are spread over many addresses count together, and lock nobody else out.
func TestSpreadGuessesLockTheirClient(t *testing.T) {
	d := newFixture(t, storetest.Open(t, "sqlite"))
	d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
	d.add(t, "ada@example.org", false)
	for i := range 100 {
		_, err := d.SignIn(d.ctx, fmt.Sprintf("2001:db8::%d", i), fmt.Sprintf("user%d@example.org", i), "wrong") // one network
		want(t, err, models.KindUnauthenticated)
	}
	_, err := d.SignIn(d.ctx, "2001:db8::ffff", "ada@example.org", password)
	want(t, err, models.KindRateLimited)
	if _, err := d.SignIn(d.ctx, "2001:db8:0:1::1", "ada@example.org", password); err != nil {
		t.Errorf("from another network: %v", err)
	}
}

// Who fills the memory for attempts pushes out the oldest, and not those of everybody.
func TestAttemptsAreForgottenOldestFirst(t *testing.T) {
	d := newFixture(t, storetest.Open(t, "sqlite"))
	d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
	d.add(t, "ada@example.org", false)
	guess := func(times int) {
		for range times {
			_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", "wrong")
			want(t, err, models.KindUnauthenticated)
		}
	}
	guess(9)
	d.FillAttempts(49_000)
	guess(1)
	d.FillAttempts(49_000)
	d.UndoAttempts(50_000) // take no place of another
	_, err := d.SignIn(d.ctx, "192.0.2.1", "ada@example.org", password)
	want(t, err, models.KindRateLimited)
}

// A change that began before its right was revoked must not be committed after it.
func TestRightsAreReadAgainInsideTheChange(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		second := storetest.User(t, d.store, "second@example.org", true)
		before := d.load(t, second)
		if err := d.ResetPassword(d.ctx, d.root, second.ID, "another good one"); err != nil {
			t.Fatal(err)
		}
		_, _, err := d.CreateToken(d.ctx, before, policies.NewToken{Name: "late"})
		want(t, err, models.KindUnauthenticated)
		before = d.load(t, second)
		if _, err := d.UpdateUser(d.ctx, d.root, second.ID, policies.UserChange{Name: "Second"}); err != nil {
			t.Fatal(err)
		}
		_, err = d.CreateUser(d.ctx, before, policies.NewUser{Email: "late@example.org", Name: "Late", Password: password, Admin: true})
		want(t, err, models.KindForbidden)
	})
}
