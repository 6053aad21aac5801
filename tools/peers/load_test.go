package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// What is measured alone has one connection, and what runs before each request counts neither as
// its time nor as processor time.
func TestAlone(t *testing.T) {
	var at sync.Mutex
	var changes, reads atomic.Int64
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if !at.TryLock() {
			t.Error("two requests at once")
			return
		}
		defer at.Unlock()
		if reads.Add(1) > changes.Load() {
			t.Error("a request before its change")
		}
		fmt.Fprint(w, "hello")
	})
	c.alone, c.servers = true, []int{os.Getpid()}
	c.before = func(context.Context) error {
		changes.Add(1)
		for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until); { // busy
		}
		return nil
	}
	s, err := load{connections: 4, span: time.Second}.measure(t.Context(), c)
	if err != nil || s.P50 >= 200*time.Millisecond || s.Rate <= 5 || s.CPU >= 200*time.Millisecond || s.CPU <= 0 {
		t.Errorf("%+v %v", s, err)
	}
}

// A process has used processor time, and one that has ended has none.
func TestProcessorTime(t *testing.T) {
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo; exec sleep 600")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_, err = out.Read(make([]byte, 1))
	used := processorTime(cmd.Process.Pid)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if after := processorTime(cmd.Process.Pid); err != nil || used < time.Millisecond || after != 0 {
		t.Error(used, after, err)
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
