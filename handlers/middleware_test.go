package handlers

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

// visit is a request of a browser; headers come in pairs.
func (w *world) visit(method, target string, form url.Values, headers ...string) *httptest.ResponseRecorder {
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(w.Context(), method, target, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, r)
	return rec
}

// No form of another site, of a workspace or of an older browser reaches a
// page's handler.
func TestCrossSiteFormsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	cookie := w.signIn("kim@example.org", "correct horse")
	before := w.counts()
	posts := 0
	for _, route := range w.app.echo.Routes() {
		if route.Method != http.MethodPost || strings.HasPrefix(route.Path, apiPrefix) {
			continue
		}
		posts++
		path := strings.NewReplacer(":id", "1", ":role", "1", ":member", "1").Replace(route.Path)
		for name, headers := range map[string][]string{
			"of another site":                 {"Sec-Fetch-Site", "cross-site"},
			"of a workspace":                  {"Sec-Fetch-Site", "same-site"},
			"of another site, an old browser": {"Origin", "https://evil.example"},
			"of a workspace, an old browser":  {"Origin", "http://ws-1.example.com"},
			"without an origin":               {"Origin", "null"},
		} {
			rec := w.visit(http.MethodPost, path, url.Values{"email": {"kim@example.org"}, "password": {"correct horse"}, "language": {"zh"}},
				append(headers, "Cookie", cookie)...)
			if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "Cross-site requests are not allowed.") || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("POST %s %s: %d %v", path, name, rec.Code, rec.Header())
			}
		}
	}
	if after := w.counts(); posts < 10 || !maps.Equal(after, before) {
		t.Errorf("after %d forms there is %v, before there was %v", posts, after, before)
	}
	if rec := w.visit(http.MethodPost, "/signout", url.Values{}, "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); rec.Code != http.StatusSeeOther {
		t.Errorf("the portal's own form: %d %s", rec.Code, rec.Body)
	}
}

// The portal is not served on the host of a workspace, however it is spelled:
// a notebook's script would read its pages.
func TestHostsOfWorkspacesDoNotServeThePortal(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	cookie := w.signIn("kim@example.org", "correct horse")
	for host, want := range map[string]int{
		"ws-1.localhost:8080":  http.StatusUnauthorized, // of the proxy
		"ws-1.localhost":       http.StatusNotFound,
		"ws-1.localhost:8081":  http.StatusNotFound,
		"ws-01.localhost:8080": http.StatusNotFound,
		"WS-1.localhost:8080":  http.StatusNotFound,
		"ws-1.evil.example":    http.StatusNotFound,
		"ws-":                  http.StatusNotFound,
	} {
		for _, path := range []string{"/", "/signin", "/account", apiPrefix + "/me", "/healthz", "/static/weir.css"} {
			rec := w.visit(http.MethodGet, "http://"+host+path, nil, "Cookie", cookie)
			if rec.Code != want || strings.Contains(rec.Body.String(), "Kim") || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("GET %s%s: %d %v", host, path, rec.Code, rec.Header())
			}
		}
		rec := w.visit(http.MethodPost, "http://"+host+"/signin", url.Values{"email": {"kim@example.org"}, "password": {"correct horse"}})
		if rec.Code != want || rec.Header().Get("Set-Cookie") != "" {
			t.Errorf("POST %s/signin: %d %v", host, rec.Code, rec.Header())
		}
	}
	if rec := w.visit(http.MethodGet, "http://localhost:8080/", nil, "Cookie", cookie); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "Kim") {
		t.Errorf("the portal's host: %d", rec.Code)
	}
}

func TestSessionCookie(t *testing.T) {
	for _, secure := range []bool{false, true} {
		w := newWorldWith(t, func(c *Config) { c.Secure = secure })
		w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
		res := w.visit(http.MethodPost, "/signin", url.Values{"email": {"kim@example.org"}, "password": {"correct horse"}}).Result()
		cookies := res.Cookies()
		if len(cookies) != 2 {
			t.Fatalf("signing in: %s, cookies %v", res.Status, cookies)
		}
		name := map[bool]string{false: "weir", true: "__Host-weir"}[secure]
		for i, c := range cookies {
			if c.Name != []string{name + "-device", name}[i] || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure != secure ||
				c.Path != "/" || c.Domain != "" {
				t.Errorf("secure is %t: %s", secure, c)
			}
		}
	}
}

// Who has signed in before in a browser can do so again there, whatever strangers try elsewhere.
func TestADeviceIsNotLockedOut(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	signIn := func(password string, headers ...string) *http.Response {
		return w.visit(http.MethodPost, "/signin", url.Values{"email": {"kim@example.org"}, "password": {password}}, headers...).Result()
	}
	device := signIn("correct horse").Cookies()[0]
	for range 10 {
		signIn("wrong")
	}
	if res := signIn("correct horse"); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("another browser: %s", res.Status)
	}
	if res := signIn("correct horse", "Cookie", "weir-device=planted; weir-device="+device.Value); res.StatusCode != http.StatusSeeOther {
		t.Errorf("the browser: %s", res.Status)
	}
}

// A database whose file was damaged under the server does not answer.
func TestReadyReadsTheDatabase(t *testing.T) {
	w := newWorld(t)
	db := must(w.store.SQL())(t)
	var path string
	if err := db.QueryRow("SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	whole := must(os.ReadFile(path))(t)
	for _, c := range []struct {
		name   string
		file   []byte
		status int
		says   string
	}{
		{"whole", whole, http.StatusOK, "database: ok (sqlite)"},
		{"empty", nil, http.StatusServiceUnavailable, "database: does not answer"},
		{"cut", whole[:4096], http.StatusServiceUnavailable, "database: does not answer"},
		{"overwritten", bytes.Repeat([]byte("x"), len(whole)), http.StatusServiceUnavailable, "database: does not answer"},
		{"whole again", whole, http.StatusOK, "database: ok (sqlite)"},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if rec := w.visit(http.MethodGet, readyPath, nil); rec.Code != c.status || !strings.HasPrefix(rec.Body.String(), c.says) {
			t.Errorf("%s: %d %s", c.name, rec.Code, rec.Body)
		}
	}
}

// Pages and the health check name the disk that is full.
func TestAFullDiskIsNamed(t *testing.T) {
	w := newWorld(t)
	w.store.AddDisk(models.Say("the shared directories"), "/proc") // which has no space
	const full = "The disk of the shared directories is full: 0 MiB is left"
	for _, path := range []string{"/signin", readyPath} {
		if rec := w.visit(http.MethodGet, path, nil); rec.Code != http.StatusOK || !strings.Contains(strings.ReplaceAll(rec.Body.String(), "\u00a0", " "), full) {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// A name that somebody else lets resolve to this machine is not the portal's: its pages
// would be able to read what they get.
func TestOtherHostsAreRefused(t *testing.T) {
	w := newWorld(t)
	w.create(w.admin, "/users", `{"email":"kim@example.org","name":"Kim","password":"correct horse"}`)
	cookie := w.signIn("kim@example.org", "correct horse")
	for _, host := range []string{"rebound.example", "rebound.example:8080", "localhost.example", "weir.example.org.evil.example",
		"127.0.0.1.evil.example", "example.com.", ""} {
		for _, path := range []string{"/", "/signin", apiPrefix + "/me", "/healthz/x", "/metrics", "/static/weir.css", "/nothing"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = host
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Authorization", "Bearer "+metricsToken)
			rec := httptest.NewRecorder()
			w.app.ServeHTTP(rec, r)
			body := rec.Body.String()
			if rec.Code != http.StatusMisdirectedRequest || strings.Contains(body, "Kim") || rec.Header().Get("Set-Cookie") != "" {
				t.Errorf("GET %s at %q: %d", path, host, rec.Code)
			}
			if !strings.Contains(body, "hosts (WEIR_HOSTS)") {
				t.Errorf("GET %s at %q does not name the setting: %s", path, host, body)
			}
		}
		for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "database: ok ("} { // a load balancer's
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.Host = host
			rec := httptest.NewRecorder()
			if w.app.ServeHTTP(rec, r); rec.Code != http.StatusOK || !strings.HasPrefix(rec.Body.String(), want) {
				t.Errorf("GET %s at %q: %d %s", path, host, rec.Code, rec.Body)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/signin", strings.NewReader("email=kim@example.org&password=correct+horse"))
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if rec.Code != http.StatusMisdirectedRequest || rec.Header().Get("Set-Cookie") != "" {
			t.Errorf("POST /signin at %q: %d", host, rec.Code)
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]", "10.1.2.3", "Weir.example.org:8443"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil)
		r.Host = host
		rec := httptest.NewRecorder()
		if w.app.ServeHTTP(rec, r); rec.Code != http.StatusOK {
			t.Errorf("at %q: %d", host, rec.Code)
		}
	}
}

// The portal's own headers are on every response, also on refusals.
func TestPortalHeaders(t *testing.T) {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; frame-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	for _, secure := range []bool{false, true} {
		w := newWorldWith(t, func(c *Config) { c.Secure = secure })
		transport := map[bool][]string{true: {"max-age=31536000"}}[secure]
		for path, status := range map[string]int{"/": 303, "/signin": 200, "/nothing": 303, "/healthz": 200, "/static/nothing": 404,
			apiPrefix + "/me": 401, apiPrefix + "/openapi.json": 200, "/metrics": 401} {
			rec := w.visit(http.MethodGet, path, nil)
			caching, sharing := "no-store", "same-origin"
			if strings.HasSuffix(path, "/openapi.json") {
				caching = "private, no-cache"
			}
			if strings.HasPrefix(path, "/static/") { // the page of a stopped workspace, on its own origin, uses them
				caching, sharing = "", "cross-origin"
			}
			for name, want := range map[string][]string{
				"Content-Security-Policy":      {policy},
				"X-Content-Type-Options":       {"nosniff"},
				"Referrer-Policy":              {"same-origin"},
				"Cross-Origin-Opener-Policy":   {"same-origin"},
				"Cross-Origin-Resource-Policy": {sharing},
				"X-Frame-Options":              {"DENY"},
				"Strict-Transport-Security":    transport,
			} {
				if got := rec.Header()[name]; !slices.Equal(got, want) {
					t.Errorf("GET %s, secure is %t: %s is %q, want %q", path, secure, name, got, want)
				}
			}
			if got := rec.Header().Get("Cache-Control"); rec.Code != status || got != caching {
				t.Errorf("GET %s: %d, Cache-Control %q, want %d, %q", path, rec.Code, got, status, caching)
			}
		}
	}
}

// A request with a Content-Length beside chunks ends its connection: what follows could have
// been a part of it for a proxy in front. So does one at a workspace's host.
func TestNothingFollowsChunks(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.app)
	defer server.Close()
	for _, host := range []string{"localhost", "ws-1.localhost:8080"} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		const hidden = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
		fmt.Fprintf(conn, "POST /signin HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s", host, 5+len(hidden), hidden)
		answers, err := io.ReadAll(conn)
		if n := strings.Count(string(answers), "HTTP/1.1 "); err != nil || n != 1 || !strings.Contains(string(answers), "Connection: close\r\n") {
			t.Errorf("%s: %d answers, %v:\n%s", host, n, err, answers)
		}
	}
}
