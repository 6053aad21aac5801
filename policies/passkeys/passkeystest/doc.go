// Package passkeystest has an authenticator of passkeys for tests, with the browser that
// uses it. It knows WebAuthn alone, and nothing of the portal.
package passkeystest
