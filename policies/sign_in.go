package policies

import (
	"context"

	"weir/models"
)

// SignIn checks an email address and a password; client is a network address, and devices
// are what the browser keeps of [Accounts.Device]. The error is the same for an unknown
// email address, a wrong password and a disabled account.
func (a *Accounts) SignIn(ctx context.Context, client, email, password string, devices ...string) (models.User, error) {
	var p models.Problems
	email = models.CheckEmail("email", email, &p)
	if len(p) > 0 {
		return models.User{}, wrongPassword()
	}
	u, err := a.store.Read(ctx).UserByEmail(email)
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return models.User{}, err
	}
	client = network(client)
	bounds := boundsOf(email, client, a.knownDevice(u, devices))
	if wait := a.failures.take(a.store.Now(), bounds...); wait > 0 {
		return models.User{}, tooManyAttempts(wait)
	}
	// A password is hashed for unknown email addresses too, so that the time does not
	// reveal them.
	ok, hashErr := a.verify(ctx, client, password, u.PasswordHash)
	if hashErr != nil {
		a.failures.undo(bounds...)
		return models.User{}, hashErr
	}
	if !ok || u.Disabled {
		return models.User{}, wrongPassword()
	}
	a.failures.clear(bounds...)
	return u, nil
}

func wrongPassword() error {
	return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Incorrect email address or password.")}
}
