package proxy

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/models"
)

func TestOpenIsSingleUse(t *testing.T) {
	w := newWorld(t, hello)
	w.opening["once"] = models.VisitCookie{Secret: "fresh", Expires: time.Now().Add(time.Hour), Path: "/tree?a=b"}

	res, _ := w.do(t, request(t, "GET", "/.weir/open?token=once", nil))
	cookie := res.Header.Get("Set-Cookie")
	for _, part := range []string{"weir_visit=fresh; Path=/; Expires=", "; HttpOnly; SameSite=Lax"} {
		if !strings.Contains(cookie, part) {
			t.Errorf("cookie %q lacks %q", cookie, part)
		}
	}
	if strings.Contains(cookie, "Domain") || strings.Contains(cookie, "Secure") {
		t.Errorf("cookie %q", cookie)
	}
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/tree?a=b" ||
		res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
	if res, body := w.do(t, request(t, "GET", "/tree", nil, "Cookie: weir_visit=fresh")); body != "hello" {
		t.Errorf("visit: %d %s", res.StatusCode, body)
	}

	_, used := w.do(t, request(t, "GET", "/.weir/open?token=once", nil, asBrowser))
	for _, target := range []string{"/.weir/open?token=never", "/.weir/open", sibling + "/.weir/open?token=once"} {
		res, body := w.do(t, request(t, "GET", target, nil, asBrowser))
		if res.StatusCode != http.StatusForbidden || body != used || res.Header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
}

func TestOpenSpendsNothingByMistake(t *testing.T) {
	w := newWorld(t, hello)
	w.opening["once"] = models.VisitCookie{Secret: "fresh", Path: "//evil.example/"}
	for _, r := range []*http.Request{
		request(t, "HEAD", "/.weir/open?token=once", nil),
		request(t, "POST", "/.weir/open?token=once", nil),
		request(t, "GET", "/.weir/else?token=once", nil, asOwner),
		request(t, "GET", sibling+"/.weir/open?token=once", nil),
	} {
		if res, _ := w.do(t, r); res.StatusCode < 400 {
			t.Errorf("%s %s: %d", r.Method, r.URL, res.StatusCode)
		}
	}
	res, _ := w.do(t, request(t, "GET", "/.weir/open?token=once", nil))
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/" {
		t.Errorf("%d %v", res.StatusCode, res.Header)
	}
}

// An address opens a page, and only of its workspace.
func TestOpensPage(t *testing.T) {
	for path, want := range map[string]string{"%2Fcode%2F%3Ffolder%3D%2Fhome": "/code/?folder=/home", "%2F%2Fevil.example%2F": "/",
		"https%3A%2F%2Fevil.example": "/", "": "/tree"} {
		w := newWorld(t, hello)
		w.opening["once"] = models.VisitCookie{Secret: "fresh", Path: "/tree"}
		res, _ := w.do(t, request(t, "GET", "/.weir/open?token=once&path="+path, nil))
		if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != want {
			t.Errorf("%s leads to %q; want %q", path, got, want)
		}
	}
}

func TestSecureCookies(t *testing.T) {
	w := newWorld(t, echoHeaders, func(c *Config) { c.Secure = true })
	w.opening["once"] = models.VisitCookie{Secret: "fresh", Path: "/"}
	res, _ := w.do(t, request(t, "GET", "/.weir/open?token=once", nil))
	if got := res.Header.Get("Set-Cookie"); got != "__Host-weir_visit=fresh; Path=/; HttpOnly; Secure; SameSite=Lax" {
		t.Error(got)
	}
	if res, _ := w.do(t, request(t, "GET", "/", nil, "Cookie: weir_visit=fresh")); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("a cookie without the prefix: %d", res.StatusCode)
	}
	_, body := w.do(t, request(t, "GET", "/", nil, "Cookie: __Host-weir_visit=fresh"))
	if !strings.Contains(body, `"X-Forwarded-Proto":["https"]`) {
		t.Error(body)
	}
}

func TestPlantedCookiesLockNobodyOut(t *testing.T) {
	w := newWorld(t, hello)
	planted := "Cookie: weir_visit=planted; weir_visit=" + ownerCookie
	if res, body := w.do(t, request(t, "GET", "/", nil, planted)); body != "hello" {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	many := "Cookie: " + strings.Repeat("weir_visit=planted; ", 100)
	w.asked = 0
	if res, _ := w.do(t, request(t, "GET", "/", nil, many)); res.StatusCode != http.StatusUnauthorized || w.asked > maxCookies {
		t.Errorf("%d after %d questions", res.StatusCode, w.asked)
	}
}

func TestWithoutCredential(t *testing.T) {
	w := newWorld(t, hello)
	for _, c := range []struct {
		name, method, target string
		headers              []string
		status               int
		location             string
	}{
		{"bookmark", "GET", "/", []string{"Sec-Fetch-Mode: navigate"}, 303, portal + "/workspaces/12/open"},
		{"bookmark that is too long", "GET", "/tree/" + strings.Repeat("a", 2000), []string{asBrowser}, 303, portal + "/workspaces/12/open"},
		{"bookmark of a page", "GET", "/tree/a%20b?x=1&token=weir_x", []string{asBrowser}, 303, portal + "/workspaces/12/open?path=%2Ftree%2Fa%2520b%3Fx%3D1"},
		{"stale cookie", "GET", "/", []string{asBrowser, "Cookie: weir_visit=old"}, 303, portal + "/workspaces/12/open"},
		{"unknown workspace", "GET", sibling + "/", []string{asBrowser}, 303, portal + "/workspaces/13/open"},
		{"script", "GET", "/api", []string{"Sec-Fetch-Mode: cors", asBrowser}, 401, ""},
		{"program", "GET", "/api", nil, 401, ""},
		{"wrong token", "GET", "/api", []string{"Authorization: Bearer weir_wrong"}, 401, ""},
		{"notebook's own token is none", "GET", "/api", []string{"Authorization: token " + secret}, 401, ""},
		{"token in the query is none", "GET", "/api?token=" + ownerBearer, nil, 401, ""},
		{"wrong token hides the cookie", "GET", "/api", []string{"Authorization: token weir_wrong", asOwner}, 401, ""},
		{"form", "POST", "/api", []string{asBrowser}, 401, ""},
		{"socket", "GET", "/api", []string{asBrowser, "Upgrade: websocket", "Connection: Upgrade", "Origin: " + own}, 401, ""},
	} {
		res, _ := w.do(t, request(t, c.method, c.target, nil, c.headers...))
		if res.StatusCode != c.status || res.Header.Get("Location") != c.location {
			t.Errorf("%s: %d %q", c.name, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, hello)
	w.refusal[14] = models.Conflict("This workspace is stopped.")
	w.refusal[15] = errors.New("password of the database is 1234")
	w.refusal[16] = models.Unavailable(errors.New("1234"), "The database is away.")
	w.refusal[17] = &models.Error{Kind: models.KindNotFound, Message: models.Say("foreign")}
	w.refusal[18] = models.InsufficientScope(models.ScopeLaunch)
	for id, c := range map[string]struct {
		status int
		detail string
	}{
		"18": {403, "This needs an access token with the scope launch."},
		"13": {404, "The workspace was not found."},
		"17": {404, "The workspace was not found."},
		"14": {409, "This workspace is stopped."},
		"15": {500, "Something went wrong. Try again in a moment."},
		"16": {503, "The database is away."},
	} {
		target := "http://ws-" + id + "." + domain + "/"
		res, body := w.do(t, request(t, "GET", target, nil, asProgram))
		var problem struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal([]byte(body), &problem); err != nil || res.StatusCode != c.status || problem.Status != c.status ||
			problem.Detail != c.detail || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s", id, res.StatusCode, body)
		}
		if got := res.Header.Get("WWW-Authenticate"); (got == `Bearer error="insufficient_scope", scope="launch"`) != (c.status == 403) {
			t.Errorf("%s: WWW-Authenticate %q", id, got)
		}
		res, body = w.do(t, request(t, "GET", target, nil, asOwner, asBrowser))
		if res.StatusCode != c.status || !strings.Contains(body, c.detail) || !strings.HasPrefix(body, "<!doctype html>") {
			t.Errorf("%s: %d %s", id, res.StatusCode, body)
		}
		if got, want := res.Header.Get("Content-Security-Policy"), "frame-ancestors 'self' "+portal; got != want {
			t.Errorf("%s: Content-Security-Policy %q, want %q", id, got, want)
		}
	}
}

// Jupyter's own logout ends the visit, and nobody else's page can end it.
func TestLogoutEndsTheVisit(t *testing.T) {
	w := newWorld(t, hello)
	w.opening["once"] = models.VisitCookie{Secret: "fresh", Expires: time.Now().Add(time.Hour), Path: "/"}
	w.do(t, request(t, "GET", "/.weir/open?token=once", nil))
	const cookie = "Cookie: weir_visit=fresh"
	for _, site := range []string{"cross-site", "same-site"} {
		for _, mode := range []string{"no-cors", "navigate"} {
			res, _ := w.do(t, request(t, "GET", "/logout", nil, cookie, "Sec-Fetch-Site: "+site, "Sec-Fetch-Mode: "+mode, asBrowser))
			if res.StatusCode != http.StatusForbidden {
				t.Errorf("%s, %s: %d", site, mode, res.StatusCode)
			}
		}
	}
	if res, body := w.do(t, request(t, "GET", "/tree", nil, cookie)); body != "hello" {
		t.Errorf("visit: %d %s", res.StatusCode, body)
	}
	res, body := w.do(t, request(t, "GET", "/logout", nil, cookie, "Sec-Fetch-Site: same-origin", "Sec-Fetch-Mode: navigate"))
	if res.StatusCode != http.StatusSeeOther || !strings.HasSuffix(res.Header.Get("Location"), "/workspaces/12") || strings.Contains(body, "hello") ||
		!strings.Contains(res.Header.Get("Set-Cookie"), "weir_visit=; Path=/; Max-Age=0") {
		t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
	}
	if res, body := w.do(t, request(t, "GET", "/tree", nil, cookie)); body == "hello" {
		t.Errorf("after the logout: %d %s", res.StatusCode, body)
	}
}
