package projects_test

import (
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
	"weir/pool/pooltest"
	"weir/pool/projects"
)

const goodPassword = "correct horse battery"

// invitations is the example with its invitations and accounts.
type invitations struct {
	*example
	*projects.Invitations
	accounts *policies.Accounts
	boss     policies.Actor
}

func eachInvitations(t *testing.T, test func(t *testing.T, v *invitations)) {
	eachExample(t, func(t *testing.T, h *example) {
		accounts := policies.NewAccounts(h.Store, h.Access)
		test(t, &invitations{h, projects.NewInvitations(h.Service, accounts), accounts, h.Actor(t, h.Boss)})
	})
}

// to invites one address to the project as an engineer.
func (v *invitations) to(t *testing.T, email string) projects.Invited {
	t.Helper()
	list, err := v.Invite(v.Ctx, v.boss, v.Vision.ID, projects.InvitationInput{Emails: []string{email}, RoleID: v.Engineer.ID})
	pooltest.NoError(t, err)
	return list[0]
}

func (v *invitations) accept(secret string) (models.User, error) {
	return v.Accept(v.Ctx, policies.Actor{}, secret, policies.NewUser{Name: "New", Password: goodPassword})
}

func (v *invitations) revoke(actor policies.Actor, id int64) error {
	_, err := v.Revoke(v.Ctx, actor, id)
	return err
}

// removeExpired is what the reconciler does from time to time.
func (v *invitations) removeExpired(t *testing.T) {
	t.Helper()
	storetest.InTx(t, v.Store, func(q *store.Queries) error { _, err := q.DeleteExpired(q.Now()); return err })
}

func (v *invitations) listed(t *testing.T, id int64) models.InvitationView {
	t.Helper()
	list, err := v.List(v.Ctx, v.boss, v.Vision.ID, store.Page{})
	pooltest.NoError(t, err)
	for _, i := range list {
		if i.ID == id {
			return i
		}
	}
	t.Fatalf("invitation %d is not listed", id)
	return models.InvitationView{}
}

func (v *invitations) wantState(t *testing.T, id int64, want models.InvitationState) {
	t.Helper()
	if got := v.listed(t, id).State(v.Store.Now()); got != want {
		t.Errorf("the invitation is %s, want %s", got, want)
	}
}

func TestInvitationMakesAccountAndMembership(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		i := v.to(t, " New@Example.org ")
		offer, err := v.Offer(v.Ctx, policies.Actor{}, i.Link.Secret)
		if err != nil || offer.Email != "new@example.org" || offer.Project != "vision" || offer.Role != "engineer" || offer.InviterEmail != v.Boss.Email || offer.HasAccount || offer.Closed != nil {
			t.Fatalf("the link offers %+v, %v", offer, err)
		}
		if ends := v.Store.Now().Add(projects.DefaultInvitationLifetime); !i.ExpiresAt.Equal(ends) || !i.Link.ExpiresAt.Equal(ends) {
			t.Errorf("the invitation is shown until %s and its link until %s, want %s", i.ExpiresAt, i.Link.ExpiresAt, ends)
		}
		v.wantNowhere(t, i.Link.Secret)
		for field, in := range map[string]policies.NewUser{"name": {Password: goodPassword}, "password": {Name: "N", Password: "short"}} {
			_, err := v.Accept(v.Ctx, policies.Actor{}, i.Link.Secret, in)
			pooltest.WantError(t, err, models.KindInvalid, field)
		}
		u, err := v.accept(i.Link.Secret)
		pooltest.NoError(t, err)
		if u.Email != "new@example.org" || u.Name != "New" || u.Admin || u.PasswordHash == "" {
			t.Errorf("the account is %+v", u)
		}
		if got := v.Actor(t, u).Grants[v.Vision.ID]; got.Role != v.Engineer.ID {
			t.Errorf("the new member's role is %d, want %d", got.Role, v.Engineer.ID)
		}
		if _, err := v.accounts.SignIn(v.Ctx, "192.0.2.1", u.Email, goodPassword); err != nil {
			t.Error(err)
		}
		_, err = v.accept(i.Link.Secret)
		pooltest.WantError(t, err, models.KindConflict, "already been accepted")
		v.wantState(t, i.ID, models.InvitationAccepted)
		for _, secret := range []string{"", "x", i.Link.Secret + "x", strings.Repeat("x", 100_000), "\x00"} {
			_, err := v.accept(secret)
			pooltest.WantError(t, err, models.KindNotFound, "")
		}
		entries, err := v.Store.Read(v.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 4})
		pooltest.NoError(t, err)
		var lines []string
		for _, e := range entries {
			lines = append(lines, e.Actor+" "+e.Action+" "+e.Object)
		}
		wanted := []string{"new@example.org accept invitation", "new@example.org create member", "new@example.org create account", v.Boss.Email + " create invitation"}
		if !slices.Equal(lines, wanted) {
			t.Errorf("the audit has %q, want %q", lines, wanted)
		}
	})
}

// wantNowhere looks for a secret in all texts that invitations leave.
func (v *invitations) wantNowhere(t *testing.T, secret string) {
	t.Helper()
	db, err := v.Store.SQL()
	pooltest.NoError(t, err)
	for _, column := range []string{"hash FROM one_time_tokens", "body FROM deliveries", "after FROM audit_entries", "problem FROM invitations", "text FROM notifications"} {
		rows, err := db.Query("SELECT " + column)
		pooltest.NoError(t, err)
		for rows.Next() {
			var text *string
			pooltest.NoError(t, rows.Scan(&text))
			if text != nil && strings.Contains(*text, secret) {
				t.Errorf("%s contains the secret", column)
			}
		}
		pooltest.NoError(t, errors.Join(rows.Err(), rows.Close()))
	}
}

// Of concurrent acceptances by several links of one invitation, one succeeds.
func TestInvitationIsAcceptedOnce(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		i := v.to(t, "new@example.org")
		secrets := []string{i.Link.Secret}
		storetest.InTx(t, v.Store, func(q *store.Queries) error {
			mailed, err := policies.NewInvitationLink(q, i.Invitation)
			secrets = append(secrets, mailed.Secret)
			return err
		})
		var kinds storetest.ErrorCounts
		storetest.Concurrently(6, func(n int) {
			server := projects.NewInvitations(v.Service, policies.NewAccounts(v.Store, v.Access))
			_, err := server.Accept(v.Ctx, policies.Actor{}, secrets[n%2], policies.NewUser{Name: fmt.Sprint("New ", n), Password: goodPassword})
			if models.KindOf(err) == models.KindUnauthenticated { // it came after the account
				err = models.Conflict("late")
			}
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindConflict, 5)
		v.wantState(t, i.ID, models.InvitationAccepted)
	})
}

func TestInvitationEnds(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		refused := func(i projects.Invited, word string, state models.InvitationState) {
			t.Helper()
			_, err := v.accept(i.Link.Secret)
			pooltest.WantError(t, err, models.KindConflict, word)
			v.wantState(t, i.ID, state)
			pooltest.WantError(t, v.revoke(v.boss, i.ID), models.KindConflict, word)
		}
		first := v.to(t, "new@example.org")
		second := v.to(t, "new@example.org")
		refused(first, "revoked or replaced", models.InvitationRevoked)
		pooltest.NoError(t, v.revoke(v.boss, second.ID))
		refused(second, "revoked or replaced", models.InvitationRevoked)
		third := v.to(t, "new@example.org")
		v.Clock.Advance(projects.DefaultInvitationLifetime - time.Microsecond)
		v.wantState(t, third.ID, models.InvitationPending)
		v.Clock.Advance(time.Microsecond)
		refused(third, "has expired", models.InvitationExpired)
		// For a month its link tells why, however often what has expired is removed.
		v.Clock.Advance(30*24*time.Hour - time.Microsecond)
		v.removeExpired(t)
		refused(third, "has expired", models.InvitationExpired)
		v.Clock.Advance(time.Microsecond)
		v.removeExpired(t)
		_, err := v.accept(third.Link.Secret)
		pooltest.WantError(t, err, models.KindNotFound, "")
		if _, err := v.Store.Read(v.Ctx).UserByEmail("new@example.org"); models.KindOf(err) != models.KindNotFound {
			t.Errorf("an account was made: %v", err)
		}
	})
}

// An invitation gives what its inviter could give when it is accepted. What stands in
// the way is told to both, once, and the link works again when it is gone.
func TestInvitationNeedsItsInviter(t *testing.T) {
	change := func(v *invitations, role models.Role, permission string, limit models.Resources) error {
		r, err := v.Service.Role(v.Ctx, v.Root, v.Vision.ID, role.ID)
		if err != nil {
			return err
		}
		_, err = v.UpdateRole(v.Ctx, v.Root, v.Vision.ID, role.ID, projects.RoleInput{Name: r.Name, Permission: permission, Limit: limit.Input()})
		return err
	}
	for name, c := range map[string]struct {
		begin, end func(v *invitations) error
		word       string
	}{
		"the inviter was disabled": {
			func(v *invitations) error {
				_, err := v.accounts.UpdateUser(v.Ctx, v.Root, v.Boss.ID, policies.UserChange{Name: "Boss", Disabled: true})
				return err
			}, func(v *invitations) error {
				_, err := v.accounts.UpdateUser(v.Ctx, v.Root, v.Boss.ID, policies.UserChange{Name: "Boss"})
				return err
			}, "can no longer give this access"},
		"the inviter's role lost the permission": {
			func(v *invitations) error { return change(v, v.Lead, "member", v.Lead.Limit) },
			func(v *invitations) error { return change(v, v.Lead, "manager", v.Lead.Limit) }, "can no longer give this access"},
		"the role gained more than the inviter has": {
			func(v *invitations) error { return change(v, v.Engineer, "owner", v.Engineer.Limit) },
			func(v *invitations) error { return change(v, v.Engineer, "member", v.Engineer.Limit) }, "can no longer give this access"},
		"the quota was used up": {
			func(v *invitations) error { return change(v, v.Lead, "manager", pooltest.Cores(140)) },
			func(v *invitations) error { return change(v, v.Lead, "manager", v.Lead.Limit) }, "50 more requested"},
	} {
		t.Run(name, func(t *testing.T) {
			eachInvitations(t, func(t *testing.T, v *invitations) {
				i := v.to(t, "new@example.org")
				pooltest.NoError(t, c.begin(v))
				for range 2 {
					_, err := v.accept(i.Link.Secret)
					if err == nil || !strings.Contains(err.Error(), c.word) {
						t.Fatalf("got %v, want %q", err, c.word)
					}
				}
				shown, err := v.Store.Read(v.Ctx).Invitation(i.ID)
				if err != nil || !strings.Contains(shown.Problem.String(), c.word) || shown.State(v.Store.Now()) != models.InvitationPending {
					t.Errorf("shown as %+v, %v", shown, err)
				}
				told, err := v.Store.Read(v.Ctx).Notifications(v.Boss.ID, store.Page{})
				if err != nil || len(told) != 1 || !strings.Contains(told[0].Text.String(), "new@example.org") {
					t.Errorf("the inviter was told %+v, %v", told, err)
				}
				if _, err := v.Store.Read(v.Ctx).UserByEmail("new@example.org"); models.KindOf(err) != models.KindNotFound {
					t.Errorf("the account is there without the membership: %v", err)
				}
				pooltest.NoError(t, c.end(v))
				_, err = v.accept(i.Link.Secret)
				pooltest.NoError(t, err)
				if shown, err := v.Store.Read(v.Ctx).Invitation(i.ID); err != nil || !shown.Problem.Empty() {
					t.Errorf("afterwards shown as %+v, %v", shown, err)
				}
			})
		})
	}
}

func TestInvitationToADeletedRole(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		guest := v.NewRole(t, v.Vision.ID, "guest", "viewer", models.Resources{})
		list, err := v.Invite(v.Ctx, v.boss, v.Vision.ID, projects.InvitationInput{Emails: []string{"new@example.org"}, RoleID: guest.ID})
		pooltest.NoError(t, err)
		pooltest.NoError(t, v.DeleteRole(v.Ctx, v.Root, v.Vision.ID, guest.ID))
		_, err = v.accept(list[0].Link.Secret)
		pooltest.WantError(t, err, models.KindConflict, "was deleted")
	})
}

// Who has an account accepts as its owner, and as nobody else.
func TestInvitationOfAnAccount(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		i := v.to(t, v.Eve.Email)
		_, err := v.accept(i.Link.Secret)
		pooltest.WantError(t, err, models.KindUnauthenticated, "Sign in")
		_, err = v.Accept(v.Ctx, v.Actor(t, v.Ann), i.Link.Secret, policies.NewUser{})
		pooltest.WantError(t, err, models.KindForbidden, v.Eve.Email)
		eve := v.Actor(t, v.Eve)
		offer, err := v.Offer(v.Ctx, eve, i.Link.Secret)
		if err != nil || !offer.Mine || !offer.HasAccount {
			t.Errorf("the owner is offered %+v, %v", offer, err)
		}
		reader, signedOut := eve, eve
		reader.Scopes, signedOut.Session = []models.TokenScope{models.ScopeRead}, "ended"
		_, err = v.Accept(v.Ctx, reader, i.Link.Secret, policies.NewUser{})
		pooltest.WantError(t, err, models.KindForbidden, "scope")
		_, err = v.Accept(v.Ctx, signedOut, i.Link.Secret, policies.NewUser{})
		pooltest.WantError(t, err, models.KindUnauthenticated)
		v.wantState(t, i.ID, models.InvitationPending)
		u, err := v.Accept(v.Ctx, eve, i.Link.Secret, policies.NewUser{Name: "Other", Password: goodPassword})
		if err != nil || u.ID != v.Eve.ID || u.Name != v.Eve.Name || u.PasswordHash != v.Eve.PasswordHash {
			t.Errorf("accepted as %+v, %v", u, err)
		}
		if !v.Actor(t, v.Eve).MemberOf(v.Vision.ID) {
			t.Error("no member")
		}
		_, err = v.Invite(v.Ctx, v.boss, v.Vision.ID, projects.InvitationInput{Emails: []string{v.Eve.Email}, RoleID: v.Engineer.ID})
		pooltest.WantError(t, err, models.KindInvalid, "already a member")
	})
}

func TestInvitationsAreChecked(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		owner := v.NewRole(t, v.Vision.ID, "chief", "owner", models.Resources{})
		many := make([]string, 101)
		for i := range many {
			many[i] = fmt.Sprintf("many%d@example.org", i)
		}
		for _, c := range []struct {
			in   projects.InvitationInput
			word string
		}{
			{projects.InvitationInput{RoleID: v.Engineer.ID}, "emails: must not be empty"},
			{projects.InvitationInput{Emails: []string{"a@example.org", "bad", "A@example.org", ""}, RoleID: v.Engineer.ID}, "emails[1]: must be an email address"},
			{projects.InvitationInput{Emails: []string{"a@example.org", "A@example.org"}, RoleID: v.Engineer.ID}, "emails[1]: is already in line 1"},
			{projects.InvitationInput{Emails: many, RoleID: v.Engineer.ID}, "emails: must be at most 100"},
			{projects.InvitationInput{Emails: []string{"a@example.org"}, RoleID: 999}, "role_id"},
			{projects.InvitationInput{Emails: []string{"a@example.org"}, RoleID: owner.ID}, "permissions that you do not have"},
			{projects.InvitationInput{Emails: []string{"a@example.org"}, RoleID: v.Engineer.ID, Admin: true}, "admin"},
			{projects.InvitationInput{Emails: many[:3], RoleID: v.Engineer.ID}, "150 more requested for 3 members"},
		} {
			_, err := v.Invite(v.Ctx, v.boss, v.Vision.ID, c.in)
			if err == nil || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%.80v: got %v, want %q", c.in, err, c.word)
			}
		}
		one := projects.InvitationInput{Emails: []string{"a@example.org"}, RoleID: v.Engineer.ID}
		_, err := v.Invite(v.Ctx, v.Actor(t, v.Ann), v.Vision.ID, one)
		pooltest.WantError(t, err, models.KindForbidden, "")
		_, err = v.Invite(v.Ctx, v.Actor(t, v.Eve), v.Vision.ID, one)
		pooltest.WantError(t, err, models.KindNotFound, "")
		_, err = v.Invite(v.Ctx, v.boss, policies.Platform, projects.InvitationInput{Emails: one.Emails})
		pooltest.WantError(t, err, models.KindForbidden, "")
		_, err = v.accounts.UpdateUser(v.Ctx, v.Root, v.Eve.ID, policies.UserChange{Name: "Eve", Disabled: true})
		pooltest.NoError(t, err)
		_, err = v.Invite(v.Ctx, v.boss, v.Vision.ID, projects.InvitationInput{Emails: []string{"a@example.org", v.Eve.Email}, RoleID: v.Engineer.ID})
		pooltest.WantError(t, err, models.KindInvalid, "emails[1]: belongs to a disabled account")
		if list, err := v.List(v.Ctx, v.boss, v.Vision.ID, store.Page{}); err != nil || len(list) != 0 {
			t.Errorf("refused invitations left %+v, %v", list, err)
		}
		i := v.to(t, "a@example.org")
		_, err = v.List(v.Ctx, v.Actor(t, v.Ann), v.Vision.ID, store.Page{})
		pooltest.WantError(t, err, models.KindForbidden, "")
		stranger := v.Actor(t, v.NewPerson(t))
		for _, project := range []int64{v.Vision.ID, 999} {
			_, err = v.List(v.Ctx, stranger, project, store.Page{})
			pooltest.WantError(t, err, models.KindNotFound)
		}
		_, err = v.List(v.Ctx, v.Root, 999, store.Page{})
		pooltest.WantError(t, err, models.KindNotFound)
		pooltest.WantError(t, v.revoke(stranger, i.ID), models.KindNotFound, "")
		pooltest.WantError(t, v.revoke(policies.Actor{}, i.ID), models.KindUnauthenticated, "")
	})
}

func TestInvitationsAreBounded(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		guest := v.NewRole(t, v.Vision.ID, "guest", "viewer", models.Resources{})
		invite := func(prefix string, n int) error {
			in := projects.InvitationInput{RoleID: guest.ID}
			for i := range n {
				in.Emails = append(in.Emails, fmt.Sprintf("%s%d@example.org", prefix, i))
			}
			_, err := v.Invite(v.Ctx, v.boss, v.Vision.ID, in)
			return err
		}
		pooltest.NoError(t, invite("a", 100))
		pooltest.NoError(t, invite("b", 100))
		pooltest.WantError(t, invite("c", 1), models.KindInvalid, "more than 200 pending invitations to this project")
		pooltest.NoError(t, invite("b", 1)) // replaces one
		for range 8 {
			pooltest.NoError(t, invite("b", 1))
		}
		pooltest.WantError(t, invite("b", 1), models.KindInvalid, "was invited by you 10 times in a day")
		v.Clock.Advance(projects.DefaultInvitationLifetime)
		pooltest.NoError(t, invite("c", 100))
		for range 4 {
			pooltest.NoError(t, invite("c", 100))
		}
		v.Clock.Advance(time.Hour)
		err := invite("c", 1)
		pooltest.WantError(t, err, models.KindRateLimited, "more than 500 invitations by you in a day")
		if e := (*models.Error)(nil); errors.As(err, &e) && e.RetryAfter != 23*time.Hour {
			t.Errorf("%v, after %s", err, e.RetryAfter)
		}
	})
}

// How often somebody invites an address does not keep others from it, up to a total.
func TestInvitationsOfAnAddressAreCountedByInviter(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		for i := range 6 {
			inviter := v.Actor(t, storetest.User(t, v.Store, fmt.Sprintf("admin%d@example.org", i), true))
			invite := func() error {
				_, err := v.Invite(v.Ctx, inviter, policies.Platform, projects.InvitationInput{Emails: []string{"guest@example.org"}})
				return err
			}
			for range 10 {
				if i < 5 {
					pooltest.NoError(t, invite())
				}
			}
			want := "was invited by you 10 times in a day, of at most 10"
			if i == 5 {
				want = "was invited 50 times in a day, of at most 50"
			}
			pooltest.WantError(t, invite(), models.KindInvalid, want)
		}
	})
}

// What one inviter has pending is bounded, over projects and the platform.
func TestPendingInvitationsAreBounded(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		invite := func(prefix string, n int) error {
			var in projects.InvitationInput
			for i := range n {
				in.Emails = append(in.Emails, fmt.Sprintf("%s%d@example.org", prefix, i))
			}
			_, err := v.Invite(v.Ctx, v.Root, policies.Platform, in)
			return err
		}
		for _, prefix := range []string{"a", "b", "c", "d"} {
			pooltest.NoError(t, invite(prefix, 100))
		}
		v.Clock.Advance(day)
		pooltest.NoError(t, invite("e", 99))
		_, err := v.Invite(v.Ctx, v.Root, v.Vision.ID, projects.InvitationInput{Emails: []string{"f@example.org"}, RoleID: v.Engineer.ID})
		pooltest.NoError(t, err)
		pooltest.WantError(t, invite("g", 1), models.KindInvalid, "more than 500 pending invitations by you")
		pooltest.NoError(t, invite("a", 1)) // replaces one
	})
}

func TestInvitationToThePlatform(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		admin := v.Actor(t, storetest.User(t, v.Store, "second@example.org", true))
		in := projects.InvitationInput{Emails: []string{"new@example.org"}, Admin: true}
		_, err := v.Invite(v.Ctx, admin, policies.Platform, projects.InvitationInput{Emails: []string{v.Eve.Email}})
		pooltest.WantError(t, err, models.KindInvalid, "already has an account")
		list, err := v.Invite(v.Ctx, admin, policies.Platform, in)
		pooltest.NoError(t, err)
		_, err = v.accounts.UpdateUser(v.Ctx, v.Root, admin.User.ID, policies.UserChange{Name: "Second"})
		pooltest.NoError(t, err)
		_, err = v.accept(list[0].Link.Secret)
		pooltest.WantError(t, err, models.KindForbidden, "can no longer give this access")
		_, err = v.accounts.UpdateUser(v.Ctx, v.Root, admin.User.ID, policies.UserChange{Name: "Second", Admin: true})
		pooltest.NoError(t, err)
		u, err := v.accept(list[0].Link.Secret)
		if err != nil || !u.Admin {
			t.Errorf("accepted as %+v, %v", u, err)
		}
	})
}

// Where the provider links accounts by their address, nobody can choose a password for
// one of its addresses before its owner has signed in.
func TestInvitationOfAProvidersAddress(t *testing.T) {
	eachInvitations(t, func(t *testing.T, v *invitations) {
		v.accounts.Provider = &policies.ProviderRules{Name: "Campus", Domains: []string{"campus.example"}, Link: true}
		i := v.to(t, "ada@campus.example")
		_, err := v.accept(i.Link.Secret)
		pooltest.WantError(t, err, models.KindForbidden, "Campus")
		in, err := v.accounts.SignInWithProvider(v.Ctx, *v.accounts.Provider,
			policies.Assertion{Issuer: "https://id", Subject: "ada", Email: "Ada@campus.example", Verified: true, Name: "Ada"})
		pooltest.NoError(t, err)
		if _, err := v.Accept(v.Ctx, v.Actor(t, in.User), i.Link.Secret, policies.NewUser{}); err != nil || !v.Actor(t, in.User).MemberOf(v.Vision.ID) {
			t.Errorf("accepted after signing in: %v", err)
		}
		_, err = v.accept(v.to(t, "bob@elsewhere.example").Link.Secret)
		pooltest.NoError(t, err)
	})
}
