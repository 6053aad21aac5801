package handlers

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/policies"
	"weir/policies/openid"
	"weir/policies/openid/openidtest"
)

// campus is a world that is served, whose people sign in by a real provider
// as well.
type campus struct {
	*world
	provider *openidtest.Provider
	origin   string
	later    atomic.Int64 // how far the clock is ahead, in nanoseconds
}

func newCampus(t *testing.T, set func(*OIDC)) *campus {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	c := &campus{origin: "http://" + server.Listener.Addr().String()}
	c.provider = openidtest.New(t)
	c.provider.SetRedirect(c.origin + oidcCallbackPath)
	c.world = newWorldWith(t, func(config *Config) {
		config.Store.Clock = func() time.Time { return time.Now().Add(time.Duration(c.later.Load())) }
		config.OIDC = &OIDC{Origin: c.origin, SessionMax: 10 * time.Minute,
			Rules: policies.ProviderRules{Name: "Example University", Domains: []string{"example.org"}, Groups: []policies.GroupRule{
				{Group: "admins", Admin: true}, {Group: "leads", Project: "vision", Role: "lead"}, {Group: "engineers", Project: "vision", Role: "engineer"}}},
			Provider: openid.New(openid.Config{Issuer: c.provider.Issuer, ClientID: openidtest.ClientID, ClientSecret: openidtest.ClientSecret,
				Name: "Example University", GroupsClaim: "groups", Now: config.Store.Now})}
		set(config.OIDC)
	})
	server.Config.Handler = c.app
	server.Start()
	t.Cleanup(server.Close)
	return c
}

func asIs(*OIDC) {}

// pass lets time go by.
func (c *campus) pass(d time.Duration) { c.later.Add(int64(d)) }

// kim is somebody whom the provider knows.
func kim(groups ...string) openidtest.Person {
	return openidtest.Person{Subject: "kim", Email: "Kim@Example.org", Verified: true, Name: "Kim Lee", Groups: groups}
}

// guest is a browser that follows no redirect by itself.
type guest struct {
	*campus
	http.Client
}

func (c *campus) guest() *guest {
	jar := must(cookiejar.New(nil))(c.TB)
	return &guest{c, http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// reply is what a browser got to see.
type reply struct {
	status   int
	location string
	body     string
	header   http.Header
}

func (v *guest) do(r *http.Request) reply {
	v.Helper()
	res := must(v.Do(r))(v.TB)
	defer res.Body.Close()
	return reply{res.StatusCode, res.Header.Get("Location"), string(must(io.ReadAll(res.Body))(v.TB)), res.Header}
}

func (v *guest) see(address string) reply {
	v.Helper()
	return v.do(must(http.NewRequestWithContext(v.Context(), http.MethodGet, address, nil))(v.TB))
}

func (v *guest) post(address string, form url.Values) reply {
	v.Helper()
	r := must(http.NewRequestWithContext(v.Context(), http.MethodPost, address, strings.NewReader(form.Encode())))(v.TB)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return v.do(r)
}

// leave goes to the provider, and returns where that is.
func (v *guest) leave(next string) string {
	v.Helper()
	r := v.see(v.origin + oidcPath + "?next=" + url.QueryEscape(next))
	if r.status != http.StatusSeeOther || !strings.HasPrefix(r.location, v.provider.Issuer) {
		v.Fatalf("leaving: %d %s %s", r.status, r.location, r.body)
	}
	return r.location
}

// signInAt signs in at the provider, and returns where it sends the browser.
func (v *guest) signInAt(address, subject string) string {
	v.Helper()
	page := v.see(address).location
	at := must(url.Parse(page))(v.TB)
	back := v.post(v.provider.Issuer+"/login/username", url.Values{"id": {at.Query().Get("authRequestID")}, "username": {subject}, "password": {openidtest.Password}})
	if r := v.see(back.location); strings.HasPrefix(r.location, v.origin+oidcCallbackPath+"?") {
		return r.location
	}
	v.Fatalf("at the provider: %d %s %s", back.status, back.location, back.body)
	return ""
}

// signInBy goes the whole way.
func (v *guest) signInBy(subject, next string) reply {
	v.Helper()
	return v.see(v.signInAt(v.leave(next), subject))
}

// enter is signInBy for who must be let in.
func (v *guest) enter(subject string) reply {
	v.Helper()
	r := v.signInBy(subject, "/account")
	if r.status != http.StatusSeeOther || r.location != "/account" {
		v.Fatalf("not let in: %d %s", r.status, r.body)
	}
	return v.see(v.origin + "/account")
}

// me is what REST says of who is signed in; empty when nobody is.
func (v *guest) me() string {
	v.Helper()
	if r := v.see(v.origin + apiPrefix + "/me"); r.status == http.StatusOK {
		return r.body
	}
	return ""
}

// audited lists the newest changes, as "actor action object".
func (c *campus) audited(n int) (list []string) {
	c.Helper()
	for _, e := range c.get(c.admin, "/audit?limit="+id(int64(n))).body["items"].([]any) {
		e := e.(map[string]any)
		list = append(list, e["actor"].(string)+" "+e["action"].(string)+" "+e["object"].(string))
	}
	return list
}

func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// refusal expects the sign-in page with a reason, and nobody signed in.
func (v *guest) refusal(r reply, status int, reason string) {
	v.Helper()
	if r.status != status {
		v.Errorf("status %d, want %d", r.status, status)
	}
	contains(v, r.body, reason, `role="alert"`, `action="/signin"`)
	if v.me() != "" {
		v.Errorf("somebody is signed in: %s", v.me())
	}
}
