package handlers

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies/openid/openidtest"
)

func TestSignInByProvider(t *testing.T) {
	for name, inToken := range map[string]bool{"userinfo": false, "token": true} {
		t.Run(name, func(t *testing.T) {
			c := newCampus(t, asIs)
			c.provider.AddPerson(kim("admins", "others"))
			c.provider.SetFaults(openidtest.Faults{InToken: inToken})
			v := c.guest()
			contains(t, v.see(c.origin+"/signin?next=/account").body, `href="/signin/oidc?next=%2Faccount"`, "Sign in with Example University")
			page := v.enter("kim")
			contains(t, page.body, "Kim Lee", c.provider.Issuer, "kim@example.org")
			if strings.Contains(page.body, "/account/password") {
				t.Error("the account has a password to change")
			}
			contains(t, v.me(), `"email":"kim@example.org"`, `"admin":true`, `"subject":"kim"`)
			if got := strings.Join(c.audited(3), ", "); got != "weir sign-in update account, weir sign-in create identity, weir sign-in create account" {
				t.Errorf("audit: %s", got)
			}
			again := c.guest()
			again.enter("kim")
			if n := c.counts()["users"]; n != 5 {
				t.Errorf("%d accounts after the second time", n)
			}
		})
	}
}

func TestProviderSessionIsCapped(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim())
	v := c.guest()
	v.enter("kim")
	c.pass(9 * time.Minute)
	if v.me() == "" {
		t.Error("the session ended before its time")
	}
	c.pass(time.Minute + time.Second)
	if v.me() != "" {
		t.Error("the session outlives oidc-session-max")
	}
}

// A session that goes on after a change of the password is not longer for it.
func TestContinuedProviderSessionIsCapped(t *testing.T) {
	c := newCampus(t, func(o *OIDC) { o.Rules.Link = true })
	c.create(c.admin, "/users", `{"name":"Kim","email":"kim@example.org","password":"correct horse"}`)
	c.provider.AddPerson(kim())
	v := c.guest()
	v.enter("kim")
	changed := v.post(v.origin+"/account/password", url.Values{"current": {"correct horse"}, "password": {"another horse"}, "password_again": {"another horse"}})
	if changed.status != http.StatusSeeOther || v.me() == "" {
		t.Fatalf("%+v", changed)
	}
	c.pass(10*time.Minute + time.Second)
	if v.me() != "" {
		t.Error("the session outlives oidc-session-max")
	}
}

func TestProviderCookieAndAddress(t *testing.T) {
	c := newCampus(t, asIs)
	v := c.guest()
	other := v.see(strings.Replace(c.origin, "127.0.0.1", "localhost", 1) + oidcPath + "?next=/pool")
	if want := c.origin + oidcPath + "?here=1&next=%2Fpool"; other.location != want {
		t.Errorf("by another name: %d %s, want %s", other.status, other.location, want)
	}
	r := v.see(c.origin + oidcPath + "?next=https://evil.example")
	cookie := must(http.ParseSetCookie(r.header.Get("Set-Cookie")))(t)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.MaxAge != 600 || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("cookie %+v", cookie)
	}
	if j := readAttempt(cookie.Value); j.secret == "" || j.next != "/" {
		t.Errorf("journey %+v", j)
	}
	q := must(url.Parse(r.location))(t).Query()
	for name, want := range map[string]string{"client_id": "weir", "response_type": "code", "code_challenge_method": "S256",
		"redirect_uri": c.origin + "/signin/oidc/callback"} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("state")) != 43 || len(q.Get("nonce")) != 43 || q.Get("state") == q.Get("nonce") || len(q.Get("code_challenge")) != 43 {
		t.Errorf("not random: %v", q)
	}
}

func TestProviderPeopleWhoStayOut(t *testing.T) {
	c := newCampus(t, asIs)
	disabled := storetest.User(c, c.store, "gone@example.org", false)
	with := func(change func(*openidtest.Person)) openidtest.Person {
		p := kim("admins")
		change(&p)
		return p
	}
	for name, m := range map[string]struct {
		person openidtest.Person
		reason string
	}{
		"unverified":     {with(func(p *openidtest.Person) { p.Verified = false }), "has not verified your email address kim@example.org"},
		"foreign domain": {with(func(p *openidtest.Person) { p.Email = "kim@example.com" }), "Email addresses at example.com cannot sign in."},
		"sub-domain":     {with(func(p *openidtest.Person) { p.Email = "kim@lab.example.org" }), "Email addresses at lab.example.org cannot sign in."},
		"suffix":         {with(func(p *openidtest.Person) { p.Email = "kim@badexample.org" }), "Email addresses at badexample.org cannot sign in."},
		"no address":     {with(func(p *openidtest.Person) { p.Email = "" }), "did not provide a valid email address"},
		"two addresses":  {with(func(p *openidtest.Person) { p.Email = "kim@example.com@example.org" }), "did not provide a valid email address"},
		"look-alike":     {with(func(p *openidtest.Person) { p.Email = "\u212aim@example.org" }), "did not provide a valid email address"}, // folds to k
		"taken":          {with(func(p *openidtest.Person) { p.Email = "ann@example.org" }), "An account for ann@example.org already exists"},
		"disabled":       {with(func(p *openidtest.Person) { p.Email = disabled.Email }), "An account for gone@example.org already exists"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.counts()["users"]
			c.provider.AddPerson(m.person)
			v := c.guest()
			v.refusal(v.signInBy("kim", "/"), http.StatusForbidden, m.reason)
			if n := c.counts()["users"]; n != before {
				t.Errorf("%d accounts, %d before", n, before)
			}
		})
	}
}

func TestProviderAnswersThatAreNotTaken(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim())
	for name, m := range map[string]struct {
		spoil openidtest.Faults
		log   string // empty: it is taken
	}{
		"nonce":             {openidtest.Faults{Nonce: "of another"}, "has another nonce"},
		"audience":          {openidtest.Faults{Client: "another"}, "expected audience"},
		"audience of more":  {openidtest.Faults{Audience: []string{"another"}}, ""}, // beside ours, and issued to us
		"party":             {openidtest.Faults{Client: "another", Audience: []string{openidtest.ClientID}}, "was issued for \\\"another\\\""},
		"expired":           {openidtest.Faults{Lifetime: -2 * time.Minute}, "token is expired"},
		"userinfo":          {openidtest.Faults{Userinfo: "another"}, "userinfo is about"},
		"its clock is late": {openidtest.Faults{Lifetime: -30 * time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.provider.SetFaults(m.spoil)
			v := c.guest()
			if m.log == "" {
				v.enter("kim")
				return
			}
			v.refusal(v.signInBy("kim", "/"), http.StatusForbidden, "The sign-in response from Example University was rejected.")
			contains(t, c.log.String(), m.log)
		})
	}
	c.provider.SetFaults(openidtest.Faults{})
	c.pass(-10 * time.Minute)
	v := c.guest()
	v.refusal(v.signInBy("kim", "/"), http.StatusForbidden, "was rejected")
	contains(t, c.log.String(), "which is in the future")
}

func TestProviderReturnIsForWhoLeft(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim())
	const notBegun = "This sign-in was started in another browser"

	attacker, victim := c.guest(), c.guest()
	back := attacker.signInAt(attacker.leave("/"), "kim")
	victim.refusal(victim.see(back), http.StatusForbidden, notBegun) // no cookie: login CSRF
	victim.leave("/")
	victim.refusal(victim.see(back), http.StatusForbidden, notBegun) // a cookie of another journey

	cookies := attacker.Jar.Cookies(must(url.Parse(c.origin))(t))
	if r := attacker.see(back); r.status != http.StatusSeeOther {
		t.Fatalf("the one who left: %d %s", r.status, r.body)
	}
	replay := c.guest()
	replay.Jar.SetCookies(must(url.Parse(c.origin))(t), cookies) // as it was: the provider knows the code as used
	replay.refusal(replay.see(back), http.StatusForbidden, "was rejected")
	replay.refusal(replay.see(back), http.StatusForbidden, notBegun)

	slow := c.guest()
	back = slow.signInAt(slow.leave("/"), "kim")
	c.pass(signInTimeout)
	slow.refusal(slow.see(back), http.StatusForbidden, notBegun)
	c.pass(-signInTimeout)

	changed := c.guest()
	back = changed.signInAt(changed.leave("/"), "kim")
	at := must(url.Parse(c.origin))(t)
	j := readAttempt(changed.Jar.Cookies(at)[0].Value)
	j.next = "/people"
	changed.Jar.SetCookies(at, []*http.Cookie{{Name: SignInCookie(false), Value: j.cookie(), Path: "/"}})
	changed.refusal(changed.see(back), http.StatusForbidden, notBegun)
}

func TestProviderSaysNo(t *testing.T) {
	c := newCampus(t, asIs)
	v := c.guest()
	for query, m := range map[string]struct {
		status int
		reason string
	}{
		"error=access_denied":                           {403, "Example University denied the sign-in."},
		"error=server_error":                            {503, "Sign-in with Example University is temporarily unavailable"},
		"error=invalid_scope&error_description=Evil":    {403, "rejected the sign-in (invalid_scope)"},
		"error=" + url.QueryEscape("<script>x"):         {403, "rejected the sign-in (?)"},
		"code=x&iss=" + url.QueryEscape("https://evil"): {403, "was rejected"},
		"code=": {403, "was rejected"},
	} {
		state := must(url.Parse(v.leave("/")))(t).Query().Get("state")
		r := v.see(c.origin + oidcCallbackPath + "?state=" + state + "&" + query)
		v.refusal(r, m.status, m.reason)
		if strings.Contains(r.body, "Evil") {
			t.Errorf("%s: the page repeats what stood in the address", query)
		}
	}
	v.refusal(v.see(c.origin+oidcCallbackPath+"?error=access_denied"), 403, "started in another browser")
}

func TestProviderIsDown(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim())
	c.provider.SetDown(true)
	v := c.guest()
	v.refusal(v.see(c.origin+oidcPath), http.StatusServiceUnavailable, "Example University is not responding.")
	c.create(c.admin, "/users", `{"email":"lee@example.org","name":"Lee","password":"correct horse"}`)
	local := c.guest()
	if r := local.post(c.origin+"/signin", url.Values{"email": {"lee@example.org"}, "password": {"correct horse"}}); r.status != http.StatusSeeOther || local.me() == "" {
		t.Errorf("with a password: %d", r.status)
	}
	c.provider.SetDown(false)
	v.refusal(v.see(c.origin+oidcPath), http.StatusServiceUnavailable, "is not responding") // not asked again yet
	c.pass(4 * time.Second)
	v.enter("kim")

	late := c.guest()
	back := late.signInAt(late.leave("/"), "kim")
	c.provider.SetDown(true)
	late.refusal(late.see(back), http.StatusServiceUnavailable, "is not responding")
}

func TestProviderAccountHasNoPassword(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim())
	v := c.guest()
	v.enter("kim")
	for _, email := range []string{"kim@example.org", "nobody@example.org"} { // the same answer for both
		stranger := c.guest()
		r := stranger.post(c.origin+"/signin", url.Values{"email": {email}, "password": {""}})
		stranger.refusal(r, http.StatusUnauthorized, "Incorrect email address or password.")
		contains(t, r.body, "Single sign-on accounts have no password in Weir.")
	}
	user := c.get(c.admin, "/users?q=kim").body["items"].([]any)[0].(map[string]any)["id"].(float64)
	at := "/users/" + id(int64(user))
	c.problem(c.want(409, c.admin, "PUT", at+"/password", `{"password":"a good password"}`))
	if r := v.post(c.origin+"/account/password", url.Values{"current": {""}, "password": {"a good password"}}); r.status != http.StatusConflict {
		t.Errorf("changing what is not there: %d", r.status)
	}

	identity := c.get(c.admin, at).body["identities"].([]any)[0].(map[string]any)
	way := at + "/identities/" + id(int64(identity["id"].(float64)))
	c.problem(c.want(403, c.member, "DELETE", way, ""))
	c.problem(c.want(404, c.admin, "DELETE", "/users/1/identities/"+id(int64(identity["id"].(float64))), ""))
	c.want(204, c.admin, "DELETE", way, "")
	if v.me() != "" {
		t.Error("the session goes on after the identity is gone")
	}
	c.want(204, c.admin, "PUT", at+"/password", `{"password":"a good password"}`)
	c.problem(c.want(404, c.admin, "DELETE", way, ""))
	v.refusal(v.signInBy("kim", "/"), http.StatusForbidden, "An account for kim@example.org already exists")
}

func TestIdentityPages(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim("admins"))
	v := c.guest()
	v.enter("kim")
	at := c.origin + "/people/5"
	person := v.see(at).body
	contains(t, person, c.provider.Issuer, "/people/5/identities/1/delete", "administrator by group")
	if strings.Contains(person, "/people/5/password") {
		t.Error("a password can be set")
	}
	contains(t, v.see(at+"/identities/1/delete").body, "This account cannot sign in until a password is set.")
	if r := v.see(at + "/identities/9/delete"); r.status != http.StatusNotFound {
		t.Errorf("another identity: %d", r.status)
	}
	if r := v.post(at+"/identities/1/delete", nil); r.status != http.StatusSeeOther || r.location != "/people/5" {
		t.Errorf("removing: %d %s", r.status, r.body)
	}
	if v.me() != "" {
		t.Error("the session goes on")
	}
}

func TestProviderLinksWhereAllowed(t *testing.T) {
	c := newCampus(t, func(o *OIDC) { o.Rules.Link = true })
	gone := storetest.User(c, c.store, "gone@example.org", false)
	c.want(200, c.admin, "PUT", "/users/"+id(gone.ID), `{"name":"Gone","admin":false,"disabled":true}`)
	ann := kim()
	ann.Email = "ann@example.org"
	c.provider.AddPerson(ann)
	v := c.guest()
	v.enter("kim")
	contains(t, v.me(), `"email":"ann@example.org"`, `"subject":"kim"`, `"role":"engineer"`)

	heir := openidtest.Person{Subject: "heir", Email: "ann@example.org", Verified: true}
	c.provider.AddPerson(heir)
	other := c.guest()
	other.refusal(other.signInBy("heir", "/"), http.StatusForbidden, "is linked to another identity at Example University")
	heir.Email = gone.Email
	c.provider.AddPerson(heir)
	other.refusal(other.signInBy("heir", "/"), http.StatusForbidden, "Your account is disabled.")
	if list := must(c.store.Read(t.Context()).Identities(gone.ID))(t); len(list) != 0 {
		t.Errorf("a disabled account was linked: %v", list)
	}
}

func TestGroupsGiveAndTake(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim("admins", "leads"))
	v, elsewhere := c.guest(), c.guest()
	v.enter("kim")
	elsewhere.enter("kim")
	contains(t, v.me(), `"admin":true`, `"role":"lead"`)

	c.provider.AddPerson(kim("engineers", "leads")) // no administrator any more; leads stand first
	again := c.guest()
	again.enter("kim")
	contains(t, again.me(), `"admin":false`, `"role":"lead"`)
	if v.me() != "" || elsewhere.me() != "" {
		t.Error("sessions from before go on")
	}
	c.provider.AddPerson(kim())
	again = c.guest()
	again.enter("kim")
	contains(t, again.me(), `"memberships":[]`)
	if got := c.audited(1)[0]; got != "weir sign-in delete member" {
		t.Errorf("audit: %s", got)
	}
	if c.get(c.member, "/me"); len(c.get(c.admin, "/projects/"+id(c.project)+"/members").body["items"].([]any)) != 2 {
		t.Error("others lost their places")
	}
}

func TestGroupsKeepTheQuota(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim("engineers")) // 110 of 200 cores are promised, one more asks for 100
	v := c.guest()
	page := v.enter("kim")
	contains(t, page.body, "assigns you the role engineer in the project vision, but this failed: ", "90 of the project&#39;s quota of 200 remaining")
	contains(t, v.me(), `"memberships":[]`)
	if got := c.audited(1)[0]; got != "weir sign-in refuse member" {
		t.Errorf("audit: %s", got)
	}
	contains(t, c.log.String(), "but this failed")

	c.provider.AddPerson(kim("leads", "engineers"))
	c.guest().enter("kim")
	c.want(204, c.manager, "DELETE", "/projects/"+id(c.project)+"/members/"+id(c.place), "")
	c.provider.AddPerson(kim("engineers"))
	v = c.guest()
	v.enter("kim")
	contains(t, v.me(), `"role":"engineer"`)
}

func TestLastAdministratorStays(t *testing.T) {
	c := newCampus(t, asIs)
	c.provider.AddPerson(kim("admins"))
	v := c.guest()
	v.enter("kim")
	storetest.InTx(c, c.store, func(q *store.Queries) error {
		root, err := q.User(1)
		if err != nil {
			return err
		}
		root.Disabled = true
		return q.UpdateUser(&root)
	})
	c.provider.AddPerson(kim())
	again := c.guest()
	contains(t, again.enter("kim").body, "but you are the last administrator")
	contains(t, again.me(), `"admin":true`)
	identity := c.store.Read(t.Context())
	list := must(identity.Identities(5))(t)
	if r := again.post(c.origin+"/people/5/identities/"+id(list[0].ID)+"/delete", nil); r.status != http.StatusConflict {
		t.Errorf("the last administrator's way in: %d", r.status)
	}
}
