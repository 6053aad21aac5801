package e2e

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arrivals tells when the kernel received what was last read of a server, however late the reader was.
type arrivals struct{ last atomic.Int64 } // nanoseconds since 1970

func (a *arrivals) at() time.Time { return time.Unix(0, a.last.Load()) }

// transport makes a connection to a port of this machine for each request.
func (a *arrivals) transport(port int) *http.Transport {
	address := "127.0.0.1:" + strconv.Itoa(port)
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if err := stamping(); err != nil {
			return nil, err
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		return stamp(conn, a)
	}}
}

// stamped is a connection with SO_TIMESTAMPNS; see socket(7).
type stamped struct {
	net.Conn
	raw      syscall.RawConn
	arrivals *arrivals
}

func (c stamped) Read(b []byte) (n int, err error) {
	control := make([]byte, unix.CmsgSpace(16))
	used := 0
	if waited := c.raw.Read(func(fd uintptr) bool {
		n, used, _, _, err = unix.Recvmsg(int(fd), b, control, 0)
		return err != unix.EAGAIN && err != unix.EINTR
	}); waited != nil {
		return 0, waited
	}
	switch {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	messages, err := unix.ParseSocketControlMessage(control[:used])
	for _, m := range messages {
		if m.Header.Type == unix.SCM_TIMESTAMPNS { // a struct timespec
			c.arrivals.last.Store(int64(binary.NativeEndian.Uint64(m.Data)*1e9 + binary.NativeEndian.Uint64(m.Data[8:])))
			return n, nil
		}
	}
	return n, cmp.Or(err, errUnstamped)
}

var errUnstamped = errors.New("the kernel has not recorded when the data arrived")

// stamping makes the kernel record arrivals, which it begins some time after the first socket asks for them (see
// net_enable_timestamp in net/core/dev.c), and keeps it from ending that while the process lives.
var stamping = sync.OnceValue(func() error {
	reader, writer, err := stampedPair()
	if err != nil {
		return err
	}
	alwaysStamped = []net.Conn{reader, writer}
	for err = errUnstamped; errors.Is(err, errUnstamped); {
		if _, err := writer.Write([]byte{0}); err != nil {
			return err
		}
		_, err = reader.Read(make([]byte, 1))
	}
	return err
})

// alwaysStamped are connections that are not closed, also not as garbage.
var alwaysStamped []net.Conn

// stampedPair are both sides of a connection, of which the first one has SO_TIMESTAMPNS.
func stampedPair() (reader stamped, writer net.Conn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return reader, nil, err
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String()) // which the backlog accepts
	if err != nil {
		return reader, nil, err
	}
	if reader, err = stamp(conn, new(arrivals)); err != nil {
		return reader, nil, err
	}
	writer, err = listener.Accept()
	return reader, writer, err
}

// stamp has the kernel record when the data of a connection arrives.
func stamp(conn net.Conn, a *arrivals) (s stamped, err error) {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return s, err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) })
	return stamped{conn, raw, a}, cmp.Or(err, set)
}

// A line counts from when it came, not from when it was read.
func TestLateReaderKnowsArrival(t *testing.T) {
	t.Parallel()
	if err := stamping(); err != nil {
		t.Fatal(err)
	}
	reader, writer, err := stampedPair()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	before := time.Now()
	if _, err := io.WriteString(writer, "data"); err != nil {
		t.Fatal(err)
	}
	written := time.Now()
	time.Sleep(20 * time.Millisecond)
	if n, err := reader.Read(make([]byte, 8)); n != 4 || err != nil {
		t.Fatalf("%d bytes: %v", n, err)
	}
	if at := reader.arrivals.at(); at.Before(before) || at.After(written) {
		t.Errorf("written from %v to %v, arrived at %v", before, written, at)
	}
}
