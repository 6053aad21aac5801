package main

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// startAll starts all servers and returns what is measured. Weir is first: the
// stub that it starts in a sandbox answers all who can use its socket.
func startAll(ctx context.Context, ps *processes, w *weir, t tools, only *regexp.Regexp) (all []candidate, err error) {
	direct, port, err := directTo(ctx, ps, w)
	if err != nil {
		return nil, err
	}
	proxied, err := notebookProxy(ctx, ps, t.proxy, port)
	if err != nil {
		return nil, err
	}
	others, err := plainProxies(ctx, ps, t, direct)
	if err != nil {
		return nil, err
	}
	reader, err := w.signIn(ctx)
	if err != nil {
		return nil, err
	}
	gates, err := w.gates(ctx, reader, direct)
	if err != nil {
		return nil, err
	}
	hub, err := hubPage(ctx, ps, t)
	if err != nil {
		return nil, err
	}
	pages, err := w.pages(ctx, reader)
	if err != nil {
		return nil, err
	}
	hubAlone := hub
	hubAlone.Name, hubAlone.alone = nameHub+suffixAlone, true
	first, err := w.firstReads(ctx, reader, pages)
	if err != nil {
		return nil, err
	}
	started, err := starts(ctx, w, hub.address)
	if err != nil {
		return nil, err
	}
	all = slices.Concat([]candidate{direct, port, proxied}, others, gates, []candidate{hub, hubAlone}, pages, first, started)
	all = slices.DeleteFunc(all, func(c candidate) bool { return !only.MatchString(c.Name) })
	if len(all) == 0 {
		return nil, fmt.Errorf("nothing has a name like %s", only)
	}
	return all, nil
}

// directTo is the stub without anything before it: on the socket of a sandbox, and on a port of
// the same program outside, because a sandbox has a network of its own.
func directTo(ctx context.Context, ps *processes, w *weir) (socket, port candidate, err error) {
	pid, err := listenerOf(w.socket)
	if err != nil {
		return socket, port, fmt.Errorf("the stub's socket: %w", err)
	}
	socket = candidate{Name: nameDirect, network: "unix", address: w.socket, length: len(kernelList()), servers: []int{pid}}
	socket.request = rawRequest("http://localhost:8888", kernelsPath, script, "Cookie: "+notebookCookies)
	ports, err := freePorts(1)
	if err != nil {
		return socket, port, err
	}
	port = socket
	port.Name, port.network, port.address = namePort, "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0])
	stub, err := ps.start("stub", nil, w.stub, "-stub", port.address)
	if err != nil {
		return socket, port, err
	}
	port.servers = []int{stub.pid()}
	return socket, port, stub.awaitHTTP(ctx, "http://"+port.address+kernelsPath, http.StatusOK)
}
