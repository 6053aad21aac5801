// Package openid is the client of an OpenID Connect provider: it creates the URL
// for signing in there, and exchanges the code for a verified assertion.
//
// It must not know accounts, the meaning of groups, cookies, nor the portal's
// pages.
package openid
