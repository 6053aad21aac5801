package policies

import (
	"context"
	"errors"
	"slices"

	"weir/models"
	"weir/models/store"
)

// signIn is the actor of changes that follow from assertions.
var signIn = System("sign-in")

// SignInResult is the result of a sign-in with an identity provider.
type SignInResult struct {
	User     models.User
	Identity models.Identity
	Notes    []models.Text // messages to the user: what was not done, and why
}

// SignInWithProvider signs in a user of an identity provider. The first time it creates an
// account without a password, or links one; later the user is identified by
// issuer and subject only. Administration that was granted by a group is revoked
// with it, which ends all sessions, except for the last administrator.
func (a *Accounts) SignInWithProvider(ctx context.Context, rules ProviderRules, as Assertion) (in SignInResult, err error) {
	email, err := rules.admit(as)
	if err != nil {
		return in, err
	}
	for range 3 { // concurrent changes: the same user in another window, an administrator
		err = a.store.InRevokingTx(ctx, func(q *store.Queries) error {
			in = SignInResult{}
			return a.signInBy(q, rules, as, email, &in)
		})
		if !store.Duplicate(err) && !errors.Is(err, errConcurrentSignIn) && !errors.Is(err, models.ErrStale) {
			break
		}
	}
	return in, err
}

// errConcurrentSignIn means that the account was created meanwhile.
var errConcurrentSignIn = errors.New("the account is there already")

func (a *Accounts) signInBy(q *store.Queries, rules ProviderRules, as Assertion, email string, in *SignInResult) (err error) {
	in.Identity, err = q.IdentityBySubject(as.Issuer, as.Subject)
	if err == nil {
		in.User, err = q.User(in.Identity.UserID)
	} else if models.KindOf(err) == models.KindNotFound {
		err = a.firstSignIn(q, rules, as, email, in)
	}
	if err != nil {
		return err
	}
	if in.User.Disabled {
		return models.Forbidden("Your account is disabled. Contact an administrator to enable it.")
	}
	if err := a.applyAssertion(q, rules, as, email, in); err != nil {
		return err
	}
	in.Identity.Email, in.Identity.SeenAt = email, q.Now()
	return q.UpdateIdentity(&in.Identity)
}

// firstSignIn links or creates the account of a new identity.
func (a *Accounts) firstSignIn(q *store.Queries, rules ProviderRules, as Assertion, email string, in *SignInResult) (err error) {
	now := q.Now()
	in.User, err = q.UserByEmail(email)
	switch {
	case models.KindOf(err) == models.KindNotFound:
		in.User = models.User{Email: email, Name: nameOf(as, email), SessionGeneration: 1, Version: 1, CreatedAt: now}
		if err := a.AddAccount(q, signIn, &in.User); err != nil {
			if models.KindOf(err) == models.KindConflict {
				return errConcurrentSignIn
			}
			return err
		}
	case err != nil:
		return err
	default:
		if err := checkLink(q, rules, as, in.User); err != nil {
			return err
		}
	}
	in.Identity = models.Identity{UserID: in.User.ID, Issuer: as.Issuer, Subject: as.Subject, Email: email, CreatedAt: now, SeenAt: now}
	if err := q.CreateIdentity(&in.Identity); err != nil {
		return err
	}
	return signIn.Audit(q, Change{Action: "create", Object: "identity", ID: in.Identity.ID, After: auditIdentity(in.Identity, in.User)})
}

// checkLink refuses to link an existing account with the same email, unless the
// rules allow it and no other subject of the issuer is linked.
func checkLink(q *store.Queries, rules ProviderRules, as Assertion, u models.User) error {
	list, err := q.Identities(u.ID)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(i models.Identity) bool { return i.Issuer == as.Issuer })
	switch {
	case at >= 0 && list[at].Subject == as.Subject:
		return errConcurrentSignIn
	case !rules.Link:
		return models.Forbidden(
			"An account for %s already exists but is not linked to %s. Sign in with its password, or contact an administrator.",
			u.Email, rules.Name)
	case u.EmailUnconfirmed: // its creator may be somebody else, who would share it
		return models.Forbidden("An account for %s exists, but its address has not been confirmed. Contact an administrator.", u.Email)
	case at >= 0:
		return models.Forbidden("The account for %s is linked to another identity at %s. Ask an administrator to unlink it.", u.Email, rules.Name)
	}
	return nil
}

// applyAssertion updates the account and its rights.
func (a *Accounts) applyAssertion(q *store.Queries, rules ProviderRules, as Assertion, email string, in *SignInResult) error {
	wanted := rules.admin(as.Groups)
	if wanted != in.Identity.Admin {
		// Only then can administrators change, which needs the lock.
		if err := q.LockUsers(); err != nil {
			return err
		}
		var err error
		if in.User, err = q.User(in.User.ID); err != nil {
			return err
		}
	}
	before := in.User
	if err := a.applyAdmin(q, wanted, in); err != nil {
		return err
	}
	if err := applyEmail(q, email, in); err != nil {
		return err
	}
	if in.User == before {
		return nil
	}
	if err := q.UpdateUser(&in.User); err != nil {
		return err
	}
	if err := endVisitsWithoutFactor(q, before, in.User); err != nil {
		return err
	}
	return signIn.Audit(q, Change{Action: "update", Object: "account", ID: in.User.ID, Before: auditUser(before), After: auditUser(in.User)})
}

// applyAdmin grants and revokes administration by groups. Administration that was
// not granted by a group is never revoked by one.
func (a *Accounts) applyAdmin(q *store.Queries, wanted bool, in *SignInResult) error {
	switch {
	case wanted && !in.User.Admin:
		in.User.Admin, in.Identity.Admin = true, true
	case !wanted && in.Identity.Admin && in.User.Admin:
		after := in.User
		after.Admin = false
		if err := a.checkLastAdministrator(q, in.User, after); models.KindOf(err) == models.KindConflict {
			in.Notes = append(in.Notes, models.Say(
				"You are no longer in an administrator group, but you are the last administrator. Make someone else an administrator."))
			return nil
		} else if err != nil {
			return err
		}
		in.User.Admin, in.Identity.Admin = false, false
		in.User.SessionGeneration++
	case !wanted:
		in.Identity.Admin = false // an administrator has revoked it
	}
	return nil
}

// applyEmail updates the email of an account without a password, unless another
// account has it.
func applyEmail(q *store.Queries, email string, in *SignInResult) error {
	if in.User.PasswordHash != "" || in.User.Email == email {
		return nil
	}
	_, err := q.UserByEmail(email)
	switch {
	case err == nil:
		in.Notes = append(in.Notes, models.Say(
			"Your identity provider now reports the email address %s, which another account already uses. Your address remains %s.",
			email, in.User.Email))
		return nil
	case models.KindOf(err) != models.KindNotFound:
		return err
	}
	in.User.Email = email
	return nil
}

// Identities lists an account's identities, for its owner and administrators.
func (a *Accounts) Identities(ctx context.Context, actor Actor, user int64) ([]models.Identity, error) {
	if err := a.access.CheckOwned(actor, user, Platform, UserRead); err != nil {
		return nil, err
	}
	return a.store.Read(ctx).Identities(user)
}

// IdentityForm returns an account and one of its identities, for a form that
// deletes the identity.
func (a *Accounts) IdentityForm(ctx context.Context, actor Actor, user, id int64) (u models.User, identity models.Identity, err error) {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil {
		return u, identity, err
	}
	if u, err = a.User(ctx, actor, user); err != nil {
		return u, identity, err
	}
	list, err := a.Identities(ctx, actor, user)
	if err != nil {
		return u, identity, err
	}
	if i := slices.IndexFunc(list, func(i models.Identity) bool { return i.ID == id }); i >= 0 {
		return u, list[i], nil
	}
	return u, identity, models.NotFound("identity")
}

// DeleteIdentity removes an identity from an account and ends its sessions. Rights
// from groups stay. The last administrator cannot lose the only way to sign in.
func (a *Accounts) DeleteIdentity(ctx context.Context, actor Actor, user, id int64) error {
	return a.writeUsers(ctx, actor, func(q *store.Queries) error {
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
			if err := a.checkLastAdministrator(q, u, without); err != nil {
				return err
			}
		}
		u.SessionGeneration++
		if err := q.UpdateUser(&u); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "delete", Object: "identity", ID: id, Before: auditIdentity(i, u)})
	})
}

func auditIdentity(i models.Identity, u models.User) map[string]any {
	return map[string]any{"account": u.Email, "issuer": i.Issuer, "subject": i.Subject, "email": i.Email}
}
