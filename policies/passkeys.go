package policies

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies/passkeys"
)

// PasskeyKey is the purpose of the [Key] of ceremonies of passkeys.
const PasskeyKey = "weir ceremonies of passkeys"

const (
	// MaxPasskeys is how many passkeys an account may have.
	MaxPasskeys = 20
	// passkeySignInLifetime is how long a ceremony of signing in may take.
	passkeySignInLifetime = 5 * time.Minute
	userHandleBytes       = 32
)

// PasskeyCeremony is a ceremony in which a browser creates a passkey or signs in with one.
type PasskeyCeremony struct {
	Options   json.RawMessage // for the browser
	Ceremony  string          // to be returned with the result; encrypted
	ExpiresAt time.Time
}

// Passkeys lists an account's passkeys, oldest first, for its owner and administrators.
func (a *Accounts) Passkeys(ctx context.Context, actor Actor, user int64) ([]models.Passkey, error) {
	if err := a.access.CheckOwned(actor, user, Platform, UserRead); err != nil {
		return nil, err
	}
	return a.store.Read(ctx).Passkeys(user)
}

// relyingParty is the portal, if browsers have passkeys at its origin.
func (a *Accounts) relyingParty() (*passkeys.RelyingParty, error) {
	if a.RelyingParty == nil {
		return nil, models.Conflict("Browsers offer passkeys only over https under a host name, or at localhost.")
	}
	return a.RelyingParty, nil
}

// BeginPasskey begins to create a passkey for the actor's account.
func (a *Accounts) BeginPasskey(ctx context.Context, actor Actor, in Proof) (c PasskeyCeremony, err error) {
	party, err := a.relyingParty()
	if err != nil {
		return c, err
	}
	err = a.withProof(ctx, actor, in, func(q *store.Queries) error {
		list, err := q.Passkeys(actor.User.ID)
		if err != nil {
			return err
		}
		if err := checkPasskeys(len(list)); err != nil {
			return err
		}
		u := passkeys.Account{Handle: userHandle(list), Email: actor.User.Email, Name: actor.User.Name, Passkeys: list}
		options, ceremony, err := party.BeginCreation(u)
		if err != nil {
			return err
		}
		ceremony.UserID = actor.User.ID
		c, err = a.keepCeremony(options, ceremony, enrollmentLifetime)
		return err
	})
	return c, err
}

func checkPasskeys(n int) error {
	if n >= MaxPasskeys {
		return models.Conflict("An account can have at most %d passkeys. Remove one that you no longer use.", int64(MaxPasskeys))
	}
	return nil
}

// userHandle names an account to authenticators. It is random, so that two portals on one
// host do not replace each other's passkeys, and one for all passkeys of an account.
func userHandle(list []models.Passkey) []byte {
	if len(list) > 0 {
		return list[0].UserHandle
	}
	handle := make([]byte, userHandleBytes)
	rand.Read(handle) // never fails; see crypto/rand
	return handle
}

// keepCeremony has the browser keep a ceremony, encrypted, so that a stranger who begins
// many stores nothing.
func (a *Accounts) keepCeremony(options json.RawMessage, c passkeys.Ceremony, lifetime time.Duration) (PasskeyCeremony, error) {
	c.Began = a.store.Now()
	raw, err := json.Marshal(c)
	return PasskeyCeremony{options, a.PasskeyKey.Encrypt(string(raw)), c.Began.Add(lifetime).UTC()}, err
}

// ceremony reads what keepCeremony returned for a user; 0: for signing in.
func (a *Accounts) ceremony(kept string, user int64, lifetime time.Duration) (c passkeys.Ceremony, err error) {
	raw, err := a.PasskeyKey.Decrypt(kept)
	if err == nil {
		err = json.Unmarshal([]byte(raw), &c)
	}
	if err != nil || c.UserID != user || !a.store.Now().Before(c.Began.Add(lifetime)) {
		return c, models.Invalid("ceremony", "has expired; begin again")
	}
	return c, nil
}

// NewPasskey is the result of a ceremony in which a passkey was created.
type NewPasskey struct {
	Name       string          `json:"name" maxLength:"100" doc:"what you call it, such as the device that has it"`
	Ceremony   string          `json:"ceremony" maxLength:"8000" doc:"as it was returned with the options"`
	Credential json.RawMessage `json:"-"` // PublicKeyCredential that the browser created
}

// AddPasskey adds a passkey to the actor's account.
func (a *Accounts) AddPasskey(ctx context.Context, actor Actor, in NewPasskey) (p models.Passkey, err error) {
	if err := checkAccountWrite(actor); err != nil {
		return p, err
	}
	party, err := a.relyingParty()
	if err != nil {
		return p, err
	}
	var problems models.Problems
	name := models.CheckName("name", in.Name, &problems)
	if err := problems.Err(); err != nil {
		return p, err
	}
	ceremony, err := a.ceremony(in.Ceremony, actor.User.ID, enrollmentLifetime)
	if err != nil {
		return p, err
	}
	if p, err = party.Create(ceremony, in.Credential); err != nil {
		return p, a.passkeyRefused(ctx, err)
	}
	p.UserID, p.Name = actor.User.ID, name
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error { return addPasskey(q, actor, &p) })
	return p, err
}

func addPasskey(q *store.Queries, actor Actor, p *models.Passkey) error {
	n, err := q.CountPasskeys(p.UserID)
	if err != nil {
		return err
	}
	if err := checkPasskeys(int(n)); err != nil {
		return err
	}
	switch _, err := q.PasskeyByCredential(p.CredentialID); models.KindOf(err) {
	case models.KindNotFound:
	case "":
		return models.Conflict("This passkey was added already.")
	default:
		return err
	}
	p.CreatedAt = q.Now()
	if err := q.CreatePasskey(p); err != nil {
		return err
	}
	change := Change{Action: "add-passkey", Object: "account", ID: p.UserID, After: auditPasskey(*p)}
	return cmp.Or(actor.Audit(q, change), notifyOfSecondFactor(q, p.UserID, models.Say("The passkey %s was added to your account.", p.Name)))
}

// auditPasskey is what the audit keeps of a passkey.
func auditPasskey(p models.Passkey) map[string]any { return map[string]any{"id": p.ID, "name": p.Name} }

// passkeyRefused is the refusal of the result of a ceremony. The reason is for the log:
// no one can act on it but who operates the portal.
func (a *Accounts) passkeyRefused(ctx context.Context, err error) error {
	if !errors.Is(err, passkeys.ErrRefused) {
		return err
	}
	a.store.Log().InfoContext(ctx, "passkey refused", "reason", err.Error()[:min(len(err.Error()), 500)])
	return models.Invalid("credential", "is not a valid response to the ceremony; begin again")
}

// PasskeyName is a new name of a passkey.
type PasskeyName struct {
	Name string `json:"name" maxLength:"100" doc:"tells your passkeys apart"`
}

// RenamePasskey renames a passkey of the actor's account.
func (a *Accounts) RenamePasskey(ctx context.Context, actor Actor, id int64, in PasskeyName) (p models.Passkey, err error) {
	if err := checkAccountWrite(actor); err != nil {
		return p, err
	}
	var problems models.Problems
	in.Name = models.CheckName("name", in.Name, &problems)
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		if p, err = q.Passkey(actor.User.ID, id); err != nil {
			return err
		}
		if err := problems.Err(); err != nil {
			return err
		}
		before := auditPasskey(p)
		if p.Name == in.Name {
			return nil
		}
		p.Name = in.Name
		if err := q.RenamePasskey(p.ID, p.Name); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "rename-passkey", Object: "account", ID: p.UserID, Before: before, After: auditPasskey(p)})
	})
	return p, err
}

// DeletePasskey removes a passkey of the actor's account, and ends all sessions: it may
// have begun one.
func (a *Accounts) DeletePasskey(ctx context.Context, actor Actor, id int64) error {
	if err := checkAccountWrite(actor); err != nil {
		return err
	}
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		p, err := q.Passkey(actor.User.ID, id)
		if err != nil {
			return err
		}
		if err := q.DeletePasskey(p.ID); err != nil {
			return err
		}
		if err := endSessions(q, p.UserID); err != nil {
			return err
		}
		change := Change{Action: "delete-passkey", Object: "account", ID: p.UserID, Before: auditPasskey(p)}
		return cmp.Or(actor.Audit(q, change), notifyOfSecondFactor(q, p.UserID, models.Say("The passkey %s was removed from your account.", p.Name)))
	})
}

// BeginPasskeySignIn begins to sign in with a passkey.
func (a *Accounts) BeginPasskeySignIn() (c PasskeyCeremony, err error) {
	party, err := a.relyingParty()
	if err != nil {
		return c, err
	}
	options, ceremony, err := party.BeginSignIn()
	if err != nil {
		return c, err
	}
	return a.keepCeremony(options, ceremony, passkeySignInLifetime)
}

// PasskeySignIn is the result of a ceremony of signing in.
type PasskeySignIn struct {
	Ceremony   string
	Credential json.RawMessage
}

// SignInWithPasskey checks the result of a ceremony; client is a network address. As the
// authenticator has verified the person, it stands for the password and a second factor.
// Results cannot be guessed: failed attempts of a client are counted only to bound the
// work and the log.
func (a *Accounts) SignInWithPasskey(ctx context.Context, client string, in PasskeySignIn) (models.User, error) {
	client = network(client)
	attempt := bound{[2]string{everyAddress, client}, failureLimitOfClients}
	if wait := a.failures.take(a.store.Now(), attempt); wait > 0 {
		return models.User{}, tooManyAttempts(wait)
	}
	u, err := a.signInWithPasskey(ctx, in)
	if kind := models.KindOf(err); kind != models.KindInvalid && kind != models.KindUnauthenticated {
		a.failures.undo(attempt)
	}
	return u, err
}

func (a *Accounts) signInWithPasskey(ctx context.Context, in PasskeySignIn) (u models.User, err error) {
	party, err := a.relyingParty()
	if err != nil {
		return u, err
	}
	ceremony, err := a.ceremony(in.Ceremony, 0, passkeySignInLifetime)
	if err != nil {
		return u, err
	}
	p, err := party.SignIn(ceremony, in.Credential, func(id []byte) (models.Passkey, error) {
		p, err := a.store.Read(ctx).PasskeyByCredential(id)
		return p, models.NotFoundAs(err, unknownPasskey())
	})
	if err != nil {
		return u, a.passkeyRefused(ctx, err)
	}
	err = a.store.InTx(ctx, func(q *store.Queries) error {
		if u, err = q.User(p.UserID); err != nil {
			return err
		}
		if u.Disabled || u.PasswordHash == "" {
			return unknownPasskey()
		}
		ok, err := q.UsePasskey(p.ID, ceremony.Began, p.SignCount)
		if err == nil && !ok {
			err = models.Invalid("ceremony", "has expired; begin again")
		}
		return err
	})
	return u, err
}

// unknownPasskey is the same for a passkey that was removed and for one of a disabled
// account.
func unknownPasskey() *models.Error {
	return &models.Error{Kind: models.KindUnauthenticated,
		Message: models.Say("This passkey belongs to no account here. Sign in with your password.")}
}
