package proxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
)

// notebookOf is a notebook whose every connection is served by f, with its number
// counted from 1.
func notebookOf(t testing.TB, f func(n int64, conn net.Conn, in *bufio.Reader)) (models.Endpoint, *atomic.Int64) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	count := &atomic.Int64{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n := count.Add(1)
			go func() {
				defer conn.Close()
				f(n, conn, bufio.NewReader(conn))
			}()
		}
	}()
	return models.Endpoint{Network: "unix", Address: socket}, count
}

// read reads a request with its body, and returns the body.
func read(in *bufio.Reader) (r *http.Request, body string, err error) {
	if r, err = http.ReadRequest(in); err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(r.Body)
	return r, string(b), err
}

func get(t testing.TB, w *world) string {
	t.Helper()
	res, body := w.do(t, request(t, "GET", "/", nil, asOwner).WithContext(within(t)))
	return fmt.Sprintf("%d %s", res.StatusCode, body)
}

// What the notebook sends after a response is not the response to the next request,
// and a connection is used again only after a complete response.
func TestConnectionReuse(t *testing.T) {
	const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		answer string
		method string
		reused bool
	}{
		"a length":              {answer: fine, reused: true},
		"chunks":                {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", reused: true},
		"trailers":              {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n2\r\nok\r\n0\r\nX-A: 1\r\n\r\n", reused: true},
		"no content":            {answer: "HTTP/1.1 204 No Content\r\n\r\n", reused: true},
		"only a header":         {answer: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", method: "HEAD", reused: true},
		"after others":          {answer: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + fine, reused: true},
		"HTTP/1.0 to keep":      {answer: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", reused: true},
		"HTTP/1.0":              {answer: "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"},
		"to be closed":          {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"},
		"two responses":         {answer: fine + fine},
		"more than the length":  {answer: fine + "x"},
		"more than chunks":      {answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n"},
		"a body for a HEAD":     {answer: fine, method: "HEAD"},
		"a body for no content": {answer: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok"},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, count := notebookOf(t, func(n int64, conn net.Conn, in *bufio.Reader) {
				for i := 0; ; i++ {
					if _, _, err := read(in); err != nil {
						return
					}
					if n == 1 && i == 0 {
						io.WriteString(conn, c.answer)
					} else {
						fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsecond")
					}
				}
			})
			w := newWorldAt(t, endpoint)
			method := c.method
			if method == "" {
				method = "GET"
			}
			if res, _ := w.do(t, request(t, method, "/", nil, asOwner).WithContext(within(t))); res.StatusCode/100 != 2 {
				t.Fatal(res.Status)
			}
			eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
			if got := get(t, w); got != "200 secon" {
				t.Errorf("the next response is %q", got)
			}
			if reused := count.Load() == 1; reused != c.reused {
				t.Errorf("the connection is used again: %v", reused)
			}
		})
	}
}

// The same, for what arrives once the connection is idle.
func TestIdleConnectionsStayQuiet(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":     func(conn net.Conn) { conn.Close() },
		"a response": func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil") },
	} {
		t.Run(name, func(t *testing.T) {
			received, ended := make(chan struct{}), make(chan struct{})
			endpoint, count := notebookOf(t, func(n int64, conn net.Conn, in *bufio.Reader) {
				for {
					if _, _, err := read(in); err != nil {
						return
					}
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
					if n == 1 {
						<-received
						end(conn)
						close(ended)
					}
				}
			})
			w := newWorldAt(t, endpoint)
			get(t, w)
			close(received)
			<-ended
			// A request that could not be sent twice.
			if res, body := w.do(t, request(t, "POST", "/", nil, asProgram).WithContext(within(t))); body != "ok" {
				t.Errorf("%s %s", res.Status, body)
			}
			if n := count.Load(); n != 2 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// A notebook that closes a connection while a request is on its way gets the request
// again if that changes nothing and has no response yet.
func TestRequestsOnClosedConnections(t *testing.T) {
	for _, c := range []struct {
		method, answer string
		again          bool
	}{{"GET", "", true}, {"POST", "", false}, {"GET", "HTTP/1.1 200", false}} {
		var requests atomic.Int64
		endpoint, _ := notebookOf(t, func(n int64, conn net.Conn, in *bufio.Reader) {
			for i := 0; ; i++ {
				if _, _, err := read(in); err != nil {
					return
				}
				requests.Add(1)
				if n == 1 && i == 1 {
					io.WriteString(conn, c.answer)
					return
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			}
		})
		w := newWorldAt(t, endpoint)
		get(t, w)
		res, _ := w.do(t, request(t, c.method, "/", nil, asProgram).WithContext(within(t)))
		if n := requests.Load(); c.again != (n == 3) || c.again != (res.StatusCode == http.StatusOK) {
			t.Errorf("%s with %q: %d requests, and then %s", c.method, c.answer, n, res.Status)
		}
	}
}

// A notebook that is broken gets no second request, and its visitor no part of a
// response as the whole.
func TestBrokenResponses(t *testing.T) {
	for name, c := range map[string]struct {
		answer  string
		partial bool
	}{
		"nothing":             {"", false},
		"no HTTP":             {"SSH-2.0\r\n\r\n", false},
		"half a header":       {"HTTP/1.1 200 OK\r\nX-A:", false},
		"a very large header": {"HTTP/1.1 200 OK\r\nX-A: " + strings.Repeat("x", maxHeaderBytes) + "\r\n\r\n", false},
		"interim for ever":    {strings.Repeat("HTTP/1.1 103 Early Hints\r\nX-A: 1\r\n\r\n", maxHeaderBytes/30), false},
		"another protocol":    {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", false},
		"half a body":         {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", true},
		"half a chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", true},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, count := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
				if _, _, err := read(in); err == nil {
					io.WriteString(conn, c.answer)
				}
			})
			w := newWorldAt(t, endpoint)
			res, err := w.client.Do(request(t, "GET", "/", nil, asOwner).WithContext(within(t)))
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if !c.partial && res.StatusCode != http.StatusBadGateway {
					t.Errorf("the response is %s", res.Status)
				}
			}
			if c.partial != (err != nil) {
				t.Errorf("the visitor's error is %v", err)
			}
			if n := count.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

func TestTrailers(t *testing.T) {
	w := newWorld(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		io.WriteString(w, "hello")
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Late", "2")
		w.Header().Set(http.TrailerPrefix+"Set-Cookie", "weir_session=evil; Domain=localhost")
		w.Header().Set(http.TrailerPrefix+"Clear-Site-Data", `"*"`)
	}))
	res, body := w.do(t, request(t, "GET", "/", nil, asOwner))
	if body != "hello" || res.Trailer.Get("X-Announced") != "1" || res.Trailer.Get("X-Late") != "2" || len(res.Trailer) != 2 {
		t.Errorf("%q with %v", body, res.Trailer)
	}
}

// Bodies arrive as they were sent, with a length or in chunks, and their connections
// are used again.
func TestUploads(t *testing.T) {
	endpoint, count := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
		for {
			r, body, err := read(in)
			if err != nil {
				return
			}
			text := fmt.Sprintf("%s %d %v %s", r.Method, r.ContentLength, r.TransferEncoding, body)
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
	})
	w := newWorldAt(t, endpoint)
	long := strings.Repeat("x", 1<<20)
	for _, c := range []struct {
		method string
		body   io.Reader
		want   string
	}{
		{"PUT", strings.NewReader("hello"), "PUT 5 [] hello"},
		{"PUT", strings.NewReader(long), "PUT 1048576 [] " + long},
		{"PATCH", io.MultiReader(strings.NewReader("hello"), strings.NewReader(long)), "PATCH -1 [chunked] hello" + long},
		{"POST", nil, "POST 0 [] "},
		{"DELETE", nil, "DELETE 0 [] "},
	} {
		_, got := w.do(t, request(t, c.method, "/", c.body, asProgram).WithContext(within(t)))
		if got != c.want {
			t.Errorf("%.40q, want %.40q", got, c.want)
		}
		eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
	}
	if n := count.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A notebook may respond before it has read all; the rest of the body cannot become
// the next request.
func TestEarlyResponse(t *testing.T) {
	endpoint, count := notebookOf(t, func(n int64, conn net.Conn, in *bufio.Reader) {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if n == 1 {
			io.ReadFull(r.Body, make([]byte, 1000))
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
			in.ReadByte() // keep the connection open until the proxy closes it
			io.Copy(io.Discard, in)
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	})
	w := newWorldAt(t, endpoint)
	endless := io.LimitReader(zeroes{}, 1<<40)
	res, err := w.client.Do(request(t, "PUT", "/", endless, asProgram).WithContext(within(t)))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	if res.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no" {
		t.Errorf("%s %s", res.Status, body)
	}
	if got := get(t, w); got != "200 ok" || count.Load() != 2 {
		t.Errorf("then %q, with %d connections", got, count.Load())
	}
	eventually(t, "the flows end", func() bool { return len(w.proxy.flows.all()) == 0 })
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { return len(b), nil }

// The visitor sends the body when the notebook wants it, and otherwise keeps it.
func TestExpectContinue(t *testing.T) {
	for want, status := range map[bool]int{true: http.StatusOK, false: http.StatusExpectationFailed} {
		endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			if want {
				io.WriteString(conn, "HTTP/1.1 100 Continue\r\n\r\n")
				if body, _ := io.ReadAll(r.Body); string(body) != "hello" {
					t.Errorf("the body is %q", body)
				}
			}
			fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n", status)
		})
		w := newWorldAt(t, endpoint)
		w.client.Transport.(*http.Transport).ExpectContinueTimeout = time.Hour
		w.proxy.transport.continueWait = time.Hour
		var asked atomic.Bool
		hello := strings.NewReader("hello")
		body := readerFunc(func(b []byte) (int, error) { asked.Store(true); return hello.Read(b) })
		r := request(t, "PUT", "/", body, asProgram, "Expect: 100-continue").WithContext(within(t))
		r.ContentLength = 5
		if res, _ := w.do(t, r); res.StatusCode != status || asked.Load() != want {
			t.Errorf("%s; the body was asked for: %v", res.Status, asked.Load())
		}
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// A visitor who leaves before all is sent or received, or who sends no proper body,
// leaves no connection behind.
func TestVisitorFails(t *testing.T) {
	for name, c := range map[string]struct {
		sent  string
		stays bool
	}{
		"while receiving": {"Content-Length: 0\r\n\r\n", false},
		"while sending":   {"Content-Length: 9\r\n\r\nx", false},
		"no chunk":        {"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\nno chunk\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			begun, closed := make(chan struct{}), make(chan struct{})
			endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
				r, err := http.ReadRequest(in)
				if err != nil {
					return
				}
				if r.ContentLength != 0 {
					io.ReadFull(r.Body, make([]byte, 1))
				} else {
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx")
				}
				close(begun)
				io.Copy(io.Discard, in)
				close(closed)
			})
			w := newWorldAt(t, endpoint)
			visitor, err := net.Dial("tcp", w.server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer visitor.Close()
			fmt.Fprintf(visitor, "PUT / HTTP/1.1\r\nHost: ws-12.%s\r\n%s\r\n%s", domain, asProgram, c.sent)
			<-begun
			if !c.stays {
				visitor.Close()
			}
			<-closed
			eventually(t, "the flow ends", func() bool { return len(w.proxy.flows.all()) == 0 })
			if w.proxy.transport.total != 0 {
				t.Error("the connection is kept")
			}
		})
	}
}

// A connection is not used again while something of its last exchange is to come.
func TestUnfinishedExchanges(t *testing.T) {
	endpoint, _ := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			io.Copy(io.Discard, in)
		}
	})
	p := newTransport()
	to := Target{Workspace: 12, Generation: 1, Endpoint: endpoint}
	unread, err := p.roundTrip(t.Context(), request(t, "GET", "/", nil), to)
	if err != nil {
		t.Fatal(err)
	}
	unread.Body.Close()
	if p.total != 0 {
		t.Error("a connection is kept with an unread response")
	}
	body, rest := io.Pipe()
	go func() { // more than is ever sent
		for err := error(nil); err == nil; _, err = rest.Write([]byte("x")) {
		}
	}()
	upload := request(t, "PUT", "/", body)
	upload.ContentLength = -1
	unsent, err := p.roundTrip(t.Context(), upload, to)
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, unsent.Body)
	unsent.Body.Close()
	body.Close()
	if p.total != 0 {
		t.Error("a connection is kept with an unsent body")
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	const requests = 2 * idlePerTarget
	endpoint, count := notebookOf(t, func(_ int64, conn net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := read(in); err != nil {
				return
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	p := newTransport()
	to := Target{Workspace: 12, Generation: 1, Endpoint: endpoint}
	var open []*http.Response
	for range requests {
		res, err := p.roundTrip(t.Context(), request(t, "GET", "/", nil), to)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, res)
	}
	for _, res := range open {
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
	if n := count.Load(); n != requests || p.total != idlePerTarget || len(p.idle[notebook{12, 1}]) != idlePerTarget {
		t.Errorf("of %d connections %d are idle", n, p.total)
	}
	now := time.Now()
	p.idle[notebook{12, 1}][0].idleSince = now.Add(-idleTimeout)
	p.idle[notebook{12, 1}][1].Conn.Close()
	if p.prune(now); p.total != idlePerTarget-2 {
		t.Errorf("%d are idle after one was closed and one is too old", p.total)
	}
	p.close()
	if p.total != 0 || len(p.idle) != 0 {
		t.Errorf("%d are idle at the end", p.total)
	}
}
