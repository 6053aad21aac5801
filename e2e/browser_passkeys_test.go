package e2e

import (
	"testing"

	"github.com/chromedp/cdproto/webauthn"
)

// hasPasskeys gives the browser of a tab an authenticator that verifies its person, as a
// phone or a laptop does.
func (b *tab) hasPasskeys() webauthn.AuthenticatorID {
	b.t.Helper()
	call(b, webauthn.Enable, webauthn.EnableParams{})
	return call(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Ctap2version: webauthn.Ctap2versionCtap21,
		Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true}}).AuthenticatorID
}

// TestPasskeyInBrowser adds a passkey, signs in with it, and removes it.
func TestPasskeyInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	s.teamWithin("Speech", share.times(4), share, "wang")
	axe := readAxe(t)
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn("wang@example.org", password)
	device := b.hasPasskeys()
	b.goTo("/account")
	axe.looksAt(b, "account-passkeys")
	b.press("Add passkey")
	b.fill("Current password", password)
	b.loads(func() { b.press("Continue") })
	axe.looksAt(b, "passkey-create")
	b.fill("Name", "Wang's laptop")
	b.press("Create passkey")
	b.at("/account")
	b.sees("The passkey Wang's laptop was added.")
	axe.looksAt(b, "account-passkey")

	b.press("Add passkey") // it is on this device already
	b.fill("Current password", password)
	b.loads(func() { b.press("Continue") })
	b.fill("Name", "again")
	b.press("Create passkey")
	b.sees("There is a passkey of your account already")
	axe.looksAt(b, "passkey-exists")

	b.press("Sign out")
	b.at("/signin")
	b.goTo("/signin?next=/pool")
	b.sees("Sign in with a passkey")
	axe.looksAt(b, "signin-passkey")
	call(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: device}) // another person's finger
	b.press("Sign in with a passkey")
	b.sees("The browser ended this without a passkey. Try again.")
	axe.looksAt(b, "signin-passkey-refused")
	call(b, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: device, IsUserVerified: true})
	b.press("Sign in with a passkey")
	b.at("/pool")

	b.goTo("/account")
	b.sees("last used")
	b.press("Remove Wang's laptop")
	b.sees("Remove the passkey Wang's laptop?")
	b.press("Remove passkey")
	b.sees("The passkey was removed.")
	b.press("Sign out")
	b.at("/signin")
	b.press("Sign in with a passkey") // the device still has it
	b.sees("This passkey belongs to no account here.")
	p.watch.clean()
}
