package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// Of what a revocation names, what may not go on is cut; nothing else is
// even asked about.
func TestRevokedCutsWhatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		keys   []string
		change func(*gate)
		cut    bool
	}{
		"refused":        {[]string{"user:7"}, func(g *gate) { delete(g.good, Credential{Bearer: ownerBearer}) }, true},
		"stopped":        {[]string{"session:a"}, func(g *gate) { delete(g.targets, 12) }, true},
		"cannot be told": {[]string{"project:3", "user:7"}, func(g *gate) { g.refusal[12] = io.ErrUnexpectedEOF }, true},
		"may stay":       {[]string{"user:7"}, func(*gate) {}, false},
		"others":         {[]string{"user:8", "workspace:12"}, func(g *gate) { delete(g.targets, 12) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, echo)
			w.targets[12] = tied(w.targets[12], "user:7", "session:a")
			one, two := w.socket(t, "/", asProgram), w.socket(t, "/", asProgram)
			w.echoes(t, one, "hello")
			w.echoes(t, two, "hello")
			w.change(func() { c.change(w.gate); w.asked = 0 })
			w.proxy.Revoked(t.Context(), c.keys)
			if !c.cut {
				w.echoes(t, one, "still there")
				w.echoes(t, two, "still there")
				return
			}
			eventually(t, "the flows end", func() bool { return len(w.proxy.flows.all()) == 0 })
			for _, conn := range []*websocket.Conn{one, two} {
				wantClosed(t, conn)
			}
			if w.change(func() {}); w.asked != 1 {
				t.Errorf("the gate was asked %d times", w.asked)
			}
		})
	}
}

func tied(target Target, keys ...string) Target {
	target.RevocationKeys = keys
	return target
}

// A right that goes while its visitor is being let in: the gate has said yes,
// and is asked again.
func TestRevokedDuringAdmission(t *testing.T) {
	var p *Proxy
	var g *gate
	once := false
	w := newWorld(t, hello, func(c *Config) {
		c.Gate = gateBefore{c.Gate, func() {
			if once {
				return
			}
			once = true
			g.change(func() { delete(g.good, Credential{Bearer: ownerBearer}) })
			p.Revoked(context.Background(), []string{"user:7"})
		}}
	})
	p, g = w.proxy, w.gate
	if res, body := w.do(t, request(t, "GET", "/", nil, asProgram)); res.StatusCode != http.StatusUnauthorized || strings.Contains(body, "hello") {
		t.Errorf("let in: %s %s", res.Status, body)
	}
}

// What a flow opens when it has been cut is closed at once.
func TestCutFlowsOpenNothing(t *testing.T) {
	w := newWorld(t, hello)
	f := w.proxy.begin(httptest.NewRecorder(), request(t, "GET", "/", nil), 12)
	defer f.end()
	f.cut()
	notebook, visitor := net.Pipe()
	defer visitor.Close()
	if err := f.closeOnCut(notebook); err == nil {
		t.Error("a flow that was cut takes a connection")
	}
	if err := notebook.SetDeadline(time.Now()); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("its connection is open: %v", err)
	}
}

func TestCut(t *testing.T) {
	w := newWorld(t, echo)
	c := w.socket(t, "/", asProgram)
	w.proxy.Cut()
	wantClosed(t, c)
	w.echoes(t, w.socket(t, "/", asProgram), "whoever may comes back")
}

// losing is a visitor during one of whose calls the server loses its lease.
type losing struct {
	*httptest.ResponseRecorder
	during string
	lost   chan struct{} // closed then
	late   []string      // the calls after that
}

func (l *losing) holds() bool {
	select {
	case <-l.lost:
		return false
	default:
		return true
	}
}

func (l *losing) call(name string) {
	if !l.holds() {
		l.late = append(l.late, name)
	} else if name == l.during {
		close(l.lost)
	}
}

func (l *losing) Write(b []byte) (int, error) {
	l.call("write")
	return l.ResponseRecorder.Write(b)
}

func (l *losing) Flush() {
	l.call("flush")
	l.ResponseRecorder.Flush()
}

// Of a download, no piece is written and none that was written is sent once the lease is
// lost.
func TestLeaseIsCheckedForEachPiece(t *testing.T) {
	for _, during := range []string{"write", "flush"} {
		got := &losing{ResponseRecorder: httptest.NewRecorder(), during: during, lost: make(chan struct{})}
		w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "3")
			io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			<-got.lost
			io.WriteString(w, "b")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}), func(c *Config) { c.LeaseHeld = got.holds })
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Errorf("during a %s: the download is taken for complete", during)
				}
			}()
			w.proxy.ServeHTTP(got, request(t, "GET", "/", nil, asProgram).WithContext(within(t)))
		}()
		if len(got.late) > 0 {
			t.Errorf("lost during a %s: then %q", during, got.late)
		}
	}
}

// A server that has lost the others passes no byte on, in no direction, as
// soon as it wakes.
func TestApartNothingPasses(t *testing.T) {
	var holds atomic.Bool
	var got atomic.Int64 // messages and pieces that reached the notebook
	more := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == "PUT":
			for b := make([]byte, 1); ; got.Add(1) {
				if _, err := io.ReadFull(r.Body, b); err != nil {
					return
				}
			}
		case isWebSocket(r):
			c, err := websocket.Accept(w, r, nil)
			if err != nil {
				return
			}
			defer c.CloseNow()
			go func() {
				<-more
				_ = c.Write(r.Context(), websocket.MessageText, []byte("after")) // goes as far as the proxy
			}()
			for {
				if _, _, err := c.Read(r.Context()); err != nil {
					return
				}
				got.Add(1)
			}
		default:
			io.WriteString(w, "before")
			w.(http.Flusher).Flush()
			<-more
			io.WriteString(w, "after")
		}
	}), func(c *Config) { c.LeaseHeld = holds.Load })
	holds.Store(true)

	socket := w.socket(t, "/", asProgram)
	if err := socket.Write(within(t), websocket.MessageText, []byte("x")); err != nil {
		t.Fatal(err)
	}
	body, upload := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if res, err := w.client.Do(request(t, "PUT", "/", body, asProgram).WithContext(within(t))); err == nil {
			res.Body.Close()
		}
	}()
	io.WriteString(upload, "x")
	download, err := w.client.Do(request(t, "GET", "/", nil, asProgram).WithContext(within(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer download.Body.Close()
	if _, err := io.ReadFull(download.Body, make([]byte, len("before"))); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both pieces arrive", func() bool { return got.Load() == 2 })

	holds.Store(false)
	close(more)
	if rest, err := io.ReadAll(download.Body); err == nil || len(rest) > 0 {
		t.Errorf("the download went on with %q, %v", rest, err)
	}
	_ = socket.Write(within(t), websocket.MessageText, []byte("x")) // goes as far as the proxy
	wantClosed(t, socket)
	io.WriteString(upload, "x")
	upload.Close() // the client waits for its own sending
	<-ended
	if res, _ := w.do(t, request(t, "GET", "/", nil, asProgram)); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("let in: %s", res.Status)
	}
	eventually(t, "the flows end", func() bool { return len(w.proxy.flows.all()) == 0 })
	if n := got.Load(); n != 2 {
		t.Errorf("%d pieces reached the notebook", n)
	}
	holds.Store(true)
	if err := w.socket(t, "/", asProgram).Write(within(t), websocket.MessageText, []byte("x")); err != nil {
		t.Error(err)
	}
	eventually(t, "it passes again", func() bool { return got.Load() == 3 })
}
