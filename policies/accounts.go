package policies

import (
	"context"
	"time"

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

// authentication caches who is authenticated by what, and their grants.
type authentication struct {
	actors   *store.Cache[int64, Actor]               // by user
	sessions *store.Cache[string, models.Session]     // by hash
	tokens   *store.Cache[string, models.AccessToken] // by hash
	owners   *store.Cache[string, owner]              // by topic
}

// owner is whose a workspace or reservation is. That never changes.
type owner struct{ user, project int64 }

func newAuthentication(s *store.Store) authentication {
	return authentication{store.NewCache[int64, Actor](s, store.MaxCached), store.NewCache[string, models.Session](s, store.MaxCached),
		store.NewCache[string, models.AccessToken](s, store.MaxCached), store.NewCache[string, owner](s, store.MaxCached)}
}

// writeUsers changes accounts or departments under the lock on administrators,
// so that no account can get a department while it is deleted. Write does not lock for
// system actors.
func (a *Accounts) writeUsers(ctx context.Context, actor Actor, fn func(*store.Queries) error) error {
	return a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		if err := q.LockUsers(); err != nil {
			return err
		}
		return fn(q)
	})
}
