// Package openidtest runs a real provider of OpenID Connect for tests: the
// certified library zitadel/oidc, on a free port of this machine, with people,
// groups and a sign-in page of its own. Tests can make it say what a provider
// should not.
//
// It must not know the portal, and nothing but tests may import it.
package openidtest
