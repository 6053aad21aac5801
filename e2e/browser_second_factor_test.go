package e2e

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"
)

// codeOf is what an authenticator app shows, some steps of 30 seconds from now.
func codeOf(b *tab, secret string, steps int) string {
	b.t.Helper()
	code, err := totp.GenerateCodeCustom(secret, time.Now().Add(time.Duration(steps)*30*time.Second), totp.ValidateOpts{Period: 30, Digits: otp.DigitsSix})
	if err != nil {
		b.t.Fatal(err)
	}
	return code
}

// looksAt holds the page that is open to axe-core's rules, and takes a picture.
func (a axe) looksAt(b *tab, name string) {
	b.t.Helper()
	a.load(b)
	check(b, name)
	b.shoot(name)
}

// TestSecondFactorInBrowser is an administrator who sets up a second factor, by keyboard,
// signs in with it, requires one of everyone, and a member who sets one up to sign in.
func TestSecondFactorInBrowser(t *testing.T) {
	t.Parallel()
	chromium := startChromium(t)
	s := newServer(t, options{gpus: "h100:1"})
	s.teamWithin("Speech", share.times(4), share, "wang")
	axe := readAxe(t)
	p := chromium.person(t, s.url)
	b := p.tab()
	b.signIn("operator@example.org", password)

	secret := b.setsUpSecondFactor(axe)
	b.press("Sign out")
	b.at("/signin")
	b.fill("Email", "operator@example.org")
	b.fill("Password", password)
	b.press("Sign in")
	b.at("/signin/second-factor")
	axe.looksAt(b, "second-factor-code")
	b.fill("Code", "000000")
	b.loads(func() { b.keys("\r") })
	b.sees("is not valid now")
	axe.looksAt(b, "second-factor-refused")
	b.fill("Code", codeOf(b, secret, 1))
	b.loads(func() { b.keys("\r") })
	b.at("/")

	b.goTo("/people")
	b.press("Sign-in policy")
	axe.looksAt(b, "sign-in-policy")
	eval[bool](b, `document.querySelector("select").value = "everyone"; true`)
	b.press("Save")
	b.sees("Sign-in policy saved.")

	m := chromium.person(t, s.url).tab()
	m.goTo("/signin?next=/pool")
	m.fill("Email", "wang@example.org")
	m.fill("Password", password)
	m.press("Sign in")
	m.at("/signin/second-factor/setup")
	axe.looksAt(m, "second-factor-required")
	m.goTo("/projects")
	m.at("/signin")
	m.goTo("/signin/second-factor/setup")
	m.press("Continue")
	m.confirmsApp(axe, "second-factor-required-app")
	m.press("Continue")
	m.at("/pool")

	b.goTo("/people")
	b.press("wang")
	b.press("Reset second factor")
	b.sees("Reset the second factor of wang@example.org?")
	b.shoot("second-factor-reset")
	if code, _, stderr := weir(t, "", s.settings(), "admin", "reset-second-factor", "Wang@example.org"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	m.goTo("/pool")
	m.at("/signin")
	if code, _, stderr := weir(t, "", s.settings(), "admin", "reset-second-factor", "wang@example.org"); code == 0 || !strings.Contains(stderr, "neither a second factor nor a passkey") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	p.watch.clean()
}

// setsUpSecondFactor sets up a second factor on the account page, and returns its secret.
func (b *tab) setsUpSecondFactor(axe axe) string {
	b.t.Helper()
	b.goTo("/account")
	axe.looksAt(b, "account-second-factor")
	b.press("Set up")
	b.at("/account/second-factor/setup")
	axe.looksAt(b, "second-factor-setup")
	b.fill("Current password", password)
	b.loads(func() { b.keys("\r") })
	b.at("/account/second-factor/confirm")
	secret := b.confirmsApp(axe, "second-factor-app")
	b.press("Continue")
	b.at("/account")
	b.sees("10 unused recovery codes")
	axe.looksAt(b, "account-second-factor-enabled")
	return secret
}

// confirmsApp reads the secret of a new authenticator app, and sends a code of it.
func (b *tab) confirmsApp(axe axe, name string) string {
	b.t.Helper()
	b.until("the QR code", `document.readyState === "complete" && document.querySelector("svg.qr")`) // of the page that the form leads to
	axe.looksAt(b, name)
	if width := eval[float64](b, `document.querySelector("svg.qr").getBoundingClientRect().width`); width < 150 {
		b.t.Errorf("the QR code is %v pixels wide", width)
	}
	secret := strings.ReplaceAll(eval[string](b, `document.querySelector("#secret").textContent`), " ", "")
	b.fill("Code", codeOf(b, secret, 0))
	b.loads(func() { b.keys("\r") })
	b.sees("10 recovery codes")
	axe.looksAt(b, name+"-codes")
	codes := regexp.MustCompile(`(?m)^[a-z2-7]{4}(-[a-z2-7]{4}){3}$`).FindAllString(eval[string](b, `document.querySelector("#codes").textContent`), -1)
	if len(codes) != 10 {
		b.t.Errorf("recovery codes %q", codes)
	}
	return secret
}
