package main

import (
	"container/list"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Parts of the descriptors of this process. A visit needs one to the notebook beside its own,
// so that over a third is the reserve of the database, of the reconciler and of what it starts.
const (
	portalConnections = 4  // of the limit, for the portal
	agentConnections  = 16 // for the agents
)

// descriptors is how many files this process can have open. The Go runtime has raised the
// soft limit to the hard one.
func descriptors() (int, error) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0, err
	}
	const most = 1 << 20 // also where there is no limit
	return int(min(limit.Cur, most)), nil
}

// connections bounds the open connections of a server, in all and by address, so that it
// keeps descriptors for its own work. Those beyond take the place of the connection that has
// been idle for the longest time, or are closed at once.
type connections struct {
	most, mostOf int            // mostOf is of an address
	trusted      []netip.Prefix // proxies, whose connections are those of everybody
	sandboxes    *sandboxUsers  // whose connections are refused; nil: none are
	log          *slog.Logger

	mu      sync.Mutex
	open    int
	of      map[netip.Addr]int
	idle    *list.List // of *connection, longest first
	refused time.Time  // when it was logged last
}

// connection is an open connection that is counted.
type connection struct {
	*net.TCPConn
	from   *connections
	addr   netip.Addr
	idling *list.Element // in idle, or nil
	closed bool
}

func newConnections(most int, trusted []netip.Prefix, log *slog.Logger) *connections {
	most = max(most, 8)
	return &connections{most: most, mostOf: most / 2, trusted: trusted, log: log, of: map[netip.Addr]int{}, idle: list.New()}
}

// bound returns a listener whose connections are counted.
func (c *connections) bound(l net.Listener) net.Listener { return boundListener{l, c} }

type boundListener struct {
	net.Listener
	connections *connections
}

func (l boundListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			return conn, nil
		}
		if s := l.connections.sandboxes; s == nil || !s.opened(tcp) {
			if counted := l.connections.admit(tcp); counted != nil {
				return counted, nil
			}
		}
		_ = tcp.Close() // refused
	}
}

// admit counts a connection; nil if it is beyond the bounds.
func (c *connections) admit(conn *net.TCPConn) *connection {
	counted := &connection{TCPConn: conn, from: c, addr: c.addressOf(conn.RemoteAddr().String())}
	c.mu.Lock()
	defer c.mu.Unlock()
	full := c.open >= c.most
	if fullOf := counted.addr.IsValid() && c.of[counted.addr] >= c.mostOf; full || fullOf {
		if !c.evict(func(other *connection) bool { return !fullOf || other.addr == counted.addr }) {
			c.logRefusal(counted, fullOf)
			return nil
		}
	}
	c.open++
	c.of[counted.addr]++
	counted.idling = c.idle.PushBack(counted) // until its first request
	return counted
}

// addressOf is what a connection from an address and port counts for; invalid if only in all.
func (c *connections) addressOf(remote string) netip.Addr {
	from, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	addr := from.Addr().Unmap()
	for _, p := range c.trusted {
		if p.Contains(addr) {
			return netip.Addr{}
		}
	}
	if addr.Is6() {
		network, _ := addr.WithZone("").Prefix(64)
		return network.Addr()
	}
	return addr
}

// evict closes the connection that has been idle for the longest time of those that match.
func (c *connections) evict(matches func(*connection) bool) bool {
	for e := c.idle.Front(); e != nil; e = e.Next() {
		if other := e.Value.(*connection); matches(other) {
			c.forget(other)
			_ = other.TCPConn.Close() // as if its time had been over
			return true
		}
	}
	return false
}

// forget stops counting a connection. The caller must have locked mu.
func (c *connections) forget(conn *connection) {
	if conn.closed {
		return
	}
	conn.closed = true
	c.open--
	if c.of[conn.addr]--; c.of[conn.addr] == 0 {
		delete(c.of, conn.addr)
	}
	c.setIdle(conn, false)
}

func (c *connections) setIdle(conn *connection, idle bool) {
	switch {
	case idle && conn.idling == nil && !conn.closed:
		conn.idling = c.idle.PushBack(conn)
	case !idle && conn.idling != nil:
		c.idle.Remove(conn.idling)
		conn.idling = nil
	}
}

// changed is [http.Server.ConnState].
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	counted, ok := conn.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setIdle(counted, state == http.StateIdle || state == http.StateNew)
}

func (c *connections) logRefusal(conn *connection, ofAddress bool) {
	now := time.Now()
	if now.Sub(c.refused) < time.Minute {
		return
	}
	c.refused = now
	bound := c.most
	if ofAddress {
		bound = c.mostOf
	}
	c.log.Warn("too many connections are open; further ones are closed", "address", conn.RemoteAddr().String(), "open", bound,
		"remedy", "raise the limit of open files (LimitNOFILE)")
}

func (conn *connection) Close() error {
	conn.from.mu.Lock()
	conn.from.forget(conn)
	conn.from.mu.Unlock()
	return conn.TCPConn.Close()
}
