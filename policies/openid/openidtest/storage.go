package openidtest

import (
	"context"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// users adapts the provider's users to the library's example storage.
type users struct{ *Provider }

func (p users) GetUserByID(id string) *storage.User {
	person, ok := p.person(id)
	if !ok {
		return nil
	}
	return &storage.User{ID: person.Subject, Username: person.Subject, Password: Password,
		FirstName: person.Name, Email: person.Email, EmailVerified: person.Verified}
}

func (p users) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (p users) ExampleClientID() string { return ClientID }

// testStorage is the library's example storage with groups and with the faults
// that a test sets.
type testStorage struct {
	*storage.Storage
	provider *Provider
}

// SetUserinfoFromToken fills the response of the userinfo endpoint.
func (b testStorage) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := b.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	b.addGroups(info)
	if other := b.provider.currentFaults().Userinfo; other != "" {
		info.Subject = other
	}
	return nil
}

// SetUserinfoFromRequest fills an ID token.
func (b testStorage) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := b.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	if b.provider.currentFaults().InToken {
		b.addGroups(info)
	}
	return nil
}

func (b testStorage) addGroups(info *oidc.UserInfo) {
	if person, ok := b.provider.person(info.Subject); ok && person.Groups != nil {
		info.AppendClaims("groups", person.Groups)
	}
}

// AuthRequestByCode finds the request of a code.
func (b testStorage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	r, err := b.Storage.AuthRequestByCode(ctx, code)
	if err != nil {
		return nil, err
	}
	return &request{AuthRequest: r, faults: b.provider.currentFaults()}, nil
}

// GetClientByClientID finds a client.
func (b testStorage) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := b.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c, b.provider}, nil
}

// CreateAccessToken is called after the code was accepted, and before the ID token
// is created.
func (b testStorage) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	if r, ok := r.(*request); ok {
		r.accepted = true
	}
	return b.Storage.CreateAccessToken(ctx, r)
}

// request is an authentication request with the faults of a test.
type request struct {
	op.AuthRequest
	faults   Faults
	accepted bool
}

func (r *request) GetClientID() string {
	if r.accepted && r.faults.Client != "" {
		return r.faults.Client
	}
	return r.AuthRequest.GetClientID()
}

func (r *request) GetNonce() string {
	if r.faults.Nonce != "" {
		return r.faults.Nonce
	}
	return r.AuthRequest.GetNonce()
}

func (r *request) GetAudience() []string {
	if r.faults.Audience != nil || r.faults.Client != "" {
		return r.faults.Audience
	}
	return r.AuthRequest.GetAudience()
}

// client is the portal at the provider, with the faults of a test.
type client struct {
	op.Client
	provider *Provider
}

func (c client) RedirectURIs() []string {
	return []string{c.provider.redirect.Load().(string)}
}

func (c client) IDTokenLifetime() time.Duration {
	if lifetime := c.provider.currentFaults().Lifetime; lifetime != 0 {
		return lifetime
	}
	return c.Client.IDTokenLifetime()
}

func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.provider.currentFaults().InToken }
