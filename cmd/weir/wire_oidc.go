package main

import (
	"weir/handlers"
	"weir/policies"
	"weir/policies/openid"
)

// oidc is sign-in by the provider; nil when there is none.
func (p *portal) oidc() *handlers.OIDC {
	o := p.cfg.OIDC
	if o.Issuer == "" {
		return nil
	}
	return &handlers.OIDC{Origin: p.origin, SessionMax: o.SessionMax,
		Rules: policies.ProviderRules{Name: o.Name, Domains: o.Domains, Link: o.Link, Groups: o.Groups},
		Provider: openid.New(openid.Config{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, Name: o.Name,
			GroupsClaim: o.GroupsClaim, Now: p.store.Now})}
}
