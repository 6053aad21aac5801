// Package passkeys is the portal as a relying party of WebAuthn
// (https://www.w3.org/TR/webauthn-3/): it begins the ceremonies in which an authenticator
// creates a passkey or signs in with one, and verifies their results. A passkey is
// discoverable, so nobody types whose it is, and its authenticator verifies the person, so
// that it stands for the password and a second factor.
//
// It knows neither accounts nor sessions nor the database: what a ceremony must remember is
// in its Ceremony, which the caller keeps, and only once accepts.
package passkeys
