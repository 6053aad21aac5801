package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"
)

// portFreed is how long the port of a killed server may still be in use. Seen were 12 ms; why is
// not known. A program that the server was just starting has its listener until it is executed.
const portFreed = 5 * time.Second

// listenTCP listens on an address; while that is in use, it tries again for a while.
func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	retry := time.NewTicker(50 * time.Millisecond)
	defer retry.Stop()
	end := time.NewTimer(portFreed)
	defer end.Stop()
	for {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
		select {
		case <-retry.C:
		case <-end.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// listen opens the address; a loopback address in both families. Workspaces
// share the loopback of this machine, and browsers try both families for
// "localhost": on an unused one a notebook could impersonate the portal.
func listen(ctx context.Context, address string) ([]net.Listener, error) {
	first, err := listenTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	tcp, ok := first.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsLoopback() {
		return []net.Listener{first}, nil
	}
	other := "::1"
	if tcp.IP.To4() == nil {
		other = "127.0.0.1"
	}
	second, err := listenTCP(ctx, net.JoinHostPort(other, strconv.Itoa(tcp.Port)))
	switch {
	case err == nil:
		return []net.Listener{first, second}, nil
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EAFNOSUPPORT):
		return []net.Listener{first}, nil // this machine does not have the family
	default:
		return nil, errors.Join(fmt.Errorf("another process listens on this port of localhost: %w", err), first.Close())
	}
}

// closeAll closes listeners; they may be closed already.
func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		_ = l.Close()
	}
}
