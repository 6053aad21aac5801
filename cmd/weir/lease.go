package main

import (
	"context"
	"time"
)

// acquireLease acquires the server lease, before anything is served.
func (p *portal) acquireLease(ctx context.Context) (err error) {
	single := p.databaseLock != nil || p.store.Dialect() == "sqlite"
	p.lease, err = p.store.Join(ctx, single)
	return err
}

// renewLease renews the lease and applies the revocations of other servers until end, also
// after ctx has ended: what is open then may finish.
func (p *portal) renewLease(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.lease.Run(ctx, func(err error) { p.log.Warn("cannot renew the server lease", "err", err) })
	}()
	return func() {
		cancel()
		<-done
	}
}

// leaseValid reports whether open connections can be served now.
func (p *portal) leaseValid() bool { return p.lease.Holds() }

// releaseLease releases the lease after all connections are closed, so that no
// revocation waits for this server.
func (p *portal) releaseLease() {
	if p.lease == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.lease.Leave(ctx); err != nil {
		p.log.Warn("cannot release the server lease; it will expire", "err", err)
	}
}
