package handlers

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"weir/models"
)

// What a stream says beside changes.
var (
	greeting = []byte(": weir\nretry: 2000\n\n") // browsers come back after 2 s
	alive    = []byte(": alive\n\n")
)

// patience is how many beats may find a viewer behind.
const patience = 2

var (
	errNotReading = errors.New("the reader does not read")
	errApart      = models.Unavailable(nil, "This server has lost the others of the portal. Try again in a moment.")
)

// line is a viewer's connection. None of its methods waits.
type line interface {
	// Write takes as much as there is room for, perhaps nothing.
	Write(b []byte) (n int, err error)
	// Left tells whether the reader has hung up.
	Left() bool
	Close() error
}

// viewer is one event stream: what it has still to be told, and where. There
// are many of them, so it is small, and what viewers have in common is shared.
type viewer struct {
	follower *follower

	mu      sync.Mutex
	line    line // nil until the response's head is written
	gone    bool
	late    uint8     // beats that found it behind
	pending topicBits // changed, and not yet in rest
	rest    []byte    // begun and not yet written; shared, never changed
}

// frames returns the prepared bytes that tell of some of an audience's topics.
type frames func(*audience, topicBits) []byte

// send tells the viewer of changed topics; frame is how. What its line does
// not take now is kept.
func (v *viewer) send(bits topicBits, frame []byte, f frames) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.line == nil || v.behind() {
		v.pending |= bits
	} else {
		v.rest = frame
	}
	return v.flush(f)
}

// attach gives the viewer its line. False: the stream has ended already.
func (v *viewer) attach(l line, f frames) (ok bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.gone {
		return false, nil
	}
	v.line, v.rest = l, greeting
	return true, v.flush(f)
}

// beat keeps the connection alive, and fails when the reader has hung up or
// has not been reading for some beats.
func (v *viewer) beat(f frames) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.line == nil || v.gone {
		return nil
	}
	if v.line.Left() {
		return net.ErrClosed
	}
	if !v.behind() {
		v.rest = alive
	}
	if err := v.flush(f); err != nil || !v.behind() {
		return err
	}
	if v.late++; v.late >= patience {
		return errNotReading
	}
	return nil
}

// left tells whether the viewer's reader has hung up.
func (v *viewer) left() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.line != nil && !v.gone && v.line.Left()
}

func (v *viewer) behind() bool { return len(v.rest) > 0 || v.pending != 0 }

// flush writes what there is to write, as far as the line takes it.
func (v *viewer) flush(f frames) error {
	if v.line == nil || v.gone {
		return nil
	}
	for v.behind() {
		if len(v.rest) == 0 {
			v.rest, v.pending = f(v.follower.audience, v.pending), 0
		}
		n, err := v.line.Write(v.rest)
		if v.rest = v.rest[n:]; err != nil || len(v.rest) > 0 {
			return err
		}
	}
	v.rest, v.late = nil, 0
	return nil
}

// close ends the stream, whether it has begun or not.
func (v *viewer) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.line != nil && !v.gone {
		_ = v.line.Close() // nothing is lost: what was written is on its way
	}
	v.gone = true
}

// tcpLine is the line of a TCP connection.
type tcpLine struct {
	net.Conn
	raw   syscall.RawConn
	holds func() bool // that anything may be written now
}

// newTCPLine takes a connection over, and closes it if it cannot.
func newTCPLine(conn net.Conn, holds func() bool) (*tcpLine, error) {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("event streams need a plain connection, not a %T", conn), conn.Close())
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &tcpLine{conn, raw, holds}, nil
}

// Write goes to the socket itself: a deadline would cost a timer, and still
// wait.
func (l *tcpLine) Write(b []byte) (n int, err error) {
	if !l.holds() {
		return 0, errApart
	}
	outer := l.raw.Write(func(fd uintptr) bool {
		n, err = ignoringEINTR(func() (int, error) { return syscall.Write(int(fd), b) })
		return true
	})
	if n = max(n, 0); errors.Is(err, syscall.EAGAIN) {
		err = nil
	}
	return n, errors.Join(outer, err)
}

// Left reads whatever the reader sends, which means nothing, until its end.
func (l *tcpLine) Left() bool {
	var junk [64]byte
	var n int
	var err error
	outer := l.raw.Read(func(fd uintptr) bool {
		n, err = ignoringEINTR(func() (int, error) { return syscall.Read(int(fd), junk[:]) })
		return true
	})
	return outer != nil || n == 0 || err != nil && !errors.Is(err, syscall.EAGAIN)
}

func ignoringEINTR(call func() (int, error)) (n int, err error) {
	for n, err = call(); err == syscall.EINTR; {
		n, err = call()
	}
	return n, err
}
