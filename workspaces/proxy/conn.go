package proxy

import (
	"bufio"
	"errors"
	"net"
	"syscall"
	"time"
)

const maxHeaderBytes = 64 << 10 // of all interim responses too; in memory it takes many times that

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
