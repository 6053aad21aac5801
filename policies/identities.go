package policies

import (
	"context"
	"errors"
	"slices"

	"weir/models"
)

// signIn is who changes accounts as their providers say.
var signIn = System("sign-in")

// Arrival is somebody who has signed in by a provider.
type Arrival struct {
	User     models.User
	Identity models.Identity
	Notes    []models.Text // for the person: what was not done, and why
}

// SignInBy lets in whom the provider vouches for, under the rules. Who comes
// for the first time gets an account without a password; later the issuer and
// the subject alone tell who it is. An administrator's right that came by a
// group goes with it, and all sessions of the account with the right, but the
// last administrator stays one.
func (a *Accounts) SignInBy(ctx context.Context, rules ProviderRules, as Assertion) (in Arrival, err error) {
	email, err := rules.admit(as)
	if err != nil {
		return in, err
	}
	for range 3 { // somebody else may be faster: this person in another window, an administrator
		err = a.store.Revoking(ctx, func(q *models.Queries) error {
			in = Arrival{}
			return a.arrive(q, rules, as, email, &in)
		})
		if !models.Duplicate(err) && !errors.Is(err, errFaster) && !errors.Is(err, models.ErrStale) {
			break
		}
	}
	return in, err
}

// errFaster says that an account appeared in the middle.
var errFaster = errors.New("the account is there already")

func (a *Accounts) arrive(q *models.Queries, rules ProviderRules, as Assertion, email string, in *Arrival) (err error) {
	in.Identity, err = q.IdentityBySubject(as.Issuer, as.Subject)
	if err == nil {
		in.User, err = q.User(in.Identity.UserID)
	} else if models.KindOf(err) == models.KindNotFound {
		err = a.newcomer(q, rules, as, email, in)
	}
	if err != nil {
		return err
	}
	if in.User.Disabled {
		return models.Forbidden("Your account is disabled. An administrator of this Weir can enable it.")
	}
	if err := a.follow(q, rules, as, email, in); err != nil {
		return err
	}
	in.Identity.Email, in.Identity.SeenAt = email, q.Now()
	return q.UpdateIdentity(&in.Identity)
}

// newcomer finds or makes the account of a person who has not come before.
func (a *Accounts) newcomer(q *models.Queries, rules ProviderRules, as Assertion, email string, in *Arrival) (err error) {
	now := q.Now()
	in.User, err = q.UserByEmail(email)
	switch {
	case models.KindOf(err) == models.KindNotFound && err != nil:
		in.User = models.User{Email: email, Name: nameOf(as, email), SessionEpoch: 1, Version: 1, CreatedAt: now}
		if err := a.insert(q, signIn, &in.User); err != nil {
			if models.KindOf(err) == models.KindConflict {
				return errFaster
			}
			return err
		}
	case err != nil:
		return err
	default:
		if err := mayLink(q, rules, as, in.User); err != nil {
			return err
		}
	}
	in.Identity = models.Identity{UserID: in.User.ID, Issuer: as.Issuer, Subject: as.Subject, Email: email, CreatedAt: now, SeenAt: now}
	if err := q.CreateIdentity(&in.Identity); err != nil {
		return err
	}
	return signIn.Audit(q, Change{Action: "create", Object: "identity", ID: in.Identity.ID, After: auditIdentity(in.Identity, in.User)})
}

// mayLink refuses to give an account that is there to somebody who comes by
// its address, unless that is allowed and nobody else from there has it.
func mayLink(q *models.Queries, rules ProviderRules, as Assertion, u models.User) error {
	list, err := q.Identities(u.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(i models.Identity) bool { return i.Issuer == as.Issuer })
	switch {
	case at >= 0 && list[at].Subject == as.Subject:
		return errFaster
	case !rules.Link:
		return models.Forbidden("There is an account here for %s already, which does not sign in with %s. Use its password, or ask an administrator of this Weir.",
			u.Email, rules.Name)
	case at >= 0:
		return models.Forbidden("The account for %s belongs to somebody else at %s. An administrator of this Weir can take that away.", u.Email, rules.Name)
	}
	return nil
}

// follow brings the account into line with what the provider says now.
func (a *Accounts) follow(q *models.Queries, rules ProviderRules, as Assertion, email string, in *Arrival) error {
	wanted := rules.admin(as.Groups)
	if wanted != in.Identity.Admin {
		// Only then may administrators change, which is what the lock is for.
		if err := q.LockUsers(); err != nil {
			return err
		}
		var err error
		if in.User, err = q.User(in.User.ID); err != nil {
			return err
		}
	}
	before := in.User
	if err := a.followAdmin(q, wanted, in); err != nil {
		return err
	}
	if err := followEmail(q, email, in); err != nil {
		return err
	}
	if in.User == before {
		return nil
	}
	if err := q.UpdateUser(&in.User); err != nil {
		return err
	}
	return signIn.Audit(q, Change{Action: "update", Object: "account", ID: in.User.ID, Before: auditUser(before), After: auditUser(in.User)})
}

// followAdmin gives and takes what groups say of administrators. The right of
// one whom somebody here made an administrator is not a group's to take.
func (a *Accounts) followAdmin(q *models.Queries, wanted bool, in *Arrival) error {
	switch {
	case wanted && !in.User.Admin:
		in.User.Admin, in.Identity.Admin = true, true
	case !wanted && in.Identity.Admin && in.User.Admin:
		after := in.User
		after.Admin = false
		if err := a.keepAdministrator(q, in.User, after); models.KindOf(err) == models.KindConflict && err != nil {
			in.Notes = append(in.Notes, models.Say("You are in no group of administrators any more, but the last administrator here. Make somebody else an administrator."))
			return nil
		} else if err != nil {
			return err
		}
		in.User.Admin, in.Identity.Admin = false, false
		in.User.SessionEpoch++
	case !wanted:
		in.Identity.Admin = false // an administrator took the right already
	}
	return nil
}

// followEmail keeps the address of an account that has no other way in as the
// provider says it, unless somebody else here has it.
func followEmail(q *models.Queries, email string, in *Arrival) error {
	if in.User.PasswordHash != "" || in.User.Email == email {
		return nil
	}
	_, err := q.UserByEmail(email)
	switch {
	case err == nil:
		in.Notes = append(in.Notes, models.Say("Your address is %s now, which another account here has; yours stays %s.", email, in.User.Email))
		return nil
	case models.KindOf(err) != models.KindNotFound:
		return err
	}
	in.User.Email = email
	return nil
}

// Identities lists who may sign in to an account by a provider, for its owner
// and for administrators.
func (a *Accounts) Identities(ctx context.Context, actor Actor, user int64) ([]models.Identity, error) {
	if actor.User.ID != user {
		if err := a.access.Check(actor, Platform, "user", "read"); err != nil {
			return nil, err
		}
	}
	return a.store.Read(ctx).Identities(user)
}

// DeleteIdentity takes a provider's way into an account away and ends its
// sessions; only administrators may. What groups gave the account stays. The
// last administrator keeps a way in.
func (a *Accounts) DeleteIdentity(ctx context.Context, actor Actor, user, id int64) error {
	if err := a.access.Check(actor, Platform, "user", "write"); err != nil {
		return err
	}
	return a.access.Write(ctx, a.store, actor, Need{Platform, "user", "write", 0}, func(q *models.Queries) error {
		if err := q.LockUsers(); err != nil {
			return err
		}
		u, err := q.User(user)
		if err != nil {
			return err
		}
		i, err := q.DeleteIdentity(user, id)
		if err != nil {
			return err
		}
		if u.PasswordHash == "" {
			without := u
			without.Disabled = true
			if err := a.keepAdministrator(q, u, without); err != nil {
				return err
			}
		}
		u.SessionEpoch++
		if err := q.UpdateUser(&u); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "delete", Object: "identity", ID: id, Before: auditIdentity(i, u)})
	})
}

// withoutPassword refuses to do with a password what only concerns accounts
// that have one.
func withoutPassword(q *models.Queries, u models.User) error {
	if u.PasswordHash != "" {
		return nil
	}
	list, err := q.Identities(u.ID)
	if err == nil && len(list) > 0 {
		err = models.Conflict("This account signs in by a provider (%s) and has no password.", list[0].Issuer)
	}
	return err
}

func auditIdentity(i models.Identity, u models.User) map[string]any {
	return map[string]any{"account": u.Email, "issuer": i.Issuer, "subject": i.Subject, "email": i.Email}
}
