package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"weir/cmd/weir/config"
	"weir/handlers"
	"weir/pool"
	"weir/pool/agent"
	"weir/pool/authority"
	"weir/workspaces/kube"
)

// agentsSide is what a portal has for the agents of machines.
type agentsSide struct {
	authority *authority.Authority
	enrolment *pool.Enrolment
	listener  net.Listener // nil: agents cannot join
}

func (p *portal) wireAgents(ctx context.Context) (err error) {
	if p.agents.authority, err = authority.Open(p.cfg.AuthorityFile, p.store.Now); err != nil {
		return err
	}
	p.agents.enrolment = pool.NewEnrolment(pool.EnrolmentConfig{Pool: p.pool, Authority: p.agents.authority,
		CertificateLifetime: p.cfg.AgentCertificateLifetime, Every: p.cfg.AgentBeat, Cluster: p.vouching(), NodeOwner: p.cfg.KubeAgentsOwner})
	if p.cfg.AgentsListen == "" {
		return nil
	}
	p.agents.listener, err = new(net.ListenConfig).Listen(ctx, "tcp", p.cfg.AgentsListen)
	if err != nil {
		return fmt.Errorf("agents cannot be served: %w; choose another address with --agents-listen, or none with --agents-listen \"\"", err)
	}
	return nil
}

// url is the address of the agents' listener for who reached the portal under
// a host; nil when there is no listener.
func (s agentsSide) url(cfg config.Config) func(host string) string {
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

// serveAgents answers agents until ctx ends.
func (p *portal) serveAgents(ctx context.Context, failed chan<- error) {
	if p.agents.listener == nil {
		return
	}
	server := &http.Server{Handler: handlers.NewAgents(p.agents.enrolment, p.log), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)}
	ended := make(chan struct{})
	defer func() { <-ended }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.ShutdownGrace)
		defer stop()
		_ = server.Shutdown(grace) // what is still open then is closed
		_ = server.Close()
	})
	p.log.Info("serving agents", "address", p.agents.listener.Addr().String())
	if err := server.Serve(tls.NewListener(p.agents.listener, p.agents.authority.ServerTLS())); !errors.Is(err, http.ErrServerClosed) {
		failed <- fmt.Errorf("the listener for agents: %w", err)
	}
}

// ownPeriod is how often the portal looks at its own machine's GPUs.
const ownPeriod = 5 * time.Second

// ownMachine lets the portal speak for its own GPUs as an agent would.
type ownMachine struct{ *pool.Pool }

func (m ownMachine) Beat(ctx context.Context, b pool.Beat) (pool.Orders, error) {
	o, err := m.Report(ctx, b)
	o.Every = ownPeriod
	return o, err
}

// speakForOwn reports this machine's GPUs until ctx ends.
func (p *portal) speakForOwn(ctx context.Context) {
	loop := agent.Loop{Portal: ownMachine{p.pool}, Machine: p.machine, Digest: p.host.Digest, Log: p.log}
	if err := loop.Run(ctx); err != nil {
		p.log.ErrorContext(ctx, "this machine's GPUs are not reported any more", "err", err)
	}
}

// voucher lets the cluster vouch for the pods of one service account.
type voucher struct {
	runtime *kube.Runtime
	account string
}

func (v voucher) NodeOf(ctx context.Context, token string) (string, error) {
	return v.runtime.NodeOf(ctx, v.account, token)
}

// vouching is who vouches for nodes; nil where nobody was told to.
func (p *portal) vouching() pool.Cluster {
	if p.cfg.KubeAgents == "" {
		return nil
	}
	return voucher{p.cluster, p.cfg.KubeAgents}
}
