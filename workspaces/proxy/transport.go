package proxy

import (
	"slices"
	"sync"
	"time"
)

const (
	idleTimeout   = 60 * time.Second // shorter than Jupyter's, of an hour
	idleTotal     = 512
	idlePerTarget = 16
	copyBuffer    = 32 << 10
)

// transport sends requests to notebooks and keeps idle connections. It reads each
// response in the goroutine of its request; http.Transport has two more goroutines for
// each connection, through which every request passes.
type transport struct {
	continueWait time.Duration // for "100 Continue", before a body is sent without it

	mu     sync.Mutex
	closed bool
	idle   map[notebook][]*conn // the longest idle first
	total  int                  // of idle
}

// notebook is one generation of a workspace. Connections to a stopped generation are
// not used for the next one.
type notebook struct{ workspace, generation int64 }

func newTransport() *transport {
	return &transport{continueWait: time.Second, idle: map[notebook][]*conn{}}
}

// take returns an idle connection, or nil.
func (t *transport) take(at notebook) *conn {
	for {
		c := t.pop(at)
		if c == nil || c.usable(time.Now()) {
			return c
		}
		c.Close()
	}
}

func (t *transport) pop(at notebook) *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	conns := t.idle[at]
	if len(conns) == 0 {
		return nil
	}
	last := len(conns) - 1
	c := conns[last]
	conns[last], t.idle[at] = nil, conns[:last]
	t.total--
	return c
}

// put keeps a connection for the next request, or closes it.
func (t *transport) put(c *conn) {
	c.idleSince = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.total >= idleTotal || len(t.idle[c.to]) >= idlePerTarget {
		c.Close()
		return
	}
	t.idle[c.to] = append(t.idle[c.to], c)
	t.total++
}

// prune closes the connections that have been idle for too long or that the
// notebook has closed.
func (t *transport) prune(now time.Time) {
	t.keep(func(c *conn) bool { return c.usable(now) })
}

// close closes all idle connections, and later ones when they become idle.
func (t *transport) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.keep(func(*conn) bool { return false })
}

// keep closes the idle connections for which f is false.
func (t *transport) keep(f func(*conn) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for at, conns := range t.idle {
		kept := slices.DeleteFunc(conns, func(c *conn) bool {
			if f(c) {
				return false
			}
			c.Close()
			return true
		})
		t.total -= len(conns) - len(kept)
		if t.idle[at] = kept; len(kept) == 0 {
			delete(t.idle, at)
		}
	}
}

// buffers is a pool of buffers for copying requests and responses.
type buffers struct{ sync.Pool }

var copyBuffers = &buffers{sync.Pool{New: func() any { return new([copyBuffer]byte) }}}

func (b *buffers) Get() []byte  { return b.Pool.Get().(*[copyBuffer]byte)[:] }
func (b *buffers) Put(s []byte) { b.Pool.Put((*[copyBuffer]byte)(s)) }
