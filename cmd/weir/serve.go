package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/handlers"
)

// gcPercent is the usual GOGC. Little of the heap of a server stays in use, and marking
// that again and again is a fifth of the processor time of a small request. GOMEMLIMIT
// bounds the memory.
const gcPercent = 400

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Run the portal, the REST API and the workspaces of this machine", Args: cobra.NoArgs}
	config.AddFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		return serve(cmd.Context(), cfg, cmd.OutOrStdout(), cfg.Logger(cmd.ErrOrStderr()))
	}
	return cmd
}

// serve runs until ctx ends, then finishes open requests within the grace
// period. Workspaces keep running: the next server adopts them.
func serve(ctx context.Context, cfg config.Config, out io.Writer, log *slog.Logger) error {
	slog.SetDefault(log)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	var noNamespace error
	if cfg.Runtime == "local" && os.Geteuid() != 0 && !cfg.IDRange.Empty() {
		noNamespace = enterUserNamespace(cfg)
	}
	listeners, err := listen(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	defer closeAll(listeners)
	p, err := wirePortal(ctx, cfg, log, listeners[0].Addr())
	if err != nil {
		return err
	}
	defer func() {
		if err := p.close(); err != nil {
			log.Error("cannot close", "err", err)
		}
	}()
	p.noNamespace = noNamespace
	if err := p.registerMachine(ctx); err != nil {
		return err
	}
	if err := p.printSummary(ctx, out); err != nil {
		return err
	}
	return p.run(ctx, listeners)
}

func (p *portal) run(ctx context.Context, listeners []net.Listener) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.acquireLease(ctx); err != nil {
		return err
	}
	endLease := p.renewLease(ctx)
	defer endLease()
	background.Go(func() { p.runElection(ctx) })
	background.Go(func() {
		p.store.Listen(ctx, func(err error) { p.log.Warn("cannot listen to other servers", "err", err) })
	})
	if p.cluster == nil { // the cluster's machines have agents of their own
		background.Go(func() { p.reportOwnGPUs(ctx) })
		background.Go(func() { checkEnvironments(ctx, p.log, p.unchecked, p.registerEnvironments) })
	}

	files, err := descriptors()
	if err != nil {
		return err
	}
	counted := newConnections(files/portalConnections, p.cfg.TrustedProxies, p.log)
	counted.sandboxes = p.sandboxUsers()
	server := p.newServer(p.app, counted)
	failed := make(chan error, len(listeners)+3)
	background.Go(func() { p.watchDatabaseLock(ctx, failed) })
	background.Go(func() { p.serveAgents(ctx, newConnections(files/agentConnections, nil, p.log), failed) })
	background.Go(func() { p.serveInside(ctx, newConnections(files/agentConnections, nil, p.log), failed) })
	defer p.keepCounts(ctx)()
	defer server.Close() // connections that are open after the grace period
	for _, l := range listeners {
		background.Go(func() { failed <- server.Serve(counted.bound(l)) })
	}
	defer closeAll(listeners) // before waiting for background work
	p.log.Info("serving", "address", p.origin)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.log.Info("shutting down; workspaces keep running, and the next start finds them; to stop yours, run weir workspaces stop --all while the portal runs")
	p.app.Close()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.ShutdownGrace)
	defer stop()
	p.proxy.Close()
	err = server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	endLease()
	p.releaseLease()
	return err
}

// keepCounts saves what is counted of requests to deployments until stop is called, when no request is open any more.
func (p *portal) keepCounts(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var keeping sync.WaitGroup
	keeping.Go(func() { p.service.KeepCounts(ctx, p.log) })
	return func() {
		cancel()
		keeping.Wait()
	}
}

// agentTimeout is how long an agent may take to send a request, and to receive the response.
const agentTimeout = 30 * time.Second

// newServer serves until clients are slow, so that nobody holds connections for nothing. What lasts,
// such as an upload, extends its own time; responses have none: streams of events last.
func (p *portal) newServer(handler http.Handler, counted *connections) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ConnState: counted.changed, ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)}
}

func (p *portal) newAgentServer(counted *connections) *http.Server {
	server := p.newServer(handlers.NewAgents(p.agents.enrollment, p.log), counted)
	server.ReadTimeout, server.WriteTimeout = agentTimeout, agentTimeout
	return server
}

// serveAgents serves the agents' API until ctx ends.
func (p *portal) serveAgents(ctx context.Context, counted *connections, failed chan<- error) {
	if p.agents.listener == nil {
		return
	}
	p.log.Info("serving agents", "address", p.agents.listener.Addr().String())
	secured := tls.NewListener(counted.bound(p.agents.listener), p.agents.authority.ServerTLS())
	if err := p.serveUntilEnd(ctx, p.newAgentServer(counted), secured); err != nil {
		failed <- fmt.Errorf("agent listener: %w", err)
	}
}

// serveUntilEnd serves until ctx ends, then finishes open requests within the grace period.
func (p *portal) serveUntilEnd(ctx context.Context, server *http.Server, l net.Listener) error {
	ended := make(chan struct{})
	defer func() { <-ended }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() {
		defer close(ended)
		grace, stop := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.ShutdownGrace)
		defer stop()
		_ = server.Shutdown(grace) // Close closes the remaining connections
		_ = server.Close()
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
