package handlers

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A page of a notebook plants a cookie of a session, for a part of the portal or for all of it,
// before or after the person signs in: nothing is done as somebody else, and the next request is
// the person's again.
func TestPlantedSessions(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"kim", "mallory"} {
		w.create(w.admin, "/users", `{"email":"`+name+`@example.org","name":"`+name+`","password":"correct horse"}`)
	}
	own, foreign := w.signIn("kim@example.org", "correct horse"), w.signIn("mallory@example.org", "correct horse")
	for _, c := range []struct {
		name, cookies, page string // as a signed-in person; empty: of nobody
	}{
		{"alone", own, "kim"},
		{"twice", own + "; " + own, "kim"},
		{"worthless, first", "weir=planted; " + own, "kim"},
		{"worthless, last", own + "; weir=planted", "kim"},
		{"of another session, first", foreign + "; " + own, ""},
		{"of another session, last", own + "; " + foreign, ""},
		{"many", strings.Repeat("weir=x; ", 50) + "weir=1; weir=2; weir=3; weir=4; " + own, ""},
	} {
		rec := w.visit(http.MethodGet, "/tokens", nil, "Cookie", "other=1; "+c.cookies)
		if c.page == "" && (rec.Code != http.StatusSeeOther || rec.Header().Get("Location") != "/signin?next=%2Ftokens") ||
			c.page != "" && (rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), ">"+c.page+"<")) {
			t.Errorf("%s: %d %v", c.name, rec.Code, rec.Header())
		}
		if c.page == "" {
			res := w.visit(http.MethodPost, "/tokens", url.Values{"name": {"planted"}}, "Cookie", c.cookies)
			if res.Code != http.StatusUnauthorized {
				t.Errorf("%s: a token: %d", c.name, res.Code)
			}
		}
	}
}

// The browser is told to forget the cookie wherever it can have been planted, and to keep the portal's own.
func TestPlantedSessionsAreRemoved(t *testing.T) {
	for host, domains := range map[string][]string{
		"weir.example.org:8080": {"", "weir.example.org", "example.org"},
		"[::1]:8080":            {""},
		"10.0.0.7":              {""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/tokens/7/delete?x=/y/", nil)
		r.Host = host
		var got, want []string
		for _, c := range plantedCookies(r, "weir") {
			got = append(got, c.Domain+c.Path)
		}
		for _, domain := range domains {
			for _, path := range []string{"/", "/tokens", "/tokens/", "/tokens/7", "/tokens/7/", "/tokens/7/delete"} {
				want = append(want, domain+path)
			}
		}
		if want = want[1:]; !slices.Equal(got, want) { // without the portal's own
			t.Errorf("%s: %q", host, got)
		}
	}
	w := newWorld(t)
	rec := w.visit(http.MethodGet, "/", nil, "Cookie", "weir=1; weir=2")
	c, err := http.ParseSetCookie(rec.Header().Get("Set-Cookie"))
	if err != nil || c.Name != "weir" || c.Value != "" || c.MaxAge >= 0 || c.Domain != "example.com" {
		t.Errorf("%v, %v", c, err)
	}
}
