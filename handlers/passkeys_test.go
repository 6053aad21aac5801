package handlers

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/policies/passkeys/passkeystest"
)

const passkeyOrigin = "http://localhost:8080"

// hidden is the value of a hidden input.
func (d *door) hidden(page, name string) string {
	d.Helper()
	found := regexp.MustCompile(`<input type="hidden" name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		d.Fatalf("no %s in %s", name, page)
	}
	return html.UnescapeString(found[1])
}

// addsPasskey adds a passkey on the pages.
func (d *door) addsPasskey(a *passkeystest.Authenticator, name string, proof ...string) {
	d.Helper()
	step := d.page(200, "POST", "/account/passkeys/new", proof...)
	made := a.Create(d.TB, []byte(d.hidden(step, "options")))
	d.leads("/account", "/account/passkeys", "name", name, "ceremony", d.hidden(step, "ceremony"), "credential", string(made))
}

// usesPasskey signs in on the pages, and returns what is sent.
func (d *door) usesPasskey(a *passkeystest.Authenticator) (form []string) {
	d.Helper()
	d.clock.Advance(time.Second)
	var c PasskeyCeremony
	if err := json.Unmarshal([]byte(d.page(200, "GET", "/signin/passkey/ceremony")), &c); err != nil {
		d.Fatal(err)
	}
	options := must(json.Marshal(c.Options))(d.TB)
	return []string{"next", "/pool", "ceremony", c.Ceremony, "credential", string(a.Get(d.TB, options))}
}

func TestPasskeyPages(t *testing.T) {
	e := newEntrance(t)
	kim, other := &door{entrance: e}, &door{entrance: e}
	kim.entersPassword("/pool")
	a := &passkeystest.Authenticator{Origin: passkeyOrigin}
	if page := kim.page(200, "GET", "/account"); !strings.Contains(page, `href="/account/passkeys/new"`) {
		t.Error("the account offers no passkey")
	}
	kim.page(200, "GET", "/account/passkeys/new")
	kim.page(422, "POST", "/account/passkeys/new", "password", "wrong")
	step := kim.page(200, "POST", "/account/passkeys/new", "password", "correct horse")
	made := string(a.Create(t, []byte(kim.hidden(step, "options"))))
	again := kim.page(422, "POST", "/account/passkeys", "name", "", "options", kim.hidden(step, "options"),
		"ceremony", kim.hidden(step, "ceremony"), "credential", made)
	if kim.hidden(again, "options") != kim.hidden(step, "options") || kim.hidden(again, "ceremony") != kim.hidden(step, "ceremony") ||
		strings.Contains(again, html.EscapeString(made)) {
		t.Errorf("without a name: %s", again)
	}
	kim.page(422, "POST", "/account/passkeys", "name", "phone", "ceremony", kim.hidden(step, "ceremony"), "credential", "{}")
	kim.leads("/account", "/account/passkeys", "name", "phone", "ceremony", kim.hidden(step, "ceremony"), "credential", made)
	account := kim.page(200, "GET", "/account")
	remove := regexp.MustCompile(`/account/passkeys/\d+/delete`).FindString(account)
	if !strings.Contains(account, "The passkey phone was added.") || !strings.Contains(account, "never used") || remove == "" {
		t.Errorf("the account: %s", account)
	}

	signIn := other.page(200, "GET", "/signin")
	if !strings.Contains(signIn, `data-passkey="get"`) || !strings.Contains(signIn, "passkeys.js") {
		t.Error("the page offers no passkey")
	}
	form := other.usesPasskey(a)
	other.leads("/pool", "/signin/passkey", form...)
	other.page(200, "GET", "/account")
	if page := (&door{entrance: e}).page(422, "POST", "/signin/passkey", form...); !strings.Contains(page, "has expired; begin again") {
		t.Error(page)
	}
	a.Origin = "http://notebook.localhost:8080"
	(&door{entrance: e}).page(422, "POST", "/signin/passkey", (&door{entrance: e}).usesPasskey(a)...)
	a.Origin = passkeyOrigin

	rename := strings.Replace(remove, "/delete", "/rename", 1)
	kim.page(200, "GET", rename)
	if page := kim.page(422, "POST", rename, "name", " "); !strings.Contains(page, "f-name-error") {
		t.Errorf("without a name: %s", page)
	}
	kim.leads("/account", rename, "name", "old phone")
	if account := kim.page(200, "GET", "/account"); !strings.Contains(account, "The passkey is called old phone now.") {
		t.Errorf("the account: %s", account)
	}

	kim.page(200, "GET", remove)
	kim.leads("/account", remove)
	kim.page(200, "GET", "/account")
	other.page(303, "GET", "/account") // it was signed out
	if page := other.page(401, "POST", "/signin/passkey", other.usesPasskey(a)...); !strings.Contains(page, "belongs to no account here") {
		t.Error(page)
	}
	kim.page(404, "GET", remove)
	kim.page(404, "POST", remove)
}

// TestPasskeyWithASecondFactor enters at the step of the code, too, and where the policy
// requires a second factor that the account does not have, sets one up.
func TestPasskeyWithASecondFactor(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	a := &passkeystest.Authenticator{Origin: passkeyOrigin}
	kim.addsPasskey(a, "phone", "password", "correct horse")
	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"everyone"}`)
	kim.page(303, "GET", "/account")
	kim.leads("/signin/second-factor/setup", "/signin/passkey", kim.usesPasskey(a)...)
	kim.page(303, "GET", "/account")
	kim.leads("/signin/second-factor/confirm", "/signin/second-factor/setup")
	secret := e.secretOf(kim.page(200, "GET", "/signin/second-factor/confirm"))
	kim.page(200, "POST", "/signin/second-factor/confirm", "code", e.code(secret))
	kim.page(200, "GET", "/account")

	other := &door{entrance: e}
	other.entersPassword("/signin/second-factor")
	if page := other.page(200, "GET", "/signin/second-factor"); !strings.Contains(page, `name="next" value="/pool"`) ||
		!strings.Contains(page, `data-passkey="get"`) {
		t.Errorf("the step of the code: %s", page)
	}
	other.leads("/pool", "/signin/passkey", other.usesPasskey(a)...)
	other.page(200, "GET", "/account")

	e.want(200, e.admin, "PUT", "/sign-in-policy", `{"second_factor":"none"}`)
	root := e.visitor("ada@example.org", true)
	person := path("people", e.personID("kim@example.org"))
	root.shows(root.page(200, "GET", person), "Reset second factor")
	root.page(303, "POST", person+"/second-factor/reset")
	other.page(401, "POST", "/signin/passkey", other.usesPasskey(a)...)
}

func TestPasskeysOverREST(t *testing.T) {
	e := newEntrance(t)
	token := e.token("kim@example.org")
	if fields := e.problem(e.want(422, token, "POST", "/me/passkeys/ceremony", `{"password":"wrong"}`)); fields["password"] == "" {
		t.Errorf("refused %v", fields)
	}
	a := &passkeystest.Authenticator{Origin: passkeyOrigin}
	begun := e.want(200, token, "POST", "/me/passkeys/ceremony", `{"password":"correct horse"}`).body
	made := a.Create(t, must(json.Marshal(begun["options"]))(t))
	body := func(name, ceremony string, credential []byte) string {
		return string(must(json.Marshal(map[string]any{"name": name, "ceremony": ceremony, "credential": json.RawMessage(credential)}))(t))
	}
	ceremony := begun["ceremony"].(string)
	for field, body := range map[string]string{"name": body("", ceremony, made), "ceremony": body("x", "x", made), "credential": body("x", ceremony, []byte("{}"))} {
		if fields := e.problem(e.want(422, token, "POST", "/me/passkeys", body)); fields[field] == "" && fields["body."+field] == "" {
			t.Errorf("%s: refused %v", field, fields)
		}
	}
	added := e.want(201, token, "POST", "/me/passkeys", body("phone", ceremony, made))
	e.problem(e.want(409, token, "POST", "/me/passkeys", body("phone", ceremony, made)))
	list := e.get(token, "/me/passkeys").body["items"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["name"] != "phone" || list[0].(map[string]any)["backup_eligible"] != true {
		t.Errorf("%v", list)
	}
	if person := e.get(e.admin, path("users", e.personID("kim@example.org"))); len(person.body["passkeys"].([]any)) != 1 {
		t.Errorf("%s", person.raw)
	}
	kim := &door{entrance: e}
	kim.leads("/pool", "/signin/passkey", kim.usesPasskey(a)...)
	at := path("me/passkeys", int64(added.body["id"].(float64)))
	if fields := e.problem(e.want(422, token, "PUT", at, `{"name":""}`)); fields["name"] == "" && fields["body.name"] == "" {
		t.Errorf("refused %v", fields)
	}
	e.problem(e.want(404, e.member, "PUT", at, `{"name":"mine"}`))
	if renamed := e.want(200, token, "PUT", at, `{"name":"old phone"}`); renamed.body["name"] != "old phone" {
		t.Errorf("%s", renamed.raw)
	}
	kim.page(200, "GET", "/account") // a name ends no session
	e.problem(e.want(404, e.member, "DELETE", at, ""))
	e.want(204, token, "DELETE", at, "")
	kim.page(303, "GET", "/account")
	e.problem(e.want(404, token, "DELETE", at, ""))
	if rec := kim.send(http.MethodGet, "/signin/passkey/ceremony", nil); rec.Header().Get("Cache-Control") != "no-store" || rec.Header().Get("Set-Cookie") != "" {
		t.Errorf("a stranger's ceremony: %v", rec.Header())
	}
}
