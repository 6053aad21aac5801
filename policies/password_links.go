package policies

import (
	"cmp"
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// DefaultPasswordLinkLifetime is how long a link for a new password is valid.
const DefaultPasswordLinkLifetime = time.Hour

// Attempts to get a password link by email, in failureWindow and in a day.
const (
	resetsPerAddress = 3
	resetsPerClient  = 20
	resetsPerDay     = 6 // for an address
	clientPerDay     = 500
)

// viaPasswordLink is how its actor was authenticated, in the audit.
const viaPasswordLink = "password link"

// CreatePasswordLink makes a one-time link with which the person of an account sets a
// new password. Accounts whose identity provider owns the password get none.
func (a *Accounts) CreatePasswordLink(ctx context.Context, actor Actor, id int64) (l Link, err error) {
	err = a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		u, err := q.User(id)
		if err != nil {
			return err
		}
		if u.Disabled {
			return models.Conflict("This account is disabled. Enable it first.")
		}
		if l, err = a.newPasswordLink(q, u); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "create-password-link", Object: "account", ID: id, After: map[string]any{"expires_at": l.ExpiresAt}})
	})
	return l, err
}

func (a *Accounts) newPasswordLink(q *store.Queries, u models.User) (Link, error) {
	if err := a.requireOwnPassword(q, u); err != nil {
		return Link{}, err
	}
	until := q.Now().Add(cmp.Or(a.PasswordLinkLifetime, DefaultPasswordLinkLifetime))
	return newLink(q, PasswordLink, models.OneTimeToken{UserID: &u.ID, ExpiresAt: until})
}

// requireOwnPassword refuses accounts whose password the identity provider owns: those
// that have signed in with it and have no password here, and those without a password
// whose address the provider is configured to link.
func (a *Accounts) requireOwnPassword(q *store.Queries, u models.User) error {
	if u.PasswordHash == "" && a.Provider.Owns(u.Email) {
		return models.Conflict("This account signs in with %s and has no password.", a.Provider.Name)
	}
	return requirePassword(q, u)
}

// ForgotPassword sends a one-time link to an address, if an account has it. Whether
// one has is found out when the email is sent, so that neither the answer nor its time
// reveals it. Requests are limited for each address, and for each client by its Origin.
func (a *Accounts) ForgotPassword(ctx context.Context, email string) error {
	if !a.store.Mail {
		return models.Conflict("This portal does not send email. Ask an administrator for a link to set a new password.")
	}
	var p models.Problems
	email = models.CheckEmail("email", email, &p)
	if err := p.Err(); err != nil {
		return err
	}
	now, address := a.store.Now(), [2]string{email, everyClient}
	wait := a.resets.take(now, bound{address, resetsPerAddress}, bound{[2]string{everyAddress, clientOf(ctx)}, resetsPerClient})
	if wait == 0 {
		wait = a.dailyResets.take(now, bound{address, resetsPerDay}, bound{[2]string{everyAddress, clientOf(ctx)}, clientPerDay})
	}
	if wait > 0 {
		return tooManyAttempts(wait)
	}
	return a.store.InTx(ctx, func(q *store.Queries) error {
		return q.QueueLetter(models.LetterPassword, models.Letter{Address: email})
	})
}

// CheckPasswordLink finds the account of a link that can be used now.
func (a *Accounts) CheckPasswordLink(ctx context.Context, secret string) (models.User, error) {
	q := a.store.Read(ctx)
	t, err := q.OneTimeToken(HashSecret(secret), string(PasswordLink), q.Now())
	if err != nil {
		return models.User{}, err
	}
	return q.User(*t.UserID)
}

// SetPasswordByLink sets a new password with a link. It ends the sessions of the
// account, revokes its tokens, and ends its other links.
func (a *Accounts) SetPasswordByLink(ctx context.Context, secret, password string) (u models.User, err error) {
	if u, err = a.CheckPasswordLink(ctx, secret); err != nil {
		return u, err
	}
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return u, err
	}
	err = a.store.InRevokingTx(ctx, func(q *store.Queries) error {
		t, err := q.TakeOneTimeToken(HashSecret(secret), string(PasswordLink), q.Now())
		if err != nil {
			return err
		}
		if u, err = q.User(*t.UserID); err != nil {
			return err
		}
		if u.Disabled {
			return models.NotFound("link")
		}
		if err := a.requireOwnPassword(q, u); err != nil {
			return err
		}
		if err := recoverAccount(q, Actor{User: u, Via: viaPasswordLink}, u.ID, hash); err != nil {
			return err
		}
		u, err = q.User(u.ID)
		return err
	})
	return u, err
}
