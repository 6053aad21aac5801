package handlers

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/handlers/live"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// eventsGreeting is how a stream begins: browsers come back after 2 s.
const eventsGreeting = ": weir\nretry: 2000\n\n"

// patient is how long a test waits for what happens at once.
const patient = time.Minute

// serve lets real connections reach the world's App.
func (w *world) serve() *httptest.Server {
	s := httptest.NewServer(w.app)
	w.Cleanup(s.Close)
	return s
}

// streams counts those that are open.
func (w *world) streams() int {
	n, _ := w.app.events.Count()
	return n
}

// openEvents opens a stream, as a browser would but for its headers.
func openEvents(t testing.TB, s *httptest.Server, token, query string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/events?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Header.Set("Authorization", "Bearer "+token); strings.Contains(token, "=") {
		r.Header.Del("Authorization")
		r.Header.Set("Cookie", token)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	res, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// newSession is the cookie of somebody new, who may see no project.
func (w *world) newSession() string {
	w.create(w.admin, "/users", `{"name":"kim","email":"kim@example.org","password":"correct horse"}`)
	return w.signIn("kim@example.org", "correct horse")
}

// nextEvent reads up to the next event and returns its topic; "" at the end.
func nextEvent(t testing.TB, r *bufio.Reader) string {
	t.Helper()
	for {
		text, err := r.ReadString('\n')
		if err == io.EOF {
			return ""
		}
		if err != nil {
			t.Fatal(err)
		}
		if topic, ok := strings.CutPrefix(text, "data: "); ok {
			return strings.TrimSpace(topic)
		}
	}
}

// soon polls until something is so.
func soon(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patient); !so(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s", patient, what)
		}
	}
}

func TestEventStream(t *testing.T) {
	for _, c := range []struct {
		name    string
		inFront func(testing.TB, *httptest.Server) *httptest.Server
	}{
		{"direct", func(_ testing.TB, s *httptest.Server) *httptest.Server { return s }},
		{"behind a reverse proxy", proxied},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			eventStream(t, w, c.inFront(t, w.serve()))
		})
	}
}

// proxied puts a reverse proxy in front of a server.
func proxied(t testing.TB, s *httptest.Server) *httptest.Server {
	target, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }})
	t.Cleanup(front.Close)
	return front
}

func eventStream(t *testing.T, w *world, s *httptest.Server) {
	res := openEvents(t, s, w.newSession(), "topic=pool&topic=projects")
	if got := res.Header; res.StatusCode != 200 || got.Get("Content-Type") != "text/event-stream" || got.Get("Cache-Control") != "no-store" ||
		got.Get("X-Accel-Buffering") != "no" || res.ContentLength != -1 {
		t.Errorf("%s %v, of length %d", res.Status, got, res.ContentLength)
	}
	body := bufio.NewReader(res.Body)
	start := make([]byte, len(eventsGreeting))
	if _, err := io.ReadFull(body, start); err != nil || string(start) != eventsGreeting {
		t.Fatalf("it begins with %q, %v", start, err)
	}
	w.create(w.admin, "/projects", `{"name":"audio","quota":`+some+beyond+`}`)
	if got := nextEvent(t, body); got != "projects" {
		t.Errorf("told of %q", got)
	}
	w.app.Close()
	if got := nextEvent(t, body); got != "" {
		t.Errorf("told of %q at the end", got)
	}
}

func TestEventStreamsAreRefused(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	many := strings.Repeat("topic=pool&", live.MaxTopics+1)
	reservation := w.create(w.member, "/reservations", reserve(w.project))
	for _, c := range []struct {
		token, query string
		status       int
	}{
		{"nonsense", "topic=pool", 401},
		{w.member, "", 422},
		{w.member, many, 422},
		{w.member, "topic=secrets", 404},
		{w.member, "topic=pool&topic=user:1", 404},
		{w.stranger, "topic=project:" + id(w.project), 404},
		{w.stranger, "topic=workspace:1", 404},
		{w.stranger, "topic=reservation:" + id(reservation), 404},
		{w.member, "topic=reservation:" + id(reservation), 200},
		{w.member, "topic=reservation:" + id(reservation+1), 404},
		{w.member, "topic=project:" + id(w.project), 200},
	} {
		if res := openEvents(t, s, c.token, c.query); res.StatusCode != c.status {
			t.Errorf("%s: %s, not %d", c.query, res.Status, c.status)
		}
	}
	// What cannot be taken out of the HTTP server is refused, too.
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/events?topic=pool", nil)
	r.Header.Set("Authorization", "Bearer "+w.member)
	w.app.ServeHTTP(httptest.NewRecorder(), r)
	if n := w.streams(); n != 2 || !strings.Contains(w.log.String(), "feature not supported") {
		t.Errorf("%d streams are open; the log: %s", n, w.log)
	}
}

// Who is removed from a project hears no more of it, and who signs out of
// nothing.
func TestRightsEndStreams(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	projects := openEvents(t, s, w.member, "topic=project:"+id(w.project))
	cookie := w.newSession()
	session := openEvents(t, s, cookie, "topic=pool")
	w.want(204, w.manager, "DELETE", "/projects/"+id(w.project)+"/members/"+id(w.place), "")
	for body := bufio.NewReader(projects.Body); ; {
		if nextEvent(t, body) == "" {
			break
		}
	}
	if n := w.streams(); n != 1 {
		t.Errorf("%d streams are open, not the one of the pool", n)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/signout", nil)
	r.Header.Set("Cookie", cookie)
	w.app.ServeHTTP(httptest.NewRecorder(), r)
	if n := w.streams(); n != 0 {
		t.Errorf("%d streams are open after signing out", n)
	}
	for body := bufio.NewReader(session.Body); ; {
		if nextEvent(t, body) == "" {
			break
		}
	}
}

// A right that ends while a stream begins ends it, too.
func TestRightEndsWhileStreamBegins(t *testing.T) {
	w := newWorld(t)
	cookie := w.newSession()
	w.store.Clock = func() time.Time {
		if w.streams() > 0 {
			return time.Now().Add(2 * w.app.SessionLifetime)
		}
		return time.Now()
	}
	if res := openEvents(t, w.serve(), cookie, "topic=pool"); res.StatusCode != http.StatusUnauthorized || w.streams() != 0 {
		t.Errorf("%s, and %d streams are open", res.Status, w.streams())
	}
}

// An open stream has no goroutine and nothing of the HTTP server's; one
// whose reader has left is found, and nothing of it is left.
func TestStreamsEndWithTheirReaders(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	const viewers = 50
	var conns []net.Conn
	open := func() {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		_, err = io.WriteString(conn, "GET /events?topic=pool HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+w.member+"\r\n\r\n")
		if err == nil {
			err = conn.SetReadDeadline(time.Now().Add(patient))
		}
		if err != nil {
			t.Fatal(err)
		}
		head, err := readUntil(conn, "retry: 2000\n\n")
		if err != nil || !strings.HasPrefix(head, "HTTP/1.1 200 OK\r\n") || !strings.Contains(head, "\r\nConnection: close\r\n") ||
			!strings.HasSuffix(head, "\r\n\r\n"+eventsGreeting) {
			t.Fatalf("%q, %v", head, err)
		}
		conns = append(conns, conn)
	}
	before := runtime.NumGoroutine()
	for range viewers {
		open()
	}
	soon(t, "the HTTP server's goroutines end", func() bool { return runtime.NumGoroutine() < before+viewers/2 })
	storetest.InTx(t, w.store, func(q *store.Queries) error { q.Touch("pool"); return nil })
	for _, conn := range conns {
		if _, err := readUntil(conn, "event: change\ndata: pool\n\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns[:viewers/2] {
		conn.Close()
	}
	soon(t, "who has left is forgotten", func() bool { return w.streams() == viewers/2 })
	w.app.Close()
	for _, conn := range conns[viewers/2:] {
		if rest, err := io.ReadAll(conn); err != nil || strings.Contains(string(rest), "data:") {
			t.Errorf("at the end: %q, %v", rest, err)
		}
	}
}

func readUntil(r io.Reader, end string) (text string, err error) {
	b := make([]byte, 1)
	for !strings.HasSuffix(text, end) {
		if _, err := io.ReadFull(r, b); err != nil {
			return text, err
		}
		text += string(b)
	}
	return text, nil
}

// The stream's request is counted when its head is written, not when it ends.
func TestStreamMetrics(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	openEvents(t, s, w.member, "topic=pool")
	storetest.InTx(t, w.store, func(q *store.Queries) error { q.Touch("pool"); return nil })
	soon(t, "the stream is counted", func() bool {
		r := httptest.NewRecorder()
		w.app.ServeHTTP(r, scraper(t, "/metrics"))
		lines := strings.Split(r.Body.String(), "\n")
		return slices.Contains(lines, "weir_event_streams 1") && slices.Contains(lines, "weir_events_encoded_total 1") &&
			slices.Contains(lines, `weir_http_request_duration_seconds_count{method="GET",route="/events",status="200"} 1`)
	})
}

// A server that has lost the others begins no stream.
func TestNoStreamApart(t *testing.T) {
	w := newWorld(t)
	w.app.Holds = func() bool { return false }
	if res := openEvents(t, w.serve(), w.member, "topic=pool"); res.StatusCode != http.StatusServiceUnavailable || w.streams() != 0 {
		t.Errorf("%s, and %d streams are open", res.Status, w.streams())
	}
}

func TestTooManyStreamsOfOneUser(t *testing.T) {
	w := newWorld(t)
	s := w.serve()
	me := int64(w.get(w.member, "/me").body["id"].(float64))
	var mine []*live.Stream
	for range live.MaxStreams {
		mine = append(mine, w.app.events.Subscribe(policies.Actor{User: models.User{ID: me}, Session: "s"}, []string{"pool"}, ""))
	}
	refused := openEvents(t, s, w.member, "topic=pool")
	if text, err := io.ReadAll(refused.Body); refused.StatusCode != http.StatusTooManyRequests || err != nil || !strings.Contains(string(text), "You have reached the maximum of 64 open live pages") {
		t.Errorf("%s: %s, %v", refused.Status, text, err)
	}
	if other := openEvents(t, s, w.stranger, "topic=pool"); other.StatusCode != 200 {
		t.Errorf("somebody else is answered %s", other.Status)
	}
	w.app.events.Drop(mine[0])
	if again := openEvents(t, s, w.member, "topic=pool"); again.StatusCode != 200 {
		t.Errorf("after one was closed: %s", again.Status)
	}
}
