// Package openid speaks OpenID Connect with the provider of sign-in that an
// organisation has: where a browser goes to sign in there, and what the
// provider says of whoever came back with a code.
//
// It must not know accounts, groups' meaning, cookies, nor the portal's pages.
package openid
