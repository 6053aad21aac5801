// Package policies contains authentication and authorization: accounts,
// passwords, tokens and sign-in, and casbin's rules. The rules of the platform
// are fixed here, those of projects are projected from our own tables. Roles are
// read from the tables at every request, so that a revocation is effective at once.
//
// It must not know the objects that it protects, nor HTTP.
package policies
