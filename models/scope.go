package models

import "slices"

// TokenScope is a kind of action for which an access token can be used. A token never
// permits more than its user may do.
type TokenScope string

// Scopes of access tokens.
const (
	ScopeRead    TokenScope = "read"    // read what its user may read
	ScopeLaunch  TokenScope = "launch"  // launch, open and stop workspaces, and change files; includes read
	ScopeProject TokenScope = "project" // change projects, roles, members, invitations and requests; includes read
	ScopeAdmin   TokenScope = "admin"   // administer the platform and its user's own account; includes project
)

// TokenScopes are all scopes, in display order.
var TokenScopes = []TokenScope{ScopeRead, ScopeLaunch, ScopeProject, ScopeAdmin}

var includedScopes = map[TokenScope][]TokenScope{ScopeLaunch: {ScopeRead}, ScopeProject: {ScopeRead}, ScopeAdmin: {ScopeProject, ScopeRead}}

// Challenge is the WWW-Authenticate header of a response to a token without the scope
// (RFC 6750 section 3.1).
func (s TokenScope) Challenge() string {
	return `Bearer error="insufficient_scope", scope="` + string(s) + `"`
}

// Covers reports whether one of the scopes is wanted or includes it.
func Covers(scopes []TokenScope, wanted TokenScope) bool {
	return slices.ContainsFunc(scopes, func(s TokenScope) bool { return s == wanted || slices.Contains(includedScopes[s], wanted) })
}
