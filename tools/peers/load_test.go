package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// serve returns a candidate with a handler as its server, which must answer
// "hello".
func serve(t *testing.T, handler http.HandlerFunc) candidate {
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	address := s.Listener.Addr().String()
	return candidate{Name: "x", network: "tcp", address: address, length: 5,
		request: rawRequest("http://localhost", "/a", navigation, "Cookie: a=b", "")}
}

// The request is one that net/http understands, with what a browser sends.
func TestRawRequest(t *testing.T) {
	var seen *http.Request
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		fmt.Fprint(w, "hello")
	})
	a, err := c.once(t.Context())
	if err != nil || a != (answer{200, 5}) {
		t.Fatal(a, err)
	}
	for name, want := range map[string]string{"Cookie": "a=b", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin",
		"Accept-Encoding": "gzip, deflate, br, zstd", "Accept-Language": "en-US,en;q=0.9", "Referer": "http://localhost/"} {
		if got := seen.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if seen.Host != "localhost" || seen.URL.Path != "/a" {
		t.Errorf("%s %s", seen.Host, seen.URL)
	}
}

// One wrong answer among right ones ends a measurement.
func TestWrongAnswerFails(t *testing.T) {
	for name, c := range map[string]struct {
		wrong   http.HandlerFunc
		problem string
	}{
		"status":  {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "hell", http.StatusTeapot) }, "418 with 5 bytes"},
		"length":  {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello!") }, "200 with 6 bytes"},
		"nothing": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "EOF"},
	} {
		var count atomic.Int64
		candidate := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if count.Add(1) == 20 {
				c.wrong(w, r)
				return
			}
			fmt.Fprint(w, "hello")
		})
		_, err := load{connections: 4, span: time.Hour}.measure(t.Context(), candidate)
		if err == nil || !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMeasureEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := (load{connections: 2, span: time.Hour}).measure(ctx, c); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Error(err)
	}
}

func TestTolerance(t *testing.T) {
	c := candidate{length: 100, tolerance: 10}
	for length, ok := range map[int]bool{89: false, 90: true, 110: true, 111: false} {
		if err := c.check(answer{200, length}); (err == nil) != ok {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestListenerOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if pid, err := listenerOf(path); pid != os.Getpid() || err != nil {
		t.Error(pid, err)
	}
}
