package main

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/policies"
)

// The leader's lease.
const (
	leaderLease   = "controller"
	leaseDuration = 10 * time.Second
	leaseRenewal  = 3 * time.Second
)

// fence keeps a server that is no longer the leader from writing what only the
// leader may. Its zero value lets everything pass: there is one server.
type fence struct{ epoch atomic.Int64 }

func (f *fence) check(q *models.Queries) error {
	if epoch := f.epoch.Load(); epoch != 0 {
		return q.Fence(leaderLease, epoch)
	}
	return nil
}

// runControllers does what one server alone may do, until ctx ends.
func (p *portal) runControllers(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { p.reconciler.Run(ctx) })
	work.Go(func() { p.providers.Run(ctx) })
	work.Go(func() { p.pool.Run(ctx) })
	work.Go(func() { p.sender.Run(ctx) })
	work.Go(func() { p.periods.Run(ctx) })
	if p.cluster != nil {
		work.Go(func() { p.advertise(ctx) })
	}
	work.Wait()
}

// term is a time in which this server is the leader.
type term struct {
	stop context.CancelFunc
	over chan struct{}
}

func (p *portal) startTerm(ctx context.Context) *term {
	ctx, stop := context.WithCancel(ctx)
	t := &term{stop, make(chan struct{})}
	go func() {
		defer close(t.over)
		p.runControllers(ctx)
	}()
	return t
}

// end ends a term, if there is one, and waits until it is over.
func (t *term) end() {
	if t != nil {
		t.stop()
		<-t.over
	}
}

// runElection runs the controllers while this server is the leader. Where it is
// the only one, by its claim on the data directory or the database, that is
// always.
func (p *portal) runElection(ctx context.Context) {
	if p.cfg.Runtime == "local" {
		p.runControllers(ctx)
		return
	}
	holder := serverIdentity()
	defer p.releaseLeadership(holder)
	var current *term
	defer func() { current.end() }()
	renewed := time.Time{}
	tick := time.NewTicker(leaseRenewal)
	defer tick.Stop()
	for {
		epoch, err := p.store.Lead(ctx, leaderLease, holder, leaseDuration)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.Warn("cannot acquire the leader lease", "err", err)
			if time.Since(renewed) > leaseDuration-leaseRenewal {
				current.end()
				current = nil
			}
		case epoch == 0:
			current.end()
			current = nil
		case current == nil || epoch != p.fence.epoch.Load():
			current.end()
			p.fence.epoch.Store(epoch)
			p.log.Info("became leader", "epoch", epoch)
			current = p.startTerm(ctx)
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

// releaseLeadership lets another server lead at once.
func (p *portal) releaseLeadership(holder string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseRenewal)
	defer cancel()
	if err := p.store.Resign(ctx, leaderLease, holder); err != nil {
		p.log.Warn("cannot release the leader lease; it will expire", "err", err)
	}
}

// serverIdentity tells this process from all others.
func serverIdentity() string {
	host, _ := os.Hostname() // the secret is enough; the name is for people
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + policies.NewSecret()[:8]
}
