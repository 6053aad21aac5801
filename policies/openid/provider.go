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
	timeout     = 10 * time.Second // for one exchange with the provider
	bodySize    = 1 << 20          // bytes of its longest answer
	metadataTTL = time.Hour        // how long what it says of itself is used
	retryAfter  = 3 * time.Second  // after it did not answer, before it is asked again
	clockSkew   = time.Minute      // by which its clock may be behind ours
	futureSkew  = 5 * time.Minute  // by which it may be ahead
)

// Config is what is known of the provider beforehand.
type Config struct {
	Issuer       string // its address, exactly as it says it
	ClientID     string
	ClientSecret string // empty: the portal is a public client there
	Name         string // for people
	GroupsClaim  string // where it says the groups
	Now          func() time.Time
}

// Provider is asked when somebody signs in, and not before: the portal starts
// without it.
type Provider struct {
	Config
	client *http.Client

	mu      sync.Mutex
	found   *discovered
	failed  error
	retryAt time.Time
}

// discovered is what the provider says of itself.
type discovered struct {
	*oidc.Provider
	verifier    *oidc.IDTokenVerifier
	scopes      []string
	userinfo    bool
	sendsIssuer bool // beside every code
}

// New makes a Provider without asking it anything.
func New(c Config) *Provider {
	return &Provider{Config: c, client: &http.Client{Timeout: timeout, Transport: bounded{http.DefaultTransport},
		// An answer from elsewhere would not be the provider's own.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Address is where a browser goes to sign in. It is an unavailable error
// while the provider does not answer.
func (p *Provider) Address(ctx context.Context, pass policies.Pass) (string, error) {
	d, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	return p.oauth(d, pass).AuthCodeURL(pass.State, oidc.Nonce(pass.Nonce), oauth2.S256ChallengeOption(pass.Verifier)), nil
}

func (p *Provider) oauth(d *discovered, pass policies.Pass) *oauth2.Config {
	return &oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: d.Endpoint(), RedirectURL: pass.Redirect,
		Scopes: d.scopes}
}

// Redeem exchanges the code that a browser brought back for what the provider
// says of the person, all of it checked; issuer is who the browser says gave
// the code, if it does (RFC 9207). Whatever is wrong with the code or
// the answer is a forbidden error; the details are inside it, for the log.
func (p *Provider) Redeem(ctx context.Context, pass policies.Pass, code, issuer string) (as policies.Assertion, err error) {
	d, err := p.discover(ctx)
	if err != nil {
		return as, err
	}
	if issuer != p.Issuer && (issuer != "" || d.sendsIssuer) {
		return as, p.refused(fmt.Errorf("the code comes from %q", issuer))
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), timeout)
	defer cancel()
	token, err := p.oauth(d, pass).Exchange(ctx, code, oauth2.VerifierOption(pass.Verifier))
	if err != nil {
		return as, p.exchangeFailed(err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := d.verifier.Verify(ctx, raw)
	if err == nil {
		err = p.check(id, pass.Nonce)
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

// exchangeFailed tells a code that the provider refuses from a provider that does
// not answer.
func (p *Provider) exchangeFailed(err error) error {
	if e := (*oauth2.RetrieveError)(nil); errors.As(err, &e) && e.Response != nil && e.Response.StatusCode < 500 {
		return p.refused(err)
	}
	return p.unavailable(err)
}

func (p *Provider) refused(err error) error {
	e := models.Forbidden("What %s said of you could not be accepted. Begin again.", p.Name)
	e.Err = err
	return e
}

func (p *Provider) unavailable(err error) error {
	return models.Unavailable(err, "%s does not answer now. Try again in a moment; accounts that have a password here can use it.", p.Name)
}

// check holds an ID token, whose signature, issuer, audience and expiry are
// verified, to the rest of what the standard asks of it.
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
	case id.IssuedAt.After(p.Now().Add(futureSkew)):
		return fmt.Errorf("the ID token was issued at %s, which is in the future", id.IssuedAt)
	}
	return nil
}

// complete adds what the provider says only at its userinfo endpoint. What
// the signed ID token says counts first.
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

// discover asks the provider what it says of itself, once an hour. While it
// does not answer, what it said before is used, or the failure is told at
// once to all that come within the pause.
func (p *Provider) discover(ctx context.Context) (*discovered, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.Now(); !now.Before(p.retryAt) {
		d, err := p.fetchMetadata(ctx)
		p.failed, p.retryAt = err, now.Add(retryAfter)
		if err == nil {
			p.found, p.retryAt = d, now.Add(metadataTTL)
		}
	}
	if p.found != nil {
		return p.found, nil
	}
	return nil, p.unavailable(p.failed)
}

func (p *Provider) fetchMetadata(ctx context.Context) (*discovered, error) {
	// Whoever came first may leave; the others wait for the same answer.
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
	if slices.Contains(c.Scopes, "groups") { // some say groups only to who asks
		scopes = append(scopes, "groups")
	}
	return &discovered{Provider: provider, scopes: scopes, userinfo: c.Userinfo != "", sendsIssuer: c.SendsIssuer,
		verifier: provider.Verifier(&oidc.Config{ClientID: p.ClientID, Now: func() time.Time { return p.Now().Add(-clockSkew) }})}, nil
}

// metadata is what else the provider says of itself.
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

// SafeAddress reports whether what is sent to an address is kept from others:
// it begins with https, or is on this machine.
func SafeAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || net.ParseIP(u.Hostname()).IsLoopback())
}
