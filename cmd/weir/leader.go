package main

import (
	"context"
	"os"
	"strconv"
	"sync"
	"time"

	"weir/models/store"
	"weir/policies"
)

// The leader's lease.
const (
	leaderLease   = "controller"
	leaseDuration = 10 * time.Second
	leaseRenewal  = 3 * time.Second
)

// runControllers runs the loops of the leader until ctx ends. Other servers start none of
// them, and what they write is fenced, see [store.AsLeader].
func (p *portal) runControllers(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { p.reconciler.Run(ctx) })
	work.Go(func() { p.providers.Run(ctx) })
	work.Go(func() { p.pool.Run(ctx) })
	work.Go(func() { p.sender.Run(ctx) })
	work.Go(func() { p.periods.Run(ctx) })
	work.Go(func() { p.broker.Run(ctx, p.log) })
	work.Go(func() { p.files.Run(ctx) })
	work.Go(func() { p.owners.Run(ctx) })
	if p.cluster != nil {
		work.Go(func() { p.advertise(ctx) })
	}
	work.Wait()
}

// startControllers starts the controllers in an epoch. They end when another server leads,
// too; stop stops them and waits for their end.
func (p *portal) startControllers(ctx context.Context, epoch int64) (ended <-chan struct{}, stop func()) {
	ctx, cancel := store.AsLeader(ctx, leaderLease, epoch)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.runControllers(ctx)
	}()
	return done, func() {
		cancel()
		<-done
	}
}

// leadAlone runs the controllers of a server with an exclusive claim on the data. Its
// lease expires at once, so that the next server need not wait for it; the epoch fences
// this server from then on, should it still run.
func (p *portal) leadAlone(ctx context.Context) {
	for ctx.Err() == nil {
		epoch, err := p.store.LeadAlone(ctx, leaderLease, serverIdentity())
		if err == nil {
			ended, stop := p.startControllers(ctx, epoch)
			select {
			case <-ended:
				err = store.ErrFenced
			case <-ctx.Done():
			}
			stop()
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Error("another server uses this database, or it cannot be written to; trying to lead again", "err", err)
		select {
		case <-ctx.Done():
		case <-time.After(leaseRenewal):
		}
	}
}

// runElection runs the controllers while this server is the leader. A server
// with an exclusive claim on the data is always the leader.
func (p *portal) runElection(ctx context.Context) {
	if p.cfg.Runtime == "local" {
		p.leadAlone(ctx)
		return
	}
	holder := serverIdentity()
	defer p.releaseLeadership(holder)
	var stop func() // nil while this server is not the leader
	var leading int64
	resign := func() {
		if stop != nil {
			stop()
			stop = nil
		}
	}
	defer resign()
	renewed := time.Time{}
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		attempt, done := context.WithTimeout(ctx, leaseRenewal) // a database that has vanished does not answer
		epoch, err := p.store.Lead(attempt, leaderLease, holder, leaseDuration)
		done()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.Warn("cannot acquire the leader lease", "err", err)
			if time.Since(renewed) > leaseDuration-leaseRenewal {
				resign()
			}
		case epoch == 0:
			resign()
		case stop == nil || epoch != leading:
			resign()
			p.log.Info("became leader", "epoch", epoch)
			_, stop = p.startControllers(ctx, epoch)
			leading = epoch
		}
		if epoch != 0 {
			renewed = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// releaseLeadership ends the lease, so that another server can lead at once.
func (p *portal) releaseLeadership(holder string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseRenewal)
	defer cancel()
	if err := p.store.Resign(ctx, leaderLease, holder); err != nil {
		p.log.Warn("cannot release the leader lease; it will expire", "err", err)
	}
}

// serverIdentity is unique to this process.
func serverIdentity() string {
	host, _ := os.Hostname() // the secret is unique; the name is for logs
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + policies.NewSecret()[:8]
}
