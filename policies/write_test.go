package policies_test

import (
	"testing"

	"weir/models"
	"weir/policies"
)

// Write checks a right before the transaction and again inside it.
func TestWriteChecksTwice(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		a := access(t)
		ada := d.load(t, d.add(t, "ada@example.org", false))
		owned := func(actor policies.Actor, owner int64) (ran bool, err error) {
			err = a.WriteOwned(d.ctx, d.store, actor, owner, policies.Platform, policies.ProviderWrite, func(*models.Queries) error { ran = true; return nil })
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
		if err := d.store.Watch(func(models.Statement) { statements++ }); err != nil {
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
			return a.WriteSelf(d.ctx, d.store, actor, func(*models.Queries) error { return nil })
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
