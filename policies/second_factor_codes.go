package policies

import (
	"context"

	"weir/models"
	"weir/models/store"
)

// codesPerDay are the attempts at codes for an account in a day, from all clients, at each
// server since its start: by guessing, one in 3000 accounts whose passwords are known is entered within it.
const codesPerDay = 100

func wrongCode() error {
	return models.Invalid("code", "is not valid now; each code works once and for about a minute")
}

// Proof is what a person proves before the second factor of the own account changes.
type Proof struct {
	Password string `json:"password" maxLength:"1000" doc:"current password"`
	Code     string `json:"code,omitempty" maxLength:"100" doc:"code of the app, or recovery code; required with a second factor"`
}

// withProof runs fn in a transaction after the password, and a code if a second factor is
// enabled.
func (a *Accounts) withProof(ctx context.Context, actor Actor, in Proof, fn func(*store.Queries) error) error {
	if err := a.checkPerson(ctx, actor, "password", in.Password); err != nil {
		return err
	}
	if actor.User.SecondFactorAt == nil {
		return a.access.WriteSelf(ctx, a.store, actor, fn)
	}
	return a.withCode(ctx, actor, in.Code, fn)
}

// withCode runs fn in a transaction that accepts a code of the actor's account.
func (a *Accounts) withCode(ctx context.Context, actor Actor, code string, fn func(*store.Queries) error) error {
	return a.countCode(ctx, actor, func(q *store.Queries) error {
		if err := a.acceptCode(q, actor, plainCode(code)); err != nil {
			return err
		}
		return fn(q)
	})
}

// countCode counts an attempt at a code for the actor's account before it is made by try, in a
// transaction. A right password does not forget such attempts.
func (a *Accounts) countCode(ctx context.Context, actor Actor, try func(*store.Queries) error) error {
	now, email := a.store.Now(), actor.User.Email
	bounds, daily := boundsOf(email, clientOf(ctx), ""), bound{[2]string{email, everyClient}, codesPerDay}
	wait := a.codes.take(now, bounds...)
	if wait == 0 {
		wait = a.dailyCodes.take(now, daily)
	}
	if wait > 0 {
		return tooManyAttempts(wait)
	}
	err := a.access.WriteSelf(ctx, a.store, actor, try)
	switch models.KindOf(err) {
	case "":
		a.codes.clear(bounds...)
		a.dailyCodes.undo(daily)
	case models.KindInternal, models.KindUnavailable:
		a.codes.undo(bounds...)
		a.dailyCodes.undo(daily)
	}
	return err
}

// acceptCode accepts a code of the authenticator app, or a recovery code, once.
func (a *Accounts) acceptCode(q *store.Queries, actor Actor, code string) error {
	f, err := q.SecondFactor(actor.User.ID)
	if err != nil {
		return models.NotFoundAs(err, models.Conflict("This account has no second factor."))
	}
	if !isTOTP(code) {
		return acceptRecoveryCode(q, actor, code)
	}
	secret, err := a.readSecret(f.Secret)
	if err != nil {
		return err
	}
	step, ok := totpStep(secret, code, q.Now())
	if ok {
		ok, err = q.AcceptStep(f.UserID, step)
	}
	if err == nil && !ok {
		err = wrongCode()
	}
	return err
}

func acceptRecoveryCode(q *store.Queries, actor Actor, code string) error {
	user := actor.User.ID
	ok, err := q.TakeRecoveryCode(user, HashSecret(code))
	if err != nil {
		return err
	}
	if !ok {
		return wrongCode()
	}
	n, err := q.CountRecoveryCodes(user)
	if err != nil {
		return err
	}
	return tellOfSecondFactor(q, actor, user, "use-recovery-code", models.Say("A recovery code of your account was used. %d remain.", n))
}

// readSecret decrypts the secret of an authenticator app.
func (a *Accounts) readSecret(encrypted string) (string, error) {
	secret, err := a.Key.Decrypt(encrypted)
	if err != nil {
		return "", models.Unavailable(err,
			"The authenticator app cannot be verified. Use a recovery code, or have an administrator reset the second factor.")
	}
	return secret, nil
}
