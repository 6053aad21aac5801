package main

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// A server that is started again at once after it was killed takes its port as soon as the last
// process that has it is gone; where another server has it, it says so.
func TestListenAgain(t *testing.T) {
	before, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := before.Addr().String()
	go func() {
		time.Sleep(200 * time.Millisecond)
		before.Close()
	}()
	after, err := listenTCP(t.Context(), address)
	if err != nil {
		t.Fatalf("listen on %s, which becomes free: %v", address, err)
	}
	defer after.Close()
	if _, err := listenTCP(t.Context(), address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("listen on an address in use: %v, want that it is in use", err)
	}
}
