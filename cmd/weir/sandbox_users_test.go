package main

import (
	"io"
	"net"
	"os"
	"testing"

	"weir/storage/rules"
)

// Connections that a user of sandboxes has opened on this machine are refused, and those that were
// closed at once, whose user nobody knows any more; others are served.
func TestConnectionsOfSandboxesAreRefused(t *testing.T) {
	own := int64(os.Getuid())
	for name, c := range map[string]struct {
		users   sandboxUsers
		address string
		refused bool
	}{
		"theirs":             {sandboxUsers{own: own}, "127.0.0.1", true},
		"of a member":        {sandboxUsers{own: own + 5, ids: rules.IDRange{First: own, Last: own + 4}}, "127.0.0.1", true},
		"of another address": {sandboxUsers{own: own}, "127.0.0.9", true},
		"of somebody else":   {sandboxUsers{own: own + 1}, "127.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			counted, address, _ := countedServer(t)
			counted.sandboxes = &c.users
			conn := dialFrom(t, c.address, address)
			defer conn.Close()
			_, err := io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
			response, errRead := io.ReadAll(conn)
			if got := err != nil || errRead != nil || len(response) == 0; got != c.refused {
				t.Errorf("refused: %t, %q, %v, %v", got, response, err, errRead)
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(client, "POST / HTTP/1.0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if !(&sandboxUsers{own: own + 1}).opened(conn) {
		t.Error("a connection whose program has gone is served")
	}
}
