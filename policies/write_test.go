package policies_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// Write checks a right before the transaction and again inside it.
func TestWriteChecksTwice(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		a := access(t)
		ada := d.load(t, d.add(t, "ada@example.org", false))
		owned := func(actor policies.Actor, owner int64) (ran bool, err error) {
			err = a.WriteOwned(d.ctx, d.store, actor, owner, policies.Platform, policies.ProviderWrite, func(*store.Queries) error { ran = true; return nil })
			return ran, err
		}
		demoted := d.root
		demoted.User.ID = ada.User.ID // an administrator when the request began
		for name, c := range map[string]struct {
			actor policies.Actor
			owner int64
			kind  models.Kind // empty: permitted
		}{
			"administrator":   {d.root, 0, ""},
			"owner":           {ada, ada.User.ID, ""},
			"system":          {policies.System("test"), 0, ""},
			"other user":      {ada, d.root.User.ID, models.KindForbidden},
			"unauthenticated": {policies.Actor{}, 0, models.KindUnauthenticated},
			"demoted":         {demoted, 0, models.KindForbidden},
		} {
			ran, err := owned(c.actor, c.owner)
			if ran != (c.kind == "") || (err == nil) != ran || err != nil && models.KindOf(err) != c.kind {
				t.Errorf("%s: ran %t, %v", name, ran, err)
			}
		}
		// The check before the transaction costs no statement.
		statements := 0
		if err := d.store.Watch(func(store.Statement) { statements++ }); err != nil {
			t.Fatal(err)
		}
		if _, err := owned(ada, 0); err == nil || statements > 0 {
			t.Errorf("%d statements, %v", statements, err)
		}
	})
}

func TestWriteSelfNeedsAnAccount(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		a := access(t)
		ada := d.add(t, "ada@example.org", false)
		actor := d.load(t, ada)
		write := func() error {
			return a.WriteSelf(d.ctx, d.store, actor, func(*store.Queries) error { return nil })
		}
		if err := write(); err != nil {
			t.Error(err)
		}
		if _, err := d.UpdateUser(d.ctx, d.root, ada.ID, policies.UserChange{Name: "Ada", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		want(t, write(), models.KindUnauthenticated)
	})
}

// An actor without the right learns nothing about the input.
func TestRightsAreCheckedBeforeTheInput(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		ada := d.load(t, d.add(t, "ada@example.org", false))
		want(t, d.ResetPassword(d.ctx, ada, d.root.User.ID, "short"), models.KindForbidden)
		want(t, second(d.CreateUser(d.ctx, ada, policies.NewUser{})), models.KindForbidden)
		want(t, second(d.UpdateUser(d.ctx, ada, d.root.User.ID, policies.UserChange{})), models.KindForbidden)
		want(t, second(d.CreateDepartment(d.ctx, ada, policies.DepartmentInput{})), models.KindForbidden)
		want(t, second(d.RenameDepartment(d.ctx, ada, 1, policies.DepartmentInput{})), models.KindForbidden)
		want(t, second(d.ImportPeople(d.ctx, ada, models.Import{})), models.KindForbidden)
	})
}

// What takes the actor's right away while a change is under way ends after the
// change; then the right is gone. SQLite has one writer, and needs no locks.
func TestRevocationsWaitForTheChange(t *testing.T) {
	d := newFixture(t, storetest.Open(t, "postgres"))
	d.root = d.load(t, storetest.User(t, d.store, "root@example.org", true))
	a := access(t)
	p := newProjectFixture(t, d, "vision")
	manager := p.load(t, p.people[models.PermissionManager])
	deputy := d.load(t, d.add(t, "deputy@example.org", true))
	storetest.InTx(t, d.store, func(q *store.Queries) error {
		return q.PutSession(models.Session{Token: "session", Data: []byte{1}, ExpiresAt: q.Now().Add(time.Hour)})
	})
	token, secret, err := d.CreateTokenFor(d.ctx, policies.System("test"), deputy.User.Email, policies.NewToken{Name: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	bySession, byToken := deputy, deputy
	bySession.Session, byToken.Session = "session", policies.HashSecret(secret)
	for _, c := range []struct {
		name    string
		actor   policies.Actor
		project int64
		right   policies.Right
		revoke  func() error
		gone    models.Kind // of another change by the actor; empty: permitted
	}{
		{"membership", manager, p.project.ID, policies.MemberWrite, func() error {
			return a.Write(d.ctx, d.store, d.root, p.project.ID, policies.MemberWrite, func(q *store.Queries) error {
				m, now := p.places[models.PermissionManager], q.Now()
				m.RemovedAt = &now
				return q.UpdateMember(&m)
			})
		}, models.KindNotFound},
		{"session", bySession, policies.Platform, policies.EnvironmentWrite, func() error {
			return d.store.InRevokingTx(d.ctx, func(q *store.Queries) error { return q.DeleteSession("session") })
		}, models.KindUnauthenticated},
		{"token", byToken, policies.Platform, policies.EnvironmentWrite, func() error {
			return d.store.InRevokingTx(d.ctx, func(q *store.Queries) error { return q.DeleteAccessToken(deputy.User.ID, token.ID) })
		}, models.KindUnauthenticated},
		// Each could see the other as the administrator who remains.
		{"changes of two administrators", deputy, policies.Platform, policies.UserWrite, func() error {
			return a.Write(d.ctx, d.store, d.root, policies.Platform, policies.UserWrite, func(*store.Queries) error { return nil })
		}, ""},
		{"account", deputy, policies.Platform, policies.EnvironmentWrite, func() error {
			return d.store.InRevokingTx(d.ctx, func(q *store.Queries) error {
				u := deputy.User
				u.Admin = false
				return q.UpdateUser(&u)
			})
		}, models.KindForbidden},
	} {
		ended := make(chan error, 1)
		err := a.Write(d.ctx, d.store, c.actor, c.project, c.right, func(q *store.Queries) error {
			go func() { ended <- c.revoke() }()
			if !storetest.Waits(t, d.store, q, ended) {
				t.Errorf("%s: the revocation ended while the change was under way", c.name)
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := <-ended; err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = a.Write(d.ctx, d.store, c.actor, c.project, c.right, func(*store.Queries) error { return nil })
		if err != nil && models.KindOf(err) != c.gone || (err == nil) != (c.gone == "") {
			t.Errorf("%s: the next change gets %v, want %q", c.name, err, c.gone)
		}
	}
}
