package main

import (
	"context"
	"time"
)

// acquireLease makes this server one of the portal's, before it serves.
func (p *portal) acquireLease(ctx context.Context) (err error) {
	single := p.claim != nil || p.store.Dialect() == "sqlite"
	p.lease, err = p.store.Join(ctx, single)
	return err
}

// renewLease keeps the lease, and ends here what other servers revoke.
func (p *portal) renewLease(ctx context.Context) {
	p.lease.Run(ctx, func(err error) { p.log.Warn("cannot renew the server lease", "err", err) })
}

// leaseValid tells whether open connections may be served now.
func (p *portal) leaseValid() bool { return p.lease.Holds() }

// releaseLease ends the lease once no connection is open any more, so that no
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
