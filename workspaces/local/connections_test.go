package local

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// All workspaces together have no more connections than their part of the open files, and one that ends
// makes room for another one.
func TestConnectionsOfWorkspaces(t *testing.T) {
	c := apiConnections{most: 2, all: make(chan struct{}, 3)}
	paths := []string{filepath.Join(t.TempDir(), "a.sock"), filepath.Join(t.TempDir(), "b.sock")}
	for _, path := range paths {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
		t.Cleanup(func() { _ = server.Close() })
		go func() { _ = server.Serve(c.bound(l)) }()
	}
	// ask reports whether a request is answered; the connection is kept.
	ask := func(path string) (net.Conn, bool) {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
		n, _ := conn.Read(make([]byte, 512))
		return conn, n > 0
	}
	first, ok := ask(paths[0])
	if _, second := ask(paths[0]); !ok || !second {
		t.Fatal("the bound of one workspace is too low")
	}
	if _, ok := ask(paths[1]); !ok {
		t.Error("the bound of all is that of one")
	}
	if _, ok := ask(paths[1]); ok {
		t.Error("there is no bound of all")
	}
	_ = first.Close()
	for deadline := time.Now().Add(time.Minute); len(c.all) == cap(c.all); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a connection that has ended is still counted")
		}
	}
	if _, ok := ask(paths[1]); !ok {
		t.Error("one that has ended makes no room")
	}
}
