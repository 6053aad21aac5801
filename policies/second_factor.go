package policies

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// SecondFactorKey is the purpose of the [Key] of the secrets of second factors.
const SecondFactorKey = "weir secrets of second factors"

// enrollmentLifetime is how long a new secret can be confirmed.
const enrollmentLifetime = 15 * time.Minute

// SecondFactorState is the second factor of an account.
type SecondFactorState struct {
	EnabledAt     *time.Time // nil: the account has none
	RecoveryCodes int64      // unused
	Required      bool       // by the sign-in policy
	Available     bool       // the account has a password
}

// SecondFactor returns the second factor of the actor's account.
func (a *Accounts) SecondFactor(ctx context.Context, actor Actor) (s SecondFactorState, err error) {
	if err := actor.CheckUser(); err != nil {
		return s, err
	}
	q, u := a.store.Read(ctx), actor.User
	policy, err := q.SignInPolicy()
	if err != nil {
		return s, err
	}
	s = SecondFactorState{EnabledAt: u.SecondFactorAt, Required: policy.Requires(u), Available: u.PasswordHash != ""}
	s.RecoveryCodes, err = q.CountRecoveryCodes(u.ID)
	return s, err
}

// Enrollment is a new authenticator app that is not confirmed.
type Enrollment struct {
	Secret    string // in base 32
	URI       string // the same for a QR code
	ExpiresAt time.Time
}

// BeginSecondFactor makes a secret for a new authenticator app. A present one remains
// valid until the new one is confirmed.
func (a *Accounts) BeginSecondFactor(ctx context.Context, actor Actor, in Proof) (e Enrollment, err error) {
	err = a.withProof(ctx, actor, in, func(q *store.Queries) error {
		e, err = a.beginEnrollment(q, actor.User)
		return err
	})
	return e, err
}

func (a *Accounts) beginEnrollment(q *store.Queries, u models.User) (Enrollment, error) {
	f, err := q.SecondFactor(u.ID)
	if models.IgnoreNotFound(err) != nil {
		return Enrollment{}, err
	}
	secret, until := newTOTPSecret(), q.Now().Add(enrollmentLifetime)
	f.UserID, f.NewSecret, f.NewUntil = u.ID, a.Key.Encrypt(secret), &until
	return Enrollment{secret, totpURI(u.Email, secret), until.UTC()}, q.PutSecondFactor(f)
}

// Enrollment returns the new authenticator app of the actor, until it is confirmed.
func (a *Accounts) Enrollment(ctx context.Context, actor Actor) (e Enrollment, err error) {
	if err := checkAccountWrite(actor); err != nil {
		return e, err
	}
	f, err := enrolling(a.store.Read(ctx), actor.User.ID)
	if err != nil {
		return e, err
	}
	secret, err := a.readSecret(f.NewSecret)
	return Enrollment{secret, totpURI(actor.User.Email, secret), f.NewUntil.UTC()}, err
}

func enrolling(q *store.Queries, user int64) (models.SecondFactor, error) {
	f, err := q.SecondFactor(user)
	if models.IgnoreNotFound(err) != nil {
		return f, err
	}
	if !f.Enrolling(q.Now()) {
		return f, models.Conflict("Setting up the second factor has expired. Start again.")
	}
	return f, nil
}

// ConfirmSecondFactor enables the new authenticator app with one of its codes. It ends
// all sessions, and returns new recovery codes, of which only the hashes are stored.
func (a *Accounts) ConfirmSecondFactor(ctx context.Context, actor Actor, code string) (codes []string, err error) {
	if err := checkAccountWrite(actor); err != nil {
		return nil, err
	}
	codes, hashes := newRecoveryCodes()
	err = a.countCode(ctx, actor, func(q *store.Queries) error {
		f, err := enrolling(q, actor.User.ID)
		if err != nil {
			return err
		}
		secret, err := a.readSecret(f.NewSecret)
		if err != nil {
			return err
		}
		step, ok := totpStep(secret, plainCode(code), q.Now())
		if !ok {
			return wrongCode()
		}
		return enable(q, actor, models.SecondFactor{UserID: f.UserID, Secret: f.NewSecret, Step: step}, hashes)
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

func enable(q *store.Queries, actor Actor, f models.SecondFactor, hashes []string) error {
	if err := q.PutSecondFactor(f); err != nil {
		return err
	}
	if err := q.SetRecoveryCodes(f.UserID, hashes); err != nil {
		return err
	}
	now := q.Now()
	if err := setSecondFactor(q, f.UserID, &now); err != nil {
		return err
	}
	return tellOfSecondFactor(q, actor, f.UserID, "enable-second-factor", models.Say("A second factor was enabled for your account."))
}

// setSecondFactor records in an account that it has a second factor, or none, and ends its
// sessions.
func setSecondFactor(q *store.Queries, user int64, at *time.Time) error {
	u, err := q.User(user)
	if err != nil {
		return err
	}
	u.SecondFactorAt = at
	u.SessionGeneration++
	return q.UpdateUser(&u)
}

// enrolled returns an account that has a second factor.
func enrolled(q *store.Queries, id int64) (models.User, error) {
	u, err := q.User(id)
	if err == nil && u.SecondFactorAt == nil {
		err = models.Conflict("This account has no second factor.")
	}
	return u, err
}

// DisableSecondFactor removes the second factor of the actor's account, and ends all
// sessions. An account that must have one can only replace it.
func (a *Accounts) DisableSecondFactor(ctx context.Context, actor Actor, in Proof) error {
	return a.withProof(ctx, actor, in, func(q *store.Queries) error {
		u, err := enrolled(q, actor.User.ID)
		if err != nil {
			return err
		}
		policy, err := q.SignInPolicy()
		if err != nil {
			return err
		}
		if policy.Requires(u) {
			return models.Conflict("Your account must have a second factor. To use another authenticator app, set it up instead.")
		}
		return removeSecondFactor(q, actor, u.ID, "disable-second-factor", models.Say("The second factor of your account was disabled."))
	})
}

func removeSecondFactor(q *store.Queries, actor Actor, user int64, action string, text models.Text) error {
	if err := q.DeleteSecondFactor(user); err != nil {
		return err
	}
	if err := setSecondFactor(q, user, nil); err != nil {
		return err
	}
	return tellOfSecondFactor(q, actor, user, action, text)
}

// NewRecoveryCodes replaces the recovery codes of the actor's account, and returns the
// new ones, of which only the hashes are stored. As each can replace a code of the app,
// they need one, too.
func (a *Accounts) NewRecoveryCodes(ctx context.Context, actor Actor, in Proof) ([]string, error) {
	codes, hashes := newRecoveryCodes()
	err := a.withProof(ctx, actor, in, func(q *store.Queries) error {
		u, err := enrolled(q, actor.User.ID)
		if err != nil {
			return err
		}
		if err := q.SetRecoveryCodes(u.ID, hashes); err != nil {
			return err
		}
		return tellOfSecondFactor(q, actor, u.ID, "create-recovery-codes", models.Say("The recovery codes of your account were replaced."))
	})
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// ResetSecondFactor removes the second factor and all passkeys of another account, whose
// person has lost them, and ends the account's sessions.
func (a *Accounts) ResetSecondFactor(ctx context.Context, actor Actor, id int64) error {
	return a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		if id == actor.User.ID {
			return models.Conflict("This is your own account. Disable its second factor on your account page.")
		}
		u, err := q.User(id)
		if err != nil {
			return err
		}
		n, err := q.DeletePasskeysOf(u.ID)
		if err != nil {
			return err
		}
		if u.SecondFactorAt == nil && n == 0 {
			return models.Conflict("This account has neither a second factor nor a passkey.")
		}
		return removeSecondFactor(q, actor, u.ID, "reset-second-factor",
			models.Say("An administrator removed the second factor and the passkeys of your account. Set up new ones."))
	})
}
