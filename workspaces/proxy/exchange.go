package proxy

import (
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"time"
)

const dialTimeout = 5 * time.Second

// roundTrip sends a request. It does not close the request's body. The response
// must be closed.
func (t *transport) roundTrip(ctx context.Context, r *http.Request, to Target) (*http.Response, error) {
	at := notebook{to.Workspace, to.Generation}
	if c := t.take(at); c != nil {
		res, err := c.roundTrip(ctx, r)
		// The notebook may close a connection while a request is on its way.
		if err == nil || c.answered || !replayable(r) || ctx.Err() != nil {
			return res, err
		}
	}
	c, err := t.dial(ctx, at, to)
	if err != nil {
		return nil, err
	}
	return c.roundTrip(ctx, r)
}

// replayable reports whether a request can be sent twice.
func replayable(r *http.Request) bool {
	return r.Body == nil && (isRead(r) || r.Method == http.MethodOptions)
}

func (t *transport) dial(ctx context.Context, at notebook, to Target) (*conn, error) {
	if e := to.Endpoint; e.Network != "unix" && e.Network != "tcp" {
		return nil, fmt.Errorf("proxy: cannot dial network %q", e.Network)
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	dialed, err := dialer.DialContext(ctx, to.Endpoint.Network, to.Endpoint.Address)
	if err != nil {
		return nil, err
	}
	return newConn(t, at, dialed)
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
