package main

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// countedServer serves at most eight connections, four of an address. A request of /wait is
// answered when release is closed.
func countedServer(t *testing.T, trusted ...netip.Prefix) (c *connections, address string, release chan struct{}) {
	t.Helper()
	release = make(chan struct{})
	c = newConnections(8, trusted, slog.New(slog.DiscardHandler))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			<-release
		}
		io.WriteString(w, "ok")
	}))
	server.Listener.Close()
	server.Listener = c.bound(l)
	server.Config.ConnState = c.changed
	server.Start()
	t.Cleanup(server.Close)
	return c, l.Addr().String(), release
}

// dialFrom connects from an address of this machine.
func dialFrom(t *testing.T, from, to string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// get sends a request and reports whether it is answered.
func get(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		return false
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && res.StatusCode == 200
}

// eventuallyIdle waits until a number of connections is open, and of them idle.
func eventuallyIdle(t *testing.T, c *connections, open, idle int) {
	t.Helper()
	deadline, tick := time.Now().Add(time.Minute), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		c.mu.Lock()
		isOpen, isIdle := c.open, c.idle.Len()
		c.mu.Unlock()
		if isOpen == open && isIdle == idle {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are open and %d idle, not %d and %d", isOpen, isIdle, open, idle)
		}
	}
}

// Who opens many connections gets no more than half of them, and idle ones give way.
func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	c, address, release := countedServer(t)
	var first net.Conn
	for i := range 5 {
		conn := dialFrom(t, "127.0.0.1", address)
		if !get(t, conn) {
			t.Fatalf("connection %d is not served", i)
		}
		if i == 0 {
			first = conn
		}
		eventuallyIdle(t, c, min(i+1, 4), min(i+1, 4))
	}
	if get(t, first) {
		t.Error("the connection that was idle for the longest time is still open")
	}
	for range 4 {
		if _, err := io.WriteString(dialFrom(t, "127.0.0.1", address), "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	eventuallyIdle(t, c, 4, 0)
	if get(t, dialFrom(t, "127.0.0.1", address)) {
		t.Error("a fifth connection is served")
	}
	if !get(t, dialFrom(t, "127.0.0.2", address)) {
		t.Error("another address is not served")
	}
	close(release)
	eventuallyIdle(t, c, 5, 5)
}

func TestConnectionsAreBoundedInAll(t *testing.T) {
	c, address, release := countedServer(t, netip.MustParsePrefix("127.0.0.9/32"))
	wait := func(from string) {
		if _, err := io.WriteString(dialFrom(t, from, address), "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for range 7 { // a trusted proxy's are those of everybody
		wait("127.0.0.9")
	}
	eventuallyIdle(t, c, 7, 0)
	if !get(t, dialFrom(t, "127.0.0.1", address)) {
		t.Error("the last one is not served")
	}
	eventuallyIdle(t, c, 8, 1)
	if !get(t, dialFrom(t, "127.0.0.2", address)) {
		t.Error("it does not take the place of an idle one")
	}
	eventuallyIdle(t, c, 8, 1)
	wait("127.0.0.3")
	eventuallyIdle(t, c, 8, 0)
	if get(t, dialFrom(t, "127.0.0.4", address)) {
		t.Error("a ninth connection is served")
	}
	close(release)
	eventuallyIdle(t, c, 8, 8)
}

// A network of IPv6 counts as one client, and a trusted proxy as none.
func TestAddressOfConnections(t *testing.T) {
	c := newConnections(8, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, slog.New(slog.DiscardHandler))
	for from, want := range map[string]string{
		"192.0.2.7:1":                  "192.0.2.7",
		"[::ffff:192.0.2.7]:1":         "192.0.2.7",
		"[2001:db8:1:2:3:4:5:6]:1":     "2001:db8:1:2::",
		"[fe80::1:2:3:4%eth0]:1":       "fe80::",
		"10.1.2.3:1":                   "invalid IP",
		"@a-socket-without-an-address": "invalid IP",
	} {
		if got := c.addressOf(from).String(); got != want {
			t.Errorf("%s counts for %s, not %s", from, got, want)
		}
	}
}

// Clients that send nothing, or slowly, hold no connection for good.
func TestServersEndSlowConnections(t *testing.T) {
	p := &portal{log: slog.New(slog.DiscardHandler)}
	counted := newConnections(8, nil, p.log)
	for name, c := range map[string]struct {
		server                     *http.Server
		header, read, write, pause time.Duration
	}{
		"portal": {p.newServer(http.NotFoundHandler(), counted), 10 * time.Second, time.Minute, 0, 2 * time.Minute}, // streams of events last
		"agents": {p.newAgentServer(counted), 10 * time.Second, 30 * time.Second, 30 * time.Second, 2 * time.Minute},
	} {
		got := []time.Duration{c.server.ReadHeaderTimeout, c.server.ReadTimeout, c.server.WriteTimeout, c.server.IdleTimeout}
		if want := []time.Duration{c.header, c.read, c.write, c.pause}; !slices.Equal(got, want) || c.server.ConnState == nil {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
