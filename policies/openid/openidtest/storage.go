package openidtest

import (
	"context"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// people are the provider's, as the library's example storage asks for them.
type people struct{ *Provider }

func (p people) GetUserByID(id string) *storage.User {
	person, ok := p.person(id)
	if !ok {
		return nil
	}
	return &storage.User{ID: person.Subject, Username: person.Subject, Password: Password, FirstName: person.Name, Email: person.Email, EmailVerified: person.Verified}
}

func (p people) GetUserByUsername(name string) *storage.User { return p.GetUserByID(name) }

func (p people) ExampleClientID() string { return ClientID }

// opStorage is the library's example storage, which also tells groups, and what
// a test wants to be wrong.
type opStorage struct {
	*storage.Storage
	provider *Provider
}

// SetUserinfoFromToken answers the userinfo endpoint.
func (b opStorage) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := b.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	b.tell(info)
	if other := b.provider.spoiled().Userinfo; other != "" {
		info.Subject = other
	}
	return nil
}

// SetUserinfoFromRequest fills an ID token.
func (b opStorage) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := b.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	if b.provider.spoiled().InToken {
		b.tell(info)
	}
	return nil
}

func (b opStorage) tell(info *oidc.UserInfo) {
	if person, ok := b.provider.person(info.Subject); ok && person.Groups != nil {
		info.AppendClaims("groups", person.Groups)
	}
}

// AuthRequestByCode finds what a code was given for.
func (b opStorage) AuthRequestByCode(ctx context.Context, code string) (op.AuthRequest, error) {
	r, err := b.Storage.AuthRequestByCode(ctx, code)
	if err != nil {
		return nil, err
	}
	return &request{AuthRequest: r, spoil: b.provider.spoiled()}, nil
}

// GetClientByClientID finds a client.
func (b opStorage) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := b.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c, b.provider}, nil
}

// CreateAccessToken comes after the code was found good, and before the ID
// token is made.
func (b opStorage) CreateAccessToken(ctx context.Context, r op.TokenRequest) (string, time.Time, error) {
	if r, ok := r.(*request); ok {
		r.taken = true
	}
	return b.Storage.CreateAccessToken(ctx, r)
}

// request is what somebody asked to sign in for, spoiled.
type request struct {
	op.AuthRequest
	spoil Spoil
	taken bool
}

func (r *request) GetClientID() string {
	if r.taken && r.spoil.Client != "" {
		return r.spoil.Client
	}
	return r.AuthRequest.GetClientID()
}

func (r *request) GetNonce() string {
	if r.spoil.Nonce != "" {
		return r.spoil.Nonce
	}
	return r.AuthRequest.GetNonce()
}

func (r *request) GetAudience() []string {
	if r.spoil.Audience != nil || r.spoil.Client != "" {
		return r.spoil.Audience
	}
	return r.AuthRequest.GetAudience()
}

// client is the portal as the provider knows it, spoiled.
type client struct {
	op.Client
	provider *Provider
}

func (c client) RedirectURIs() []string {
	c.provider.mu.Lock()
	defer c.provider.mu.Unlock()
	return []string{c.provider.redirect}
}

func (c client) IDTokenLifetime() time.Duration {
	if lifetime := c.provider.spoiled().Lifetime; lifetime != 0 {
		return lifetime
	}
	return c.Client.IDTokenLifetime()
}

func (c client) IDTokenUserinfoClaimsAssertion() bool { return c.provider.spoiled().InToken }
