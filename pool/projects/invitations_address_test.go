package projects_test

import (
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
)

// Where links are sent, a manager, who may not create accounts, does not see them.
func TestLinksAreSentToTheInvitedAlone(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		v.Store.Mail = true
		if i := v.to(t, "new@example.org"); i.Link.Secret != "" || i.Link.URL("https://weir.example.org") != "" {
			t.Errorf("the manager sees %+v", i.Link)
		}
		letters, err := v.Store.Read(v.Ctx).Deliveries(store.DeliveryFilter{Mail: true}, store.Page{})
		if err != nil || len(letters) != 1 || letters[0].Kind != models.LetterInvitation {
			t.Errorf("%+v, %v", letters, err)
		}
		v.boss = v.Root
		if i := v.to(t, "new@example.org"); i.Link.Secret == "" {
			t.Error("an administrator does not see the link")
		}
	})
}

// Without a mail server, a link that its inviter sees proves nothing about the address,
// unless the inviter may create any account. An administrator can confirm it later.
func TestAddressIsUnconfirmedWhereTheInviterSeesTheLink(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		u, err := v.accept(v.to(t, "by-manager@example.org").Link.Secret)
		pooltest.NoError(t, err)
		if !u.EmailUnconfirmed {
			t.Error("the address counts as confirmed")
		}
		members, err := v.Store.Read(v.Ctx).Members(v.boss.Scope(), v.Vision.ID, store.Page{})
		pooltest.NoError(t, err)
		for _, m := range members {
			if m.UserUnconfirmed != (m.UserID == u.ID) {
				t.Errorf("%s: unconfirmed is %t", m.UserEmail, m.UserUnconfirmed)
			}
		}
		_, err = v.accounts.UpdateUser(v.Ctx, v.boss, u.ID, policies.UserChange{Name: u.Name, EmailConfirmed: true})
		pooltest.WantError(t, err, models.KindForbidden, "")
		for range 2 { // the second change says nothing about the address
			u, err = v.accounts.UpdateUser(v.Ctx, v.Root, u.ID, policies.UserChange{Name: u.Name, EmailConfirmed: u.EmailUnconfirmed})
			pooltest.NoError(t, err)
			if u.EmailUnconfirmed {
				t.Error("an administrator does not confirm it")
			}
		}
		v.boss = v.Root
		u, err = v.accept(v.to(t, "by-administrator@example.org").Link.Secret)
		pooltest.NoError(t, err)
		if u.EmailUnconfirmed {
			t.Error("who may create any account cannot vouch for an address")
		}
	})
}
