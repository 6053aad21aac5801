package handlers

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var linkIn = regexp.MustCompile(`http://example\.com(/(?:invitation|password)\?token=[\w-]+)`)

// link is the one-time link on a page or in a response.
func (w *world) link(body string) string {
	w.Helper()
	m := linkIn.FindStringSubmatch(body)
	if m == nil {
		w.Fatalf("no link in %.2000s", body)
	}
	return m[1]
}

// cookieOf is the session that a response begins.
func (w *world) cookieOf(h http.Header) string {
	w.Helper()
	for _, c := range (&http.Response{Header: h}).Cookies() {
		if c.Name == SessionCookie(w.app.Secure) {
			return c.Name + "=" + c.Value
		}
	}
	w.Fatalf("no session: %v", h)
	return ""
}

// A manager invites somebody, who chooses a name and a password and is a member.
func TestInvitationPages(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	at := path("projects", w.project, "invitations")
	guest := id(w.create(w.admin, path("projects", w.project, "roles"), `{"name":"guest","permission":"member","limit":`+slice+`}`))
	root.shows(root.page(200, "GET", at+"/new"), "Email addresses", "engineer")
	root.shows(root.page(422, "POST", at, "emails", "new@example.org, bad;ann@example.org", "role_id", id(w.role)), "bad: must be an email address", `href="#f-emails"`)
	root.shows(root.page(422, "POST", at, "emails", "new@example.org,ann@example.org", "role_id", id(w.role)), "ann@example.org: is already a member")
	root.shows(root.page(409, "POST", at, "emails", "a@example.org b@example.org", "role_id", id(w.role)), "exceed a quota or limit")
	made := root.page(201, "POST", at, "emails", "\r\nNew@example.org ", "role_id", guest)
	link := w.link(made)
	root.shows(made, "new@example.org", "They will not be shown again.", "pending")
	root.shows(root.page(200, "GET", at), "new@example.org", "pending", "!token=")
	root.shows(root.page(200, "GET", "/invitations"), "new@example.org", "vision", "ada@example.org")

	offer := w.visit("GET", link, nil)
	if body := offer.Body.String(); offer.Code != 200 || !strings.Contains(body, "Invitation to the project vision") || !strings.Contains(body, "guest") {
		t.Fatalf("the link shows %d %s", offer.Code, body)
	}
	form := url.Values{"name": {"New"}, "password": {"correct horse"}, "password_again": {"correct horse!"}}
	if rec := w.visit("POST", link, form); rec.Code != 422 || !strings.Contains(rec.Body.String(), "does not match") {
		t.Errorf("another password again: %d", rec.Code)
	}
	form.Set("password_again", "correct horse")
	accepted := w.visit("POST", link, form)
	if accepted.Code != 303 {
		t.Fatalf("accepting: %d %s", accepted.Code, accepted.Body)
	}
	mine := w.visit("GET", path("projects", w.project), nil, "Cookie", w.cookieOf(accepted.Header()))
	if mine.Code != 200 || !strings.Contains(mine.Body.String(), "your role: guest") {
		t.Errorf("the new member sees %d", mine.Code)
	}
	for _, method := range []string{"GET", "POST"} {
		if rec := w.visit(method, link, form); rec.Code != 409 || !strings.Contains(rec.Body.String(), "has already been accepted") {
			t.Errorf("%s again: %d %s", method, rec.Code, rec.Body)
		}
		if rec := w.visit(method, "/invitation?token=x", form); rec.Code != 404 {
			t.Errorf("%s of another link: %d", method, rec.Code)
		}
	}
	root.shows(root.page(200, "GET", at), "accepted", "!pending")
}

// The twins: invitations over REST, by the rules of the pages.
func TestInvitationsOverREST(t *testing.T) {
	w := newWorld(t)
	at := "/projects/" + id(w.project) + "/invitations"
	fields := w.problem(w.want(422, w.manager, "POST", at, `{"emails":["x@example.org","bad"],"role_id":`+id(w.role)+`}`))
	if !strings.Contains(fields["emails[1]"], "must be an email address") {
		t.Errorf("refused with %v", fields)
	}
	w.problem(w.want(403, w.member, "POST", at, `{"emails":["x@example.org"],"role_id":`+id(w.role)+`}`))
	w.problem(w.want(404, w.stranger, "POST", at, `{"emails":["x@example.org"],"role_id":`+id(w.role)+`}`))
	guest := w.create(w.admin, "/projects/"+id(w.project)+"/roles", `{"name":"guest","permission":"member","limit":`+slice+`}`)
	made := w.want(201, w.manager, "POST", at, `{"emails":["eve@example.org"],"role_id":`+id(guest)+`}`)
	_, token, _ := strings.Cut(w.link(made.raw), "token=")
	accept := `{"token":"` + token + `"}`
	w.problem(w.want(401, "", "POST", "/invitations/accept", accept))
	w.problem(w.want(403, w.member, "POST", "/invitations/accept", accept))
	w.problem(w.want(404, w.stranger, "POST", "/invitations/accept", `{"token":"x"}`))
	if got := w.want(200, w.stranger, "POST", "/invitations/accept", accept).body["email"]; got != "eve@example.org" {
		t.Errorf("accepted as %v", got)
	}
	w.problem(w.want(409, w.stranger, "POST", "/invitations/accept", accept))
	w.store.Mail = true
	sent := w.want(201, w.manager, "POST", at, `{"emails":["fay@example.org"],"role_id":`+id(guest)+`}`)
	if strings.Contains(sent.raw, "token=") || !strings.Contains(sent.raw, "fay@example.org") {
		t.Errorf("a link that is sent is shown: %s", sent.raw)
	}
	w.store.Mail = false
	made = w.want(201, w.admin, "POST", "/invitations", `{"emails":["p@example.org","q@example.org"],"auditor":true}`)
	second := int64(made.body["items"].([]any)[1].(map[string]any)["id"].(float64))
	w.want(204, w.admin, "DELETE", "/invitations/"+id(second), "")
	w.problem(w.want(409, w.admin, "DELETE", "/invitations/"+id(second), ""))
	var states []string
	list := w.get(w.admin, "/invitations?limit=2").body
	for _, i := range list["items"].([]any) {
		states = append(states, i.(map[string]any)["state"].(string))
	}
	if strings.Join(states, " ") != "revoked pending" || list["next_cursor"] == nil {
		t.Errorf("listed %v, %v", states, list["next_cursor"])
	}
}

// Nobody types another's password: an administrator makes a link for it.
func TestPasswordLinkPages(t *testing.T) {
	w := newWorld(t)
	root := w.visitor("ada@example.org", true)
	ann := w.get(w.member, "/me").body["id"].(float64)
	page := root.page(201, "POST", path("people", int64(ann), "password-link"))
	link := w.link(page)
	root.shows(root.page(200, "GET", path("people", int64(ann))), "Create password link", "!token=", `!type="password"`)
	form := url.Values{"password": {"another horse"}, "password_again": {"another horse"}}
	if rec := w.visit("GET", link, nil); rec.Code != 200 || !strings.Contains(rec.Body.String(), "ann@example.org") {
		t.Errorf("the link shows %d", rec.Code)
	}
	root.shows(root.page(200, "GET", link), "You are signed in as ada@example.org. This link is for ann@example.org")
	if rec := w.visit("POST", link, url.Values{"password": {"short"}}); rec.Code != 422 {
		t.Errorf("a short password: %d", rec.Code)
	}
	rec := w.visit("POST", link, form)
	if rec.Code != 303 || w.visit("GET", "/account", nil, "Cookie", w.cookieOf(rec.Header())).Code != 200 {
		t.Errorf("the new password: %d %s", rec.Code, rec.Body)
	}
	w.want(401, w.member, "GET", "/me", "") // tokens end with the password
	for _, method := range []string{"GET", "POST"} {
		if rec := w.visit(method, link, form); rec.Code != 404 {
			t.Errorf("%s again: %d", method, rec.Code)
		}
	}
	w.signIn("ann@example.org", "another horse")
}

// The answer to a forgotten password is the same whether an account has the address.
func TestForgottenPasswordPages(t *testing.T) {
	w := newWorld(t)
	if rec := w.visit("POST", "/password/forgot", url.Values{"email": {"ann@example.org"}}); rec.Code != 409 {
		t.Errorf("without mail: %d", rec.Code)
	}
	w.store.Mail = true
	var answers []string
	for _, email := range []string{"ann@example.org", "nobody@example.org"} {
		rec := w.visit("POST", "/password/forgot", url.Values{"email": {email}})
		answers = append(answers, strings.ReplaceAll(rec.Body.String(), email, ""))
		if rec.Code != 200 {
			t.Errorf("%s: %d", email, rec.Code)
		}
		if rec := w.send("", "POST", "/password/forgot", `{"email":"`+email+`"}`); rec.status != 204 || rec.raw != "" {
			t.Errorf("%s over REST: %d %s", email, rec.status, rec.raw)
		}
	}
	if answers[0] != answers[1] {
		t.Errorf("%s\nand\n%s", answers[0], answers[1])
	}
	if rec := w.visit("POST", "/password/forgot", url.Values{"email": {"bad"}}); rec.Code != 422 {
		t.Errorf("no address: %d", rec.Code)
	}
}
