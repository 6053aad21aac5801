package handlers

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"weir/models/store/storetest"
)

// entrance is a world with a stopped clock, at whose door people stand.
type entrance struct {
	*world
	clock *storetest.Clock
}

func newEntrance(t *testing.T) *entrance {
	t.Helper()
	e := &entrance{}
	e.world = newWorldWith(t, func(c *Config) {
		e.clock = storetest.NewClock(c.Store)
		e.clock.Advance(-time.Until(e.clock.Now())) // sessions begin by the real clock
	})
	e.create(e.admin, "/users", `{"name":"Kim","email":"kim@example.org","password":"correct horse"}`)
	return e
}

// door is a browser that follows no redirect by itself.
type door struct {
	*entrance
	cookie string
}

func (d *door) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	d.Helper()
	r := httptest.NewRequestWithContext(d.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if d.cookie != "" {
		r.Header.Set("Cookie", d.cookie)
	}
	rec := httptest.NewRecorder()
	d.app.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if c.Name == SessionCookie(false) {
			d.cookie = c.Name + "=" + c.Value
		}
	}
	return rec
}

// leads sends a form and wants to be led to a page.
func (d *door) leads(to, path string, form ...string) {
	d.Helper()
	if rec := d.send("POST", path, pairs(form)); rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != to {
		d.Fatalf("POST %s: %d to %q, want %q: %s", path, rec.Code, rec.Header().Get("Location"), to, rec.Body)
	}
}

func (d *door) page(status int, method, path string, form ...string) string {
	d.Helper()
	rec := d.send(method, path, pairs(form))
	if rec.Code != status {
		d.Fatalf("%s %s: %d to %q, want %d: %s", method, path, rec.Code, rec.Header().Get("Location"), status, rec.Body)
	}
	return rec.Body.String()
}

func pairs(form []string) url.Values {
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Set(form[i], form[i+1])
	}
	return values
}

func (d *door) entersPassword(to string) {
	d.Helper()
	d.leads(to, "/signin", "email", "kim@example.org", "password", "correct horse", "next", "/pool")
}

// code is what an app shows now. The next one is shown to the next caller.
func (e *entrance) code(secret string) string {
	e.Helper()
	e.clock.Advance(30 * time.Second)
	return must(totp.GenerateCodeCustom(secret, e.clock.Now(), totp.ValidateOpts{Period: 30, Digits: otp.DigitsSix}))(e.TB)
}

var (
	secretIn = regexp.MustCompile(`<code id="secret" class="code">([A-Z2-7 ]+)</code>`)
	codesIn  = regexp.MustCompile(`[a-z2-7]{4}(?:-[a-z2-7]{4}){3}`)
)

func (e *entrance) secretOf(page string) string {
	e.Helper()
	found := secretIn.FindStringSubmatch(page)
	if found == nil || !strings.Contains(page, `<svg class="qr" role="img"`) {
		e.Fatalf("no secret in %s", page)
	}
	return strings.ReplaceAll(found[1], " ", "")
}

// TestSecondFactor sets one up, signs in with it and with a recovery code, and disables it.
func TestSecondFactor(t *testing.T) {
	e := newEntrance(t)
	kim, other := &door{entrance: e}, &door{entrance: e}
	kim.entersPassword("/pool")
	other.entersPassword("/pool")
	kim.page(200, "GET", "/account")
	kim.page(422, "POST", "/account/second-factor/setup", "password", "wrong")
	kim.leads("/account/second-factor/confirm", "/account/second-factor/setup", "password", "correct horse")
	secret := e.secretOf(kim.page(200, "GET", "/account/second-factor/confirm"))
	again := kim.page(422, "POST", "/account/second-factor/confirm", "code", "000000")
	if e.secretOf(again) != secret || strings.Contains(again, `value="000000"`) || !strings.Contains(again, `autocomplete="one-time-code"`) ||
		!strings.Contains(again, `inputmode="numeric"`) {
		t.Errorf("a wrong code: %s", again)
	}
	codes := codesIn.FindAllString(kim.page(200, "POST", "/account/second-factor/confirm", "code", e.code(secret)), -1)
	if len(codes) != 10 {
		t.Fatalf("codes %q", codes)
	}
	if page := kim.page(200, "GET", "/account"); !strings.Contains(page, "10 unused recovery codes") || strings.Contains(page, secret) {
		t.Errorf("the account: %s", page)
	}
	other.page(303, "GET", "/account") // it was signed out
	kim.page(303, "GET", "/account/second-factor/confirm")

	other.entersPassword("/signin/second-factor")
	other.page(303, "GET", "/account")
	other.page(303, "GET", "/signin/second-factor/setup")
	other.page(303, "POST", "/signin/second-factor/setup")
	other.page(303, "GET", "/signin/second-factor/confirm")
	e.want(401, "", "GET", "/me", "", "Cookie", other.cookie)
	before := other.cookie
	if page := other.page(422, "POST", "/signin/second-factor", "code", "000000"); !strings.Contains(page, "is not valid now") {
		t.Error(page)
	}
	code := e.code(secret)
	other.leads("/pool", "/signin/second-factor", "code", code)
	if other.cookie == before {
		t.Error("the session keeps its token")
	}
	other.page(200, "GET", "/account")
	third := &door{entrance: e}
	third.entersPassword("/signin/second-factor")
	third.page(422, "POST", "/signin/second-factor", "code", code) // it was used
	if page := third.page(200, "GET", "/signin/second-factor?with=recovery-code"); strings.Contains(page, `inputmode="numeric"`) {
		t.Error(page)
	}
	third.leads("/pool", "/signin/second-factor?with=recovery-code", "code", codes[0])
	fresh := codesIn.FindAllString(third.page(201, "POST", "/account/second-factor/recovery-codes",
		"password", "correct horse", "code", codes[2]), -1)
	if len(fresh) != 10 || fresh[0] == codes[1] {
		t.Errorf("new codes %q", fresh)
	}
	third.page(422, "POST", "/account/second-factor/disable", "password", "correct horse", "code", codes[1])
	third.leads("/account", "/account/second-factor/disable", "password", "correct horse", "code", fresh[0])
	third.page(200, "GET", "/account")
	kim.page(303, "GET", "/account")
	kim.entersPassword("/pool")
}

// The time between the password and the code is bounded, and so are the attempts.
func TestPendingSignInEnds(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	secret := e.enrolls(kim)
	kim.entersPasswordAgain()
	e.clock.Advance(15 * time.Minute)
	kim.leads("/signin?next=%2F", "/signin/second-factor", "code", e.code(secret))
	kim.page(303, "GET", "/signin/second-factor")
	for range 10 {
		kim.entersPasswordAgain()
		kim.page(422, "POST", "/signin/second-factor", "code", "000000")
	}
	kim.page(429, "POST", "/signin/second-factor", "code", e.code(secret))
	kim.page(303, "GET", "/account")
}

// entersPasswordAgain begins to sign in anew, which needs a code.
func (d *door) entersPasswordAgain() {
	d.Helper()
	d.cookie = ""
	d.entersPassword("/signin/second-factor")
}

// enrolls sets up a second factor on the account page, and returns the secret.
func (e *entrance) enrolls(d *door) string {
	e.Helper()
	d.leads("/account/second-factor/confirm", "/account/second-factor/setup", "password", "correct horse")
	secret := e.secretOf(d.page(200, "GET", "/account/second-factor/confirm"))
	d.page(200, "POST", "/account/second-factor/confirm", "code", e.code(secret))
	return secret
}

// A link for a new password does not replace the second factor.
func TestPasswordLinkNeedsTheSecondFactor(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	secret := e.enrolls(kim)
	user := e.personID("kim@example.org")
	address := e.want(201, e.admin, "POST", "/users/"+id(user)+"/password-link", "").body["url"].(string)
	link := must(url.Parse(address))(t).RequestURI()
	thief := &door{entrance: e}
	thief.leads("/signin/second-factor", link, "password", "another horse", "password_again", "another horse")
	thief.page(303, "GET", "/account")
	thief.leads("/", "/signin/second-factor", "code", e.code(secret))
}

func (e *entrance) personID(email string) int64 {
	e.Helper()
	user := e.get(e.admin, "/users?q="+email).body["items"].([]any)[0].(map[string]any)
	return int64(user["id"].(float64))
}

// Who lacks the second factor that the policy requires is signed out, and sets it up with
// the next sign-in.
func TestSignInPolicyPages(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	root := e.visitor("ada@example.org", true)
	page := root.page(200, "GET", "/sign-in-policy")
	root.shows(page, `<option value="none" selected>No one`)
	root.page(422, "POST", "/sign-in-policy", "second_factor", "some", "version", "1")
	root.page(409, "POST", "/sign-in-policy", "second_factor", "none", "version", "7")
	root.page(303, "POST", "/sign-in-policy", "second_factor", "none", "version", "1")
	root.shows(root.page(409, "POST", "/sign-in-policy", "second_factor", "administrators"), "Set up a second factor for your own account first.")
	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"administrators"}`) // by somebody without a password
	kim.page(200, "GET", "/account")
	root.page(303, "GET", "/account")
	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"everyone"}`)
	kim.page(303, "GET", "/account")
	e.want(401, "", "GET", "/me", "", "Cookie", kim.cookie)
	e.want(200, e.token("kim@example.org"), "GET", "/me", "") // programs go on
	kim.entersPassword("/signin/second-factor/setup")
	kim.page(303, "GET", "/account")
	kim.page(303, "POST", "/signin/second-factor", "code", "000000")
	kim.page(303, "GET", "/signin/second-factor/confirm")
	kim.page(200, "GET", "/signin/second-factor/setup")
	kim.leads("/signin/second-factor/confirm", "/signin/second-factor/setup")
	secret := e.secretOf(kim.page(200, "GET", "/signin/second-factor/confirm"))
	kim.page(422, "POST", "/signin/second-factor/confirm", "code", "000000")
	if codes := codesIn.FindAllString(kim.page(200, "POST", "/signin/second-factor/confirm", "code", e.code(secret)), -1); len(codes) != 10 {
		t.Errorf("codes %q", codes)
	}
	if account := kim.page(200, "GET", "/account"); strings.Contains(account, "/account/second-factor/disable") {
		t.Error("a required second factor can be disabled")
	}
	kim.page(409, "POST", "/account/second-factor/disable", "password", "correct horse", "code", e.code(secret))
}

// An administrator removes the second factor of somebody who has lost it.
func TestResetSecondFactorPages(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	e.enrolls(kim)
	root := e.visitor("ada@example.org", true)
	user := e.personID("kim@example.org")
	at := path("people", user)
	root.shows(root.page(200, "GET", "/people"), "second factor")
	root.shows(root.page(200, "GET", at), "Reset second factor")
	root.shows(root.page(200, "GET", at+"/second-factor/reset"), "Reset the second factor of kim@example.org?")
	if person := e.get(e.admin, path("users", user)); person.body["second_factor"] != true {
		t.Errorf("%s", person.raw)
	}
	e.problem(e.want(403, e.member, "DELETE", path("users", user, "second-factor"), ""))
	root.page(303, "POST", at+"/second-factor/reset")
	kim.page(303, "GET", "/account")
	root.page(409, "POST", at+"/second-factor/reset")
	e.problem(e.want(409, e.admin, "DELETE", path("users", user, "second-factor"), ""))
	kim.entersPassword("/pool")
}

// The same over REST, with a token.
func TestSecondFactorOverREST(t *testing.T) {
	e := newEntrance(t)
	token := e.token("kim@example.org")
	if got := e.get(token, "/me/second-factor"); got.body["enabled_at"] != nil || got.body["available"] != true || got.body["required"] != false {
		t.Errorf("%s", got.raw)
	}
	for field, a := range map[string]answer{"password": e.want(422, token, "POST", "/me/second-factor", `{"password":"wrong"}`),
		"second_factor": e.want(422, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"some"}`)} {
		if e.problem(a)[field] == "" && e.problem(a)["body."+field] == "" {
			t.Errorf("%s is not named: %s", field, a.raw)
		}
	}
	made := e.want(200, token, "POST", "/me/second-factor", `{"password":"correct horse"}`)
	secret := made.body["secret"].(string)
	if uri := made.body["uri"].(string); uri != "otpauth://totp/Weir:kim@example.org?secret="+secret+"&issuer=Weir" {
		t.Error(uri)
	}
	e.problem(e.want(422, token, "POST", "/me/second-factor/confirm", `{"code":"000000"}`))
	codes := e.want(200, token, "POST", "/me/second-factor/confirm", `{"code":"`+e.code(secret)+`"}`).body["recovery_codes"].([]any)
	if len(codes) != 10 {
		t.Errorf("%v", codes)
	}
	e.problem(e.want(422, token, "POST", "/me/second-factor/recovery-codes", `{"password":"correct horse"}`))
	fresh := e.want(200, token, "POST", "/me/second-factor/recovery-codes",
		`{"password":"correct horse","code":"`+codes[1].(string)+`"}`).body["recovery_codes"].([]any)
	e.problem(e.want(422, token, "POST", "/me/second-factor/disable", `{"password":"correct horse","code":"`+codes[0].(string)+`"}`))
	policy := e.get(e.admin, "/sign-in-policy")
	tag := policy.header.Get("ETag")
	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"everyone"}`, "If-Match", tag)
	e.problem(e.want(412, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"none"}`, "If-Match", tag))
	e.problem(e.want(409, token, "POST", "/me/second-factor/disable", `{"password":"correct horse","code":"`+fresh[0].(string)+`"}`))
	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"none"}`)
	e.want(204, token, "POST", "/me/second-factor/disable", `{"password":"correct horse","code":"`+fresh[0].(string)+`"}`)
	if got := e.get(token, "/me/second-factor"); got.body["enabled_at"] != nil || got.body["recovery_codes"] != 0.0 {
		t.Errorf("%s", got.raw)
	}
}
