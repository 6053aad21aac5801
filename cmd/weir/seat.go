package main

import (
	"context"
	"time"
)

// join takes this server's place among those of the portal, before it serves.
func (p *portal) join(ctx context.Context) (err error) {
	sole := p.alone != nil || p.store.Dialect() == "sqlite"
	p.seat, err = p.store.Join(ctx, sole)
	return err
}

// sit keeps the place, and ends here what other servers revoke.
func (p *portal) sit(ctx context.Context) {
	p.seat.Run(ctx, func(err error) { p.log.Warn("the place among the servers is not kept", "err", err) })
}

// holds tells whether open connections may be served now.
func (p *portal) holds() bool { return p.seat.Holds() }

// leave gives the place up, once nothing is open any more, so that no
// revocation waits for this server.
func (p *portal) leave() {
	if p.seat == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := p.seat.Leave(ctx); err != nil {
		p.log.Warn("the place among the servers was not given up; it ends by itself", "err", err)
	}
}
