package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"weir/cmd/weir/config"

	"github.com/spf13/cobra"
)

const setupLifetime = 24 * time.Hour

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Serve the portal, the REST API and the workspaces of this machine", Args: cobra.NoArgs}
	config.Bind(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		return serve(cmd.Context(), cfg, cmd.OutOrStdout(), cfg.Logger(cmd.ErrOrStderr()))
	}
	return cmd
}

// serve runs until ctx ends, then finishes what is open within the grace.
// Running workspaces are left running: the next server adopts them.
func serve(ctx context.Context, cfg config.Config, out io.Writer, log *slog.Logger) error {
	slog.SetDefault(log)
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
			log.Error("close", "err", err)
		}
	}()
	if err := p.discover(ctx); err != nil {
		return err
	}
	if err := p.announce(ctx, out); err != nil {
		return err
	}
	return p.run(ctx, listeners)
}

// announce prints where the portal is, and the one-time link while nobody
// has an account.
func (p *portal) announce(ctx context.Context, out io.Writer) error {
	token, err := p.accounts.SetupToken(ctx, setupLifetime)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Weir serves on %s\n", p.origin)
	if token != "" {
		fmt.Fprintf(out, "\nNobody has an account yet. Open this link once, within %d hours, to become the administrator:\n\n  %s/setup?token=%s\n\n",
			int(setupLifetime.Hours()), p.origin, token)
	}
	return nil
}

func (p *portal) run(ctx context.Context, listeners []net.Listener) error {
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.join(ctx); err != nil {
		return err
	}
	background.Go(func() { p.sit(ctx) })
	background.Go(func() { p.lead(ctx) })
	background.Go(func() { p.store.Listen(ctx, func(err error) { p.log.Warn("other servers", "err", err) }) })
	if p.cluster == nil { // the cluster's machines have agents of their own
		background.Go(func() { p.speakForOwn(ctx) })
	}

	server := &http.Server{Handler: p.app, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug)}
	failed := make(chan error, len(listeners)+2)
	background.Go(func() { p.holdClaim(ctx, failed) })
	background.Go(func() { p.serveAgents(ctx, failed) })
	defer server.Close() // what is still open when the grace is over
	for _, l := range listeners {
		background.Go(func() { failed <- server.Serve(l) })
	}
	defer closeAll(listeners) // before waiting, whichever way run ends
	p.log.Info("serving", "config", p.cfg, "database", p.store.Dialect())
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	p.log.Info("shutting down; workspaces go on running")
	p.app.Close()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.ShutdownGrace)
	defer stop()
	p.proxy.Close()
	p.leave()
	if err := server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// holdClaim ends the server when it is no longer the only one that may work
// on the database.
func (p *portal) holdClaim(ctx context.Context, failed chan<- error) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.alone == nil {
			return
		}
		if err := p.alone.Holds(ctx); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("the claim on the database is lost: %w", err)
			return
		}
	}
}
