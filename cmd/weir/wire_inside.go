package main

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/local"
)

// insideEndpoint serves the programs in the workspaces of a cluster. Those of this machine have sockets.
type insideEndpoint struct {
	listener net.Listener // nil: there is none
	url      *url.URL     // as pods reach it
}

// listenInside opens the listener for programs in pods, if one is configured.
func (p *portal) listenInside(ctx context.Context) (err error) {
	if p.cfg.WorkspacesListen == "" {
		return nil
	}
	if p.inside.url, err = url.Parse(p.cfg.WorkspacesURL); err != nil {
		return err
	}
	if p.inside.listener, err = listenTCP(ctx, p.cfg.WorkspacesListen); err != nil {
		return fmt.Errorf("cannot listen for workspaces: %w; set another address with --workspaces-listen", err)
	}
	return nil
}

// variables are those with which the programs in a workspace reach this server; none without a
// listener. The URL has an address: restricted workspaces know no names. A start is tried again
// while its host cannot be resolved.
func (s insideEndpoint) variables(ctx context.Context, w models.Workspace) (map[string]string, error) {
	if s.listener == nil {
		return nil, nil
	}
	addresses, err := net.DefaultResolver.LookupHost(ctx, s.url.Hostname())
	if err != nil {
		return nil, models.Unavailable(err, "The host %s of workspaces-url cannot be resolved.", s.url.Hostname())
	}
	return map[string]string{"WEIR_API": "http://" + net.JoinHostPort(addresses[0], s.url.Port()),
		"WEIR_API_TOKEN": workspaces.InsideToken(w)}, nil
}

// port is that of the listener; 0: there is none.
func (s insideEndpoint) port() int32 {
	if s.listener == nil {
		return 0
	}
	tcp, ok := s.listener.Addr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return int32(tcp.Port)
}

// openSockets serves the REST API to programs in the workspaces of this machine.
func (p *portal) openSockets() error {
	if r, ok := p.runtime.(*local.Runtime); ok {
		return r.ServeAPI(p.app.Inside)
	}
	return nil
}

// serveInside serves the REST API to programs in pods until ctx ends.
func (p *portal) serveInside(ctx context.Context, counted *connections, failed chan<- error) {
	if p.inside.listener == nil {
		return
	}
	p.log.Info("serving programs in workspaces", "address", p.inside.listener.Addr().String())
	server := p.newServer(p.app.InsidePods(), counted)
	if err := p.serveUntilEnd(ctx, server, counted.bound(p.inside.listener)); err != nil {
		failed <- fmt.Errorf("listener for workspaces: %w", err)
	}
}
