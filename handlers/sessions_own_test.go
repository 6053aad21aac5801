package handlers

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

var endSession = regexp.MustCompile(`/account/sessions/(\d+)/end`)

// TestOwnSessions are listed with where they began, and end one by one or together.
func TestOwnSessions(t *testing.T) {
	e := newEntrance(t)
	kim, phone, tablet, stranger := &door{entrance: e}, &door{entrance: e}, &door{entrance: e}, &door{entrance: e}
	for _, d := range []*door{kim, phone, tablet} {
		e.clock.Advance(time.Second)
		d.entersPassword("/pool")
	}
	e.create(e.admin, "/users", `{"name":"Lee","email":"lee@example.org","password":"correct horse"}`)
	stranger.leads("/pool", "/signin", "email", "lee@example.org", "password", "correct horse", "next", "/pool")
	account := kim.page(200, "GET", "/account")
	ends := endSession.FindAllString(account, -1)
	if len(ends) != 2 || strings.Count(account, "this browser") != 1 || !strings.Contains(account, "192.0.2.1") {
		t.Fatalf("sessions %v in %s", ends, account)
	}
	last := ends[0] // the tablet's
	kim.page(200, "GET", last)
	kim.page(200, "GET", "/account/sessions/end")
	stranger.page(404, "GET", last)
	stranger.page(404, "POST", last)
	tablet.page(409, "POST", last)
	kim.leads("/account", last)
	tablet.page(303, "GET", "/account")
	phone.page(200, "GET", "/account")
	kim.page(404, "POST", last)
	kim.leads("/account", "/account/sessions/end")
	phone.page(303, "GET", "/account")
	stranger.page(200, "GET", "/account")
	if page := kim.page(200, "GET", "/account"); endSession.MatchString(page) || !strings.Contains(page, "Your other sessions were ended.") {
		t.Errorf("after all ended: %s", page)
	}
}

func TestOwnSessionsOverREST(t *testing.T) {
	e := newEntrance(t)
	kim, other := &door{entrance: e}, &door{entrance: e}
	kim.entersPassword("/pool")
	token := e.token("kim@example.org")
	sessions := func() []any { return e.get(token, "/me/sessions").body["items"].([]any) }
	first := sessions()
	if len(first) != 1 || first[0].(map[string]any)["present"] != false || first[0].(map[string]any)["used_at"] != nil {
		t.Fatalf("%v", first)
	}
	began := first[0].(map[string]any)["began_at"]
	e.clock.Advance(4 * time.Minute)
	kim.page(200, "GET", "/account")
	if s := sessions()[0].(map[string]any); s["used_at"] != nil || s["began_at"] != began {
		t.Errorf("a use soon after the beginning was recorded: %v", s)
	}
	e.clock.Advance(2 * time.Minute)
	kim.page(200, "GET", "/account")
	now := e.clock.Now().UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
	if s := sessions()[0].(map[string]any); s["used_at"] != now {
		t.Errorf("a use at %s was not recorded: %v", now, s)
	}
	own := e.want(200, "", "GET", "/me/sessions", "", "Cookie", kim.cookie).body["items"].([]any)
	if own[0].(map[string]any)["present"] != true {
		t.Errorf("%v", own)
	}
	at := path("me/sessions", int64(own[0].(map[string]any)["id"].(float64)))
	e.problem(e.want(409, "", "DELETE", at, "", "Cookie", kim.cookie, "Sec-Fetch-Site", "same-origin"))
	e.problem(e.want(404, e.member, "DELETE", at, ""))
	e.want(204, token, "DELETE", at, "")
	kim.page(303, "GET", "/account")
	e.problem(e.want(404, token, "DELETE", at, ""))
	other.entersPassword("/pool")
	e.want(204, token, "DELETE", "/me/sessions", "")
	other.page(303, "GET", "/account")
	if left := sessions(); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

func TestOwnName(t *testing.T) {
	e := newEntrance(t)
	kim := &door{entrance: e}
	kim.entersPassword("/pool")
	if page := kim.page(422, "POST", "/account", "name", " "); !strings.Contains(page, "must not be empty") || strings.Count(page, `class="summary"`) != 1 {
		t.Errorf("without a name: %s", page)
	}
	if page := kim.page(422, "POST", "/account", "name", "Kim", "time_zone", "Local"); !strings.Contains(page, "is not a known time zone") {
		t.Errorf("with the time zone of the server: %s", page)
	}
	kim.leads("/account", "/account", "name", " Kim Lee ", "time_zone", "Asia/Shanghai")
	if page := kim.page(200, "GET", "/pool"); !strings.Contains(page, `data-time-zone="Asia/Shanghai"`) {
		t.Errorf("pages show another time zone: %s", page)
	}
	if page := kim.page(200, "GET", "/account"); !strings.Contains(page, "<h1>Kim Lee</h1>") || !strings.Contains(page, "Saved.") {
		t.Errorf("%s", page)
	}
	kim.page(409, "POST", "/account", "name", "Kim", "version", "1") // another tab
	token := e.token("kim@example.org")
	me := e.get(token, "/me")
	if me.body["name"] != "Kim Lee" || me.body["time_zone"] != "Asia/Shanghai" {
		t.Errorf("%s", me.raw)
	}
	tag := me.header.Get("ETag")
	if got := e.want(200, token, "PUT", "/me", `{"name":"Kim"}`, "If-Match", tag); got.body["name"] != "Kim" || got.body["time_zone"] != "Asia/Shanghai" {
		t.Errorf("%s", got.raw)
	}
	e.problem(e.want(412, token, "PUT", "/me", `{"name":"Lee"}`, "If-Match", tag))
	if fields := e.problem(e.want(422, token, "PUT", "/me", `{"name":"","time_zone":"Mars/Crater"}`)); len(fields) != 2 {
		t.Errorf("%v", fields)
	}
}
