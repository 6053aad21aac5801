package openid

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"weir/models"
	"weir/policies"
)

const (
	timeout        = 10 * time.Second // of one exchange with the provider
	maxResponse    = 1 << 20          // bytes
	metadataTTL    = time.Hour        // how long the provider's metadata is used
	retryPause     = 3 * time.Second  // after a failed discovery
	maxClockBehind = time.Minute      // of the provider's clock
	maxClockAhead  = 5 * time.Minute
)

// Config is the configuration of a provider.
type Config struct {
	Issuer       string // URL, exactly as in its metadata
	ClientID     string
	ClientSecret string // empty: the portal is a public client
	Name         string // display name
	GroupsClaim  string // the claim with the groups
	Now          func() time.Time
}

// Provider is a client of an identity provider. It connects at the first sign-in,
// so that the portal starts without the provider.
type Provider struct {
	Config
	client *http.Client

	mu      sync.Mutex
	found   *discovered
	failed  error
	retryAt time.Time // of the next discovery
}

// discovered is the provider's metadata.
type discovered struct {
	*oidc.Provider
	verifier    *oidc.IDTokenVerifier
	scopes      []string
	userinfo    bool
	sendsIssuer bool // with every code
}

// New returns a Provider without connecting to it.
func New(c Config) *Provider {
	return &Provider{Config: c, client: &http.Client{Timeout: timeout, Transport: limitedTransport{http.DefaultTransport},
		// A redirect could lead to another host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// limitedTransport refuses responses that are too long.
type limitedTransport struct{ http.RoundTripper }

func (b limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		res.Body = http.MaxBytesReader(nil, res.Body, maxResponse)
	}
	return res, err
}

// AuthCodeURL is the URL for signing in. It is an unavailable error while the provider
// does not respond.
func (p *Provider) AuthCodeURL(ctx context.Context, state policies.SignInState) (string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(d, state).AuthCodeURL(state.State, oidc.Nonce(state.Nonce), oauth2.S256ChallengeOption(state.Verifier)), nil
}

func (p *Provider) oauth(d *discovered, state policies.SignInState) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: d.Endpoint(), RedirectURL: state.Redirect,
		Scopes: d.scopes}
}

// Redeem exchanges the code of a callback for a verified assertion; issuer is the
// callback's iss parameter, if any (RFC 9207). An invalid code or response is a
// forbidden error; the details are inside it, for the log.
func (p *Provider) Redeem(ctx context.Context, state policies.SignInState, code, issuer string) (as policies.Assertion, err error) {
	d, err := p.discover(ctx)
	if err != nil {
		return as, err
	}
	if issuer != p.Issuer && (issuer != "" || d.sendsIssuer) {
		return as, p.refused(fmt.Errorf("the code comes from %q", issuer))
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), timeout)
	defer cancel()
	token, err := p.oauth(d, state).Exchange(ctx, code, oauth2.VerifierOption(state.Verifier))
	if err != nil {
		return as, p.exchangeError(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err == nil {
		err = p.check(id, state.Nonce)
	}
	if err != nil {
		return as, p.refused(err)
	}
	all := claims{}
	if err := id.Claims(&all); err != nil {
		return as, p.refused(err)
	}
	if err := p.complete(ctx, d, id, token, all); err != nil {
		return as, err
	}
	return all.assertion(id, p.GroupsClaim), nil
}

// exchangeError distinguishes a refused code from a provider that does not
// respond.
func (p *Provider) exchangeError(err error) error {
	if e, ok := errors.AsType[*oauth2.RetrieveError](err); ok && e.Response != nil && e.Response.StatusCode < 500 {
		return p.refused(err)
	}
	return p.unavailable(err)
}

func (p *Provider) refused(err error) error {
	e := models.Forbidden("The sign-in response from %s was rejected. Sign in again.", p.Name)
	e.Err = err
	return e
}

func (p *Provider) unavailable(err error) error {
	return models.Unavailable(err, "%s is not responding. Try again in a moment, or sign in with a password if your account has one.", p.Name)
}

// check verifies an ID token beyond its signature, issuer, audience and expiry, as
// the standard requires.
func (p *Provider) check(id *oidc.IDToken, nonce string) error {
	var c struct {
		Azp string `json:"azp"`
	}
	if err := id.Claims(&c); err != nil {
		return err
	}
	switch {
	case id.Nonce != nonce:
		return errors.New("the ID token has another nonce")
	case c.Azp != "" && c.Azp != p.ClientID, c.Azp == "" && len(id.Audience) > 1:
		return fmt.Errorf("the ID token was issued for %q, among %q", c.Azp, id.Audience)
	case id.IssuedAt.After(p.Now().Add(maxClockAhead)):
		return fmt.Errorf("the ID token was issued at %s, which is in the future", id.IssuedAt)
	}
	return nil
}

// complete adds claims that are available only at the userinfo endpoint. The ID
// token takes precedence.
func (p *Provider) complete(ctx context.Context, d *discovered, id *oidc.IDToken, token *oauth2.Token, all claims) error {
	if !d.userinfo || all.has("email") && all.has("email_verified") && all.has(p.GroupsClaim) {
		return nil
	}
	info, err := d.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return p.unavailable(err)
	}
	if info.Subject != id.Subject {
		return p.refused(fmt.Errorf("userinfo is about %q, the ID token about %q", info.Subject, id.Subject))
	}
	more := claims{}
	if err := info.Claims(&more); err != nil {
		return p.refused(err)
	}
	all.add(more)
	return nil
}

// discover returns the provider's metadata, at most metadataTTL old. While the
// provider does not respond, old metadata is used; without any, the last error is
// returned until the next retry.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.Now(); !now.Before(p.retryAt) {
		d, err := p.fetch(ctx)
		p.failed, p.retryAt = err, now.Add(retryPause)
		if err == nil {
			p.found, p.retryAt = d, now.Add(metadataTTL)
		}
	}
	if p.found != nil {
		return p.found, nil
	}
	return nil, p.unavailable(p.failed)
}

func (p *Provider) fetch(ctx context.Context) (*discovered, error) {
	// The first caller may give up; others wait for the same response.
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), p.client), timeout)
	defer cancel()
	provider, err := oidc.NewProvider(ctx, p.Issuer)
	if err != nil {
		return nil, err
	}
	var c metadata
	if err := provider.Claims(&c); err != nil {
		return nil, err
	}
	if err := c.check(provider.Endpoint()); err != nil {
		return nil, err
	}
	scopes := []string{oidc.ScopeOpenID, "email", "profile"}
	if slices.Contains(c.Scopes, "groups") { // some send groups only on request
		scopes = append(scopes, "groups")
	}
	return &discovered{Provider: provider, scopes: scopes, userinfo: c.Userinfo != "", sendsIssuer: c.SendsIssuer,
		verifier: provider.Verifier(&oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return p.Now().Add(-maxClockBehind) }})}, nil
}

// metadata is the part of the provider's metadata that oidc does not decode.
type metadata struct {
	Userinfo    string   `json:"userinfo_endpoint"`
	Keys        string   `json:"jwks_uri"`
	Methods     []string `json:"code_challenge_methods_supported"`
	Scopes      []string `json:"scopes_supported"`
	SendsIssuer bool     `json:"authorization_response_iss_parameter_supported"`
}

func (m metadata) check(e oauth2.Endpoint) error {
	addresses := []string{e.AuthURL, e.TokenURL, m.Keys}
	if m.Userinfo != "" {
		addresses = append(addresses, m.Userinfo)
	}
	for _, address := range addresses {
		if !SafeAddress(address) {
			return fmt.Errorf("the provider names the address %q, where what is sent could be read by others", address)
		}
	}
	if len(m.Methods) > 0 && !slices.Contains(m.Methods, "S256") {
		return errors.New("the provider does not know PKCE with S256")
	}
	return nil
}

// SafeAddress reports whether a URL is safe for secrets: its scheme is https, or
// its host is this machine.
func SafeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}
