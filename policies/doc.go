// Package policies knows who is asking and what they may do: accounts,
// passwords, tokens and sign-in on one side, casbin's rules on the other. The
// rules of the platform are fixed here, those of projects are projected from
// our own tables, and who holds which role is read from these at every
// request, so a revoked right is gone at once.
//
// It must not know what the things are that it protects, nor HTTP.
package policies
