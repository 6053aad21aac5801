package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

var errUpgrade = errors.New("proxy: the notebook switches protocols without being asked")

// upgrade connects a WebSocket.
func (f *flow) upgrade(res *http.Response) {
	notebook := res.Body.(stream)
	defer notebook.Close()
	if !isWebSocket(f.r) || !strings.EqualFold(res.Header.Get("Upgrade"), "websocket") {
		f.fail(errUpgrade)
		return
	}
	conn, rw, err := http.NewResponseController(f.w).Hijack()
	if err != nil {
		f.fail(err)
		return
	}
	defer conn.Close()
	if f.closeOnCut(conn) != nil || f.closeOnCut(notebook) != nil {
		return
	}
	f.clean(res.Header)
	res.Body = nil                                        // the tunnel is
	res.Status, res.ProtoMajor, res.ProtoMinor = "", 1, 1 // the notebook's may contain anything
	visitor := visitor{conn, f}
	if err := res.Write(visitor); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		early, _ := rw.Reader.Peek(rw.Reader.Buffered())
		io.Copy(tunnel{notebook, f}, io.MultiReader(bytes.NewReader(early), conn))
		notebook.Close()
	}()
	// The visitor may still be sending when the notebook has ended.
	if _, err := io.Copy(visitor, notebook); err != nil || visitor.CloseWrite() != nil {
		conn.Close()
	}
	<-done
}

// visitor is the visitor's side of a WebSocket. It has no ReadFrom: the
// kernel would copy without checking the lease.
type visitor struct {
	net.Conn
	f *flow
}

func (v visitor) Write(b []byte) (int, error) {
	return v.f.write(v.Conn, b)
}

// CloseWrite ends the data of the notebook.
func (v visitor) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return v.Conn.Close()
}

// tunnel is the notebook's side of a WebSocket.
type tunnel struct {
	io.ReadWriteCloser
	f *flow
}

func (t tunnel) Write(b []byte) (int, error) {
	n, err := t.f.write(t.ReadWriteCloser, b)
	if err == nil && !isControlFrame(b) {
		t.f.p.activity.touch(t.f.workspace, time.Now())
	}
	return n, err
}

// isControlFrame guesses whether b is a ping, pong or close frame, which a browser
// sends without its user. The guess may be wrong within a message, whose beginning
// has been recorded as activity.
func isControlFrame(b []byte) bool {
	const opcode, firstControl, longest = 0x0f, 0x8, 2 + 4 + 125
	return len(b) > 0 && len(b) <= longest && b[0]&opcode >= firstControl
}
