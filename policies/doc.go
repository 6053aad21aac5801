// Package policies knows who is asking and what they may do: accounts,
// passwords, tokens and sign-in on one side, casbin's rules on the other. The
// rules are fixed here; who holds which role comes from our own tables at
// every request, so a revoked right is gone at once.
//
// It must not know what the things are that it protects, nor HTTP.
package policies
