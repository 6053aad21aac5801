package policies

import (
	"cmp"
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"weir/models"
	"weir/models/store"
	"weir/policies/passkeys"
)

// Accounts manages accounts, their passwords, sessions and tokens.
type Accounts struct {
	store  *store.Store
	access *Access
	authentication
	failures    failures // to sign in
	resets      failures // requests for a link to set a password
	dailyResets failures
	codes       failures // of second factors
	dailyCodes  failures

	// Provider are the rules of sign-in with an identity provider; nil without one. Set
	// it, the lifetime and the key before use.
	Provider             *ProviderRules
	PasswordLinkLifetime time.Duration          // 0: DefaultPasswordLinkLifetime
	Key                  Key                    // of the secrets of second factors
	RelyingParty         *passkeys.RelyingParty // nil: browsers have no passkeys at the portal's origin
	PasskeyKey           Key                    // of the ceremonies of passkeys
	DeviceKey            Key                    // of the devices that have signed in
	hashing              hashing
}

// NewAccounts returns the accounts in store.
func NewAccounts(store *store.Store, access *Access) *Accounts {
	return &Accounts{store: store, access: access, authentication: newAuthentication(store),
		resets: failures{full: true}, dailyResets: failures{window: 24 * time.Hour, full: true},
		dailyCodes: failures{window: 24 * time.Hour}}
}

// NewUser is the input for creating an account.
type NewUser struct {
	Email    string `json:"email" maxLength:"254" doc:"email address; used to sign in"`
	Name     string `json:"name" maxLength:"100" doc:"display name"`
	Password string `json:"password" maxLength:"1000" doc:"password; at least 10 characters"`
	Admin    bool   `json:"admin,omitempty" doc:"platform administrator"`
	Auditor  bool   `json:"auditor,omitempty" doc:"auditor: read-only access to the whole platform"`

	DepartmentID *int64 `json:"department_id,omitempty" minimum:"1" doc:"department ID; absent for none"`
}

// Check validates and normalizes the input.
func (n *NewUser) Check() error {
	var p models.Problems
	n.Email = models.CheckEmail("email", n.Email, &p)
	n.Name = models.CheckName("name", n.Name, &p)
	checkPasswordRules("password", n.Password, &p)
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

func unauthenticated(err error) error {
	if models.KindOf(err) == models.KindInternal {
		return err
	}
	return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in to continue.")}
}

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

// dummyHash is compared with the password for unknown email addresses.
var dummyHash = sync.OnceValue(func() string { return hashPassword(NewSecret()) })

func (a *Accounts) verify(ctx context.Context, client, password, hash string) (ok bool, err error) {
	err = a.hashing.do(ctx, client, func() { ok = checkPassword(password, cmp.Or(hash, dummyHash())) })
	return ok, err
}

func (a *Accounts) hash(ctx context.Context, password string) (hash string, err error) {
	err = a.hashing.do(ctx, clientOf(ctx), func() { hash = hashPassword(password) })
	return hash, err
}

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

// CreateUser adds an account.
func (a *Accounts) CreateUser(ctx context.Context, actor Actor, in NewUser) (models.User, error) {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil {
		return models.User{}, err
	}
	u, err := a.NewAccount(ctx, in)
	if err != nil {
		return u, err
	}
	return u, a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		u.ID = 0
		return a.AddAccount(q, actor, &u)
	})
}

// NewAccount checks the input for an account and hashes its password, which takes too
// long for a transaction.
func (a *Accounts) NewAccount(ctx context.Context, in NewUser) (models.User, error) {
	if err := in.Check(); err != nil {
		return models.User{}, err
	}
	hash, err := a.hash(ctx, in.Password)
	return models.User{Email: in.Email, Name: in.Name, Admin: in.Admin, Auditor: in.Auditor, DepartmentID: in.DepartmentID, PasswordHash: hash,
		SessionGeneration: 1, Version: 1, CreatedAt: a.store.Now()}, err
}

// AddAccount adds an account from NewAccount within a transaction, without checking
// permissions.
func (a *Accounts) AddAccount(q *store.Queries, actor Actor, u *models.User) error {
	if err := CheckDepartment(q, u.DepartmentID); err != nil {
		return err
	}
	if err := q.CreateUser(u); err != nil {
		return err
	}
	return actor.Audit(q, Change{Action: "create", Object: "account", ID: u.ID, After: auditUser(*u)})
}

// auditUser is an account in the audit, without secrets.
func auditUser(u models.User) map[string]any {
	return map[string]any{"email": u.Email, "name": u.Name, "admin": u.Admin, "auditor": u.Auditor,
		"disabled": u.Disabled, "department_id": u.DepartmentID, "email_confirmed": !u.EmailUnconfirmed, "time_zone": u.TimeZone}
}
