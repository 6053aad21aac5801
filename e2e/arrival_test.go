package e2e

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"strconv"
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
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		raw, err := conn.(*net.TCPConn).SyscallConn()
		if err != nil {
			return nil, err
		}
		var set error
		if err := raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1) }); err != nil {
			return nil, err
		}
		return stamped{conn, raw, a}, set
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
		}
	}
	return n, err
}

// A line counts from when it came, not from when it was read.
func TestLateReaderKnowsArrival(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conns := make(chan net.Conn, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conns <- conn
		}
	}()
	var a arrivals
	reader, err := a.transport(listener.Addr().(*net.TCPAddr).Port).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	writer := <-conns
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
	if at := a.at(); at.Before(before) || at.After(written) {
		t.Errorf("written from %v to %v, arrived at %v", before, written, at)
	}
}
