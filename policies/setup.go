package policies

import (
	"cmp"
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// SetupToken creates the single-use secret for creating the first administrator
// and invalidates earlier ones. It returns "" when there is an account.
func (a *Accounts) SetupToken(ctx context.Context, lifetime time.Duration) (string, error) {
	var l Link
	err := a.store.InTx(ctx, func(q *store.Queries) error {
		l = Link{}
		if n, err := q.CountUsers(); err != nil || n > 0 {
			return err
		}
		err := q.DeleteOneTimeTokens(string(SetupLink))
		if err == nil {
			l, err = newLink(q, SetupLink, models.OneTimeToken{ExpiresAt: q.Now().Add(lifetime)})
		}
		return err
	})
	return l.Secret, err
}

// CheckSetupToken returns an error unless the setup token is valid.
func (a *Accounts) CheckSetupToken(ctx context.Context, token string) error {
	_, err := a.store.Read(ctx).OneTimeToken(HashSecret(token), string(SetupLink), a.store.Now())
	return err
}

// Setup creates the first administrator with the secret of SetupToken.
func (a *Accounts) Setup(ctx context.Context, token string, in NewUser) (models.User, error) {
	in.Admin = true
	if err := a.CheckSetupToken(ctx, token); err != nil {
		return models.User{}, err
	}
	u, err := a.NewAccount(ctx, in)
	if err != nil {
		return u, err
	}
	err = a.store.InTx(ctx, func(q *store.Queries) error {
		u.ID = 0
		if _, err := q.TakeOneTimeToken(HashSecret(token), string(SetupLink), q.Now()); err != nil {
			return err
		}
		if n, err := q.CountUsers(); err != nil || n > 0 {
			return cmp.Or[error](err, models.NotFound("link"))
		}
		return a.AddAccount(q, System("setup"), &u)
	})
	return u, err
}
