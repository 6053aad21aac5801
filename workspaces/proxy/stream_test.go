package proxy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The client sends the rest only when the notebook has the beginning: a proxy
// that gathers uploads would wait forever.
func TestUploadStreams(t *testing.T) {
	const size, chunk = 64 << 20, 1 << 20
	arrived := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := make([]byte, 1)
		io.ReadFull(r.Body, first)
		close(arrived)
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, n+1, err)
	}))
	body, pipe := io.Pipe()
	go func() {
		block := make([]byte, chunk)
		for sent := 0; sent < size; sent += chunk {
			if sent == chunk {
				<-arrived
			}
			pipe.Write(block)
		}
		pipe.Close()
	}()
	r := request(t, "PUT", "/api/contents/big", body, asProgram).WithContext(within(t))
	if _, got := w.do(t, r); got != fmt.Sprint(int64(size), nil) {
		t.Errorf("arrived: %s", got)
	}
}

// The response of a notebook, or that it has none, reaches a visitor who has paused the
// upload.
func TestResponseToPausedUpload(t *testing.T) {
	for sent, want := range map[string]string{
		"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno": "413 no",
		"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart":      "200 part",
		"": "502",
	} {
		for _, length := range []int64{1000, -1} {
			endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
				if _, err := http.ReadRequest(in); err == nil {
					io.WriteString(conn, sent)
				}
			})
			w := newWorldAt(t, endpoint)
			body, upload := io.Pipe()
			r := request(t, "PUT", "/", body, asProgram).WithContext(within(t))
			r.ContentLength = length
			go io.WriteString(upload, "x")
			res, err := w.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if got := fmt.Sprintf("%d %s", res.StatusCode, text); !strings.HasPrefix(got, want) {
				t.Errorf("%q is %q", sent, got)
			}
			eventually(t, "the flows end", func() bool { return len(w.proxy.flows.all()) == 0 })
			upload.Close()
		}
	}
}

// The same for a visitor who goes on waiting with the connection open: nothing is held
// after the response.
func TestEarlyResponseIsSentAtOnce(t *testing.T) {
	for name, c := range map[string]struct{ upload, answer, want string }{
		"a long body":      {"Content-Length: 1000000\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"},
		"a short body":     {"Content-Length: 9\r\n\r\nx", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"},
		"chunks":           {"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "200 ok"},
		"chunked response": {"Content-Length: 1000000\r\n\r\nx", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "200 ok"},
		"a large header": {"Content-Length: 1000000\r\n\r\nx",
			"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", maxHeaderBytes) + "\r\n\r\n", "502 "},
	} {
		t.Run(name, func(t *testing.T) {
			leave := make(chan struct{})
			defer close(leave)
			endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
				if _, err := http.ReadRequest(in); err == nil {
					io.WriteString(conn, c.answer)
				}
				<-leave // the notebook neither reads nor closes
			})
			w := newWorldAt(t, endpoint)
			visitor, err := net.Dial("tcp", w.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer visitor.Close()
			visitor.SetDeadline(time.Now().Add(patience))
			fmt.Fprintf(visitor, "POST / HTTP/1.1\r\nHost: ws-12.%s\r\n%s\r\n%s", domain, asProgram, c.upload)
			in := bufio.NewReader(visitor)
			res, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if got := fmt.Sprintf("%d %s", res.StatusCode, body); err != nil || !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, %v", got, err)
			}
			if !res.Close {
				t.Error("the connection stays open for the rest of the body")
			}
			if _, err := in.ReadByte(); err != io.EOF {
				t.Errorf("after the response: %v", err)
			}
			eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
		})
	}
}

// A visitor who pauses an upload for too long is told, and nothing is held.
func TestIdleUploadEnds(t *testing.T) {
	ended := make(chan struct{})
	endpoint, _ := notebookOf(t, func(_ int64, _ net.Conn, in *bufio.Reader) {
		io.Copy(io.Discard, in)
		close(ended)
	})
	w := newWorldAt(t, endpoint)
	w.proxy.uploadIdle = time.Millisecond
	body, upload := io.Pipe()
	defer upload.Close()
	r := request(t, "PUT", "/", body, asProgram).WithContext(within(t))
	r.ContentLength = 1000
	go io.WriteString(upload, "x")
	if res, text := w.do(t, r); res.StatusCode != http.StatusRequestTimeout || !res.Close {
		t.Errorf("%s %s", res.Status, text)
	}
	<-ended
	eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
}

// The notebook writes the second part only when the visitor has the first.
func TestDownloadStreams(t *testing.T) {
	for name, headers := range map[string][2]string{
		"events":       {"Content-Type", "text/event-stream"},
		"known length": {"Content-Length", "18"},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan struct{})
			w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(headers[0], headers[1])
				io.WriteString(w, "data: 1\n\n")
				w.(http.Flusher).Flush()
				<-seen
				io.WriteString(w, "data: 2\n\n")
			}))
			res, err := w.client.Do(request(t, "GET", "/", nil, asOwner).WithContext(within(t)))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			line, err := lines.ReadString('\n')
			close(seen)
			rest, _ := io.ReadAll(lines)
			if line != "data: 1\n" || string(rest) != "\ndata: 2\n\n" {
				t.Errorf("%q %q %v", line, rest, err)
			}
		})
	}
}

// deadlines notes what a handler asks of its connection.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.read = append(d.read, t); return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.write = append(d.write, t); return nil }

// A server's deadlines are for its own pages.
func TestServerDeadlinesAreLifted(t *testing.T) {
	w := newWorld(t, hello)
	got := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w.proxy.ServeHTTP(got, request(t, "GET", "/", nil, asProgram))
	none := []time.Time{{}}
	if !slices.Equal(got.read, none) || !slices.Equal(got.write, none) || got.Body.String() != "hello" {
		t.Errorf("%v %v %s", got.read, got.write, got.Body)
	}
}

// echo answers each message with itself.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()
	c.SetReadLimit(8 << 20)
	for {
		kind, data, err := c.Read(r.Context())
		if err != nil {
			return
		}
		if c.Write(r.Context(), kind, data) != nil {
			return
		}
	}
})

func (w *world) socket(t testing.TB, path string, headers ...string) *websocket.Conn {
	t.Helper()
	r := request(t, "GET", path, nil, headers...)
	c, res, err := websocket.Dial(within(t), "ws"+strings.TrimPrefix(own, "http")+path,
		&websocket.DialOptions{HTTPClient: w.client, HTTPHeader: r.Header})
	if err != nil {
		t.Fatal(err, res)
	}
	c.SetReadLimit(8 << 20)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

func (w *world) echoes(t testing.TB, c *websocket.Conn, message string) {
	t.Helper()
	ctx := within(t)
	if err := c.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(ctx); err != nil || string(got) != message {
		t.Fatalf("%.20q %v", got, err)
	}
}

func TestWebSocket(t *testing.T) {
	told := make(chan int64, 100)
	w := newWorld(t, echo, func(c *Config) { c.OnActivity = func(id int64) { told <- id } })
	for _, headers := range [][]string{{asOwner, "Origin: " + own}, {asProgram}} {
		c := w.socket(t, "/", headers...)
		w.echoes(t, c, "hello")
		w.echoes(t, c, strings.Repeat("long", 1<<20))
	}
	if id := <-told; id != 12 {
		t.Errorf("activity of %d", id)
	}
}

// Nothing of the notebook's status line reaches the visitor but the status.
func TestUpgradeStatusLine(t *testing.T) {
	endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			io.WriteString(conn, "HTTP/1.1 101 OK\rSet-Cookie: weir_session=evil\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		}
	})
	w := newWorldAt(t, endpoint)
	r := request(t, "GET", "/", nil, asProgram, "Connection: Upgrade", "Upgrade: websocket").WithContext(within(t))
	res, err := w.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.Status != "101 Switching Protocols" {
		t.Errorf("%q", res.Status)
	}
}

func TestRevokeCuts(t *testing.T) {
	w := newWorld(t, echo)
	quiet := w.socket(t, "/", asOwner, "Origin: "+own)
	w.echoes(t, quiet, "hello")

	w.proxy.Revoke(13)
	w.echoes(t, quiet, "still there")
	w.proxy.Revoke(12)
	wantClosed(t, quiet)
	eventually(t, "all flows end", func() bool { return len(w.proxy.flows.of(12)) == 0 })
	w.echoes(t, w.socket(t, "/", asProgram), "whoever may comes back")
}

// A visitor who reads nothing leaves the proxy in the middle of a write.
func TestRevokeCutsStuck(t *testing.T) {
	var sent atomic.Int64
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for message := make([]byte, 1<<20); c.Write(r.Context(), websocket.MessageBinary, message) == nil; {
			sent.Add(1)
		}
	}))
	w.socket(t, "/", asProgram)
	before, same := int64(0), 0
	eventually(t, "every buffer is full", func() bool {
		if now := sent.Load(); now == 0 || now != before {
			before, same = now, 0
		}
		same++
		return same > 20
	})
	w.proxy.Revoke(12)
	eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.of(12)) == 0 })
}

func TestRevokeCutsStreams(t *testing.T) {
	ended := make(chan struct{})
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	}))
	res, err := w.client.Do(request(t, "GET", "/", nil, asOwner).WithContext(within(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	w.proxy.Revoke(12)
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the visitor was told that all had arrived")
	}
	<-ended
}

// gateBefore calls before ahead of each admission.
type gateBefore struct {
	Gate
	before func()
}

func (g gateBefore) Admit(ctx context.Context, workspace int64, c Credential) (Target, error) {
	target, err := g.Gate.Admit(ctx, workspace, c)
	g.before()
	return target, err
}

// A right may go between the gate's answer and the first byte.
func TestRevokeDuringAdmission(t *testing.T) {
	var p *Proxy
	w := newWorld(t, echo, func(c *Config) { c.Gate = gateBefore{c.Gate, func() { p.Revoke(12) }} })
	p = w.proxy
	if res, err := w.client.Do(request(t, "GET", "/", nil, asProgram, "Upgrade: websocket", "Connection: Upgrade",
		"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")); err == nil {
		t.Errorf("let in: %d", res.StatusCode)
	}
}

func TestRecheckCuts(t *testing.T) {
	for name, change := range map[string]func(*gate){
		"visit ended":    func(g *gate) { delete(g.good, Credential{Bearer: ownerBearer}) },
		"stopped":        func(g *gate) { delete(g.targets, 12) },
		"started afresh": func(g *gate) { g.targets[12] = Target{Workspace: 12, Generation: 2} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, echo, func(c *Config) { c.Recheck = 5 * time.Millisecond })
			c := w.socket(t, "/", asProgram)
			w.change(func() { w.refusal[12] = io.ErrUnexpectedEOF; w.asked = 0 }) // the gate cannot tell
			eventually(t, "questions", func() (enough bool) {
				w.change(func() { enough = w.asked > 2 })
				return
			})
			w.echoes(t, c, "still there")
			w.change(func() { delete(w.refusal, 12); change(w.gate) })
			wantClosed(t, c)
			eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
		})
	}
}

// wantClosed waits until the proxy has closed a WebSocket that receives nothing.
func wantClosed(t *testing.T, c *websocket.Conn) {
	t.Helper()
	ctx := within(t)
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("still open: %v", err)
	}
}

func TestClose(t *testing.T) {
	w := newWorld(t, echo)
	c := w.socket(t, "/", asProgram)
	w.proxy.Close()
	wantClosed(t, c)
	if res, err := w.client.Do(request(t, "GET", "/", nil, asProgram)); err == nil {
		t.Errorf("let in: %d", res.StatusCode)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for tick := time.NewTicker(5 * time.Millisecond); !ok(); {
		select {
		case <-deadline:
			t.Fatal("not in time: " + what)
		case <-tick.C:
		}
	}
}
