package policies

import (
	"cmp"
	"context"
	"sync"
	"unicode/utf8"

	"weir/models"
	"weir/models/store"
)

// ResetPassword sets an account's password and ends its sessions and tokens.
// Accounts that sign in with an identity provider have no password.
func (a *Accounts) ResetPassword(ctx context.Context, actor Actor, id int64, password string) error {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil {
		return err
	}
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return err
	}
	return a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error { return recoverAccount(q, actor, id, hash) })
}

// ChangePassword replaces the actor's own password, which ends all sessions; the
// caller signs in again.
func (a *Accounts) ChangePassword(ctx context.Context, actor Actor, current, password string) error {
	if err := a.checkPerson(ctx, actor, "current", current); err != nil {
		return err
	}
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return err
	}
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error { return setPassword(q, actor, actor.User.ID, hash) })
}

// checkPerson refuses a field of the input that is not the password of the actor's own account, which
// the actor may change.
func (a *Accounts) checkPerson(ctx context.Context, actor Actor, field, password string) error {
	if err := checkAccountWrite(actor); err != nil {
		return err
	}
	if err := requirePassword(a.store.Read(ctx), actor.User); err != nil {
		return err
	}
	own := bound{[2]string{actor.User.Email, ""}, failureLimit} // what strangers try locks out nobody who has signed in
	if wait := a.failures.take(a.store.Now(), own); wait > 0 {
		return tooManyAttempts(wait)
	}
	ok, err := a.verify(ctx, clientOf(ctx), password, actor.User.PasswordHash)
	if err != nil {
		a.failures.undo(own)
		return err
	}
	if !ok {
		return models.Invalid(field, "is not your current password")
	}
	a.failures.clear(own)
	return nil
}

// requirePassword refuses accounts that sign in with an identity provider only.
func requirePassword(q *store.Queries, u models.User) error {
	if u.IsService() {
		return models.Conflict("A service account has no password and does not sign in.")
	}
	if u.PasswordHash != "" {
		return nil
	}
	list, err := q.Identities(u.ID)
	if err == nil && len(list) > 0 {
		err = models.Conflict("This account signs in through an identity provider (%s) and has no password.", list[0].Issuer)
	}
	return err
}

// newHash checks and hashes a new password. It takes too long for a transaction.
func (a *Accounts) newHash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	return a.hash(ctx, password)
}

// CheckPassword checks the rules for a new password.
func CheckPassword(password string) error {
	var p models.Problems
	checkPasswordRules("password", password, &p)
	return p.Err()
}

func checkPasswordRules(field, password string, p *models.Problems) {
	switch n := utf8.RuneCountInString(password); {
	case n == 0:
		p.Add(field, "must not be empty")
	case n < 10:
		p.Add(field, "must be at least %d characters; has %d", 10, n)
	case len(password) > 1000:
		p.Add(field, "must be at most %d characters; has %d", 1000, n)
	}
}

// recoverAccount sets a password without the present one. It removes the passkeys:
// whoever knew the last password may have added some.
func recoverAccount(q *store.Queries, actor Actor, id int64, hash string) error {
	if err := setPassword(q, actor, id, hash); err != nil {
		return err
	}
	_, err := q.DeletePasskeysOf(id)
	return err
}

func setPassword(q *store.Queries, actor Actor, id int64, hash string) error {
	u, err := q.User(id)
	if err != nil {
		return err
	}
	if err := requirePassword(q, u); err != nil {
		return err
	}
	u.PasswordHash = hash
	u.SessionGeneration++
	if err := q.UpdateUser(&u); err != nil {
		return err
	}
	if err := q.DeleteTokensOf(id); err != nil {
		return err
	}
	return actor.Audit(q, Change{Action: "reset-password", Object: "account", ID: id})
}

func (a *Accounts) verify(ctx context.Context, client, password, hash string) (ok bool, err error) {
	err = a.hashing.do(ctx, client, func() { ok = checkPassword(password, cmp.Or(hash, dummyHash())) })
	return ok, err
}

// dummyHash is compared with the password for unknown email addresses.
var dummyHash = sync.OnceValue(func() string { return hashPassword(NewSecret()) })

func (a *Accounts) hash(ctx context.Context, password string) (hash string, err error) {
	err = a.hashing.do(ctx, clientOf(ctx), func() { hash = hashPassword(password) })
	return hash, err
}
