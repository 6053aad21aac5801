package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"syscall"
	"time"
)

const (
	maxHeaderBytes = 64 << 10              // of all interim responses too; in memory it takes many times that
	uploadWait     = 50 * time.Millisecond // for the end of a body when the response is complete or there is none
)

var errHeaderSize = errors.New("proxy: the header of the response is too large")

// conn is a connection to a notebook, with at most one request at a time.
type conn struct {
	net.Conn
	pool      *transport
	to        notebook
	in        *bufio.Reader // of conn
	out       *bufio.Writer
	left      int64 // bytes that may still be read
	answered  bool  // something has been read since the last request was sent
	idleSince time.Time

	raw   syscall.RawConn
	look  func(fd uintptr) bool // sets quiet
	quiet bool                  // nothing can be read
}

func newConn(pool *transport, to notebook, dialed net.Conn) (*conn, error) {
	c := &conn{Conn: dialed, pool: pool, to: to, out: bufio.NewWriter(dialed)}
	c.in = bufio.NewReader(c)
	var err error
	c.raw, err = dialed.(syscall.Conn).SyscallConn()
	b := make([]byte, 1)
	c.look = func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), b)
		c.quiet = err == syscall.EAGAIN
		return true
	}
	return c, err
}

// Read reads as much of the response as may still be read.
func (c *conn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errHeaderSize
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.left)])
	c.left -= int64(n)
	c.answered = c.answered || n > 0
	return n, err
}

// usable reports whether an idle connection can be used again. The notebook must have
// neither closed it nor sent anything: what it sends before a request is not the
// response to that.
func (c *conn) usable(now time.Time) bool {
	c.quiet = false
	return now.Sub(c.idleSince) < idleTimeout && c.in.Buffered() == 0 && c.raw.Read(c.look) == nil && c.quiet
}

// roundTrip sends a request and returns the response to it. After an error, the
// connection is closed.
func (c *conn) roundTrip(ctx context.Context, r *http.Request) (*http.Response, error) {
	if err := ctx.Err(); err != nil { // it was cut before anything was sent
		c.Close()
		return nil, err
	}
	c.left, c.answered = maxHeaderBytes, false
	x := &exchange{conn: c, stop: context.AfterFunc(ctx, func() { c.Close() })}
	res, err := x.roundTrip(r)
	if err != nil {
		if ctx.Err() != nil { // before abandon, which ends it too
			err = ctx.Err()
		}
		x.abandon()
		return nil, err
	}
	c.left = math.MaxInt64
	x.body, x.reusable = res.Body, !res.Close
	if res.StatusCode == http.StatusSwitchingProtocols {
		res.Body = stream{c.in, c.Conn}
	} else {
		res.Body = x
	}
	return res, nil
}

// stream is a connection after an upgrade.
type stream struct {
	io.Reader // what has been read with the response, and the rest
	net.Conn
}

func (s stream) Read(b []byte) (int, error) { return s.Reader.Read(b) }

// exchange is one request and the response to it. It is the body of the response.
type exchange struct {
	conn     *conn
	body     io.ReadCloser
	stop     func() bool // the closing of the connection when the visitor leaves
	upload   *sending    // nil: there is no body to send
	reusable bool
	complete bool // the whole response was read
}

func (x *exchange) roundTrip(r *http.Request) (*http.Response, error) {
	if err := writeHead(x.conn.out, r); err != nil {
		return nil, err
	}
	if r.Body != nil {
		x.upload = startSending(x.conn, r)
	}
	for { // interim responses count as a part of the header
		res, err := http.ReadResponse(x.conn.in, r)
		if err != nil {
			return nil, err
		}
		final := res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols
		if x.upload != nil && (final || res.StatusCode == http.StatusContinue) {
			x.upload.decide(!final)
		}
		if final {
			return res, nil
		}
	}
}

func (x *exchange) Read(b []byte) (int, error) {
	n, err := x.body.Read(b)
	x.complete = x.complete || err == io.EOF
	return n, err
}

// waits reports whether the next Read may have to wait for the notebook.
func (x *exchange) waits() bool { return x.conn.in.Buffered() == 0 }

// Close keeps the connection for the next request if this one was sent, and the
// response to it read, completely.
func (x *exchange) Close() error {
	if x.complete && x.reusable && (x.upload == nil || x.upload.ends() && x.upload.err == nil) && x.stop() {
		x.conn.pool.put(x.conn)
		return nil
	}
	x.abandon()
	return nil
}

// abandon closes the connection and waits for the end of the sending, which does not
// wait for the visitor.
func (x *exchange) abandon() {
	x.stop()
	x.conn.Close()
	if x.upload != nil {
		x.upload.decide(false)
		if !x.upload.ends() { // the visitor has paused it
			x.upload.body.Close()
		}
		<-x.upload.finished
	}
}
