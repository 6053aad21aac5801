package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"weir/cmd/weir/config"
	"weir/policies"
	"weir/pool/authority"
	"weir/pool/providers"
)

func (p *portal) wireAgents(ctx context.Context, access *policies.Access) (err error) {
	if p.agents.authority, err = authority.Open(p.cfg.AuthorityFile, p.store.Now); err != nil {
		return err
	}
	p.agents.enrollment = &providers.Enrollment{Store: p.store, Access: access, Authority: p.agents.authority,
		CertificateLifetime: p.cfg.AgentCertificateLifetime, Every: p.cfg.AgentHeartbeat,
		Zones: p.cfg.Reservations.Objectives.Zones, Cluster: p.nodeIdentities(), NodeOwner: p.cfg.KubeAgentsOwner}
	if p.cfg.AgentsListen == "" {
		return nil
	}
	p.agents.listener, err = listenTCP(ctx, p.cfg.AgentsListen)
	if err != nil {
		return fmt.Errorf("cannot listen for agents: %w; set another address with --agents-listen, or disable it with --agents-listen \"\"", err)
	}
	return nil
}

// url returns the URL of the agents' listener for clients that reach the portal
// at a host; nil without a listener.
func (s agentEndpoint) url(cfg config.Config) func(host string) string {
	if s.listener == nil {
		return nil
	}
	return func(host string) string {
		tcp, ok := s.listener.Addr().(*net.TCPAddr)
		switch {
		case cfg.AgentsURL != "":
			return cfg.AgentsURL
		case ok && tcp.IP.IsUnspecified():
			return "https://" + net.JoinHostPort(strings.Trim(host, "[]"), strconv.Itoa(tcp.Port))
		default:
			return "https://" + s.listener.Addr().String()
		}
	}
}
