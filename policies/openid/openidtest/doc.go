// Package openidtest runs a real OpenID Connect provider for tests: the certified
// library zitadel/oidc on a local port, with users, groups and a sign-in page.
// Tests can inject faults into its responses.
//
// It must not know the portal, and nothing but tests may import it.
package openidtest
