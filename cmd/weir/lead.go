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

const (
	leadership = "controller"
	leaseTime  = 10 * time.Second
	leaseRenew = 3 * time.Second
)

// fence keeps a server that has ceased to lead from writing what only the
// leader may. Its zero value lets everything pass: there is one server.
type fence struct{ epoch atomic.Int64 }

func (f *fence) check(q *models.Queries) error {
	if epoch := f.epoch.Load(); epoch != 0 {
		return q.Fence(leadership, epoch)
	}
	return nil
}

// control does what one server alone may do, until ctx ends.
func (p *portal) control(ctx context.Context) {
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

// tenure is a time in which this server leads.
type tenure struct {
	stop context.CancelFunc
	over chan struct{}
}

func (p *portal) beginTenure(ctx context.Context) *tenure {
	ctx, stop := context.WithCancel(ctx)
	t := &tenure{stop, make(chan struct{})}
	go func() {
		defer close(t.over)
		p.control(ctx)
	}()
	return t
}

// end ends a tenure, if there is one, and waits until it is over.
func (t *tenure) end() {
	if t != nil {
		t.stop()
		<-t.over
	}
}

// lead controls while this server leads. Where it is the only one, by its
// claim on the data directory or the database, that is always.
func (p *portal) lead(ctx context.Context) {
	if p.cfg.Runtime == "local" {
		p.control(ctx)
		return
	}
	holder := holderName()
	defer p.resign(holder)
	var now *tenure
	defer func() { now.end() }()
	renewed := time.Time{}
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	for {
		epoch, err := p.store.Lead(ctx, leadership, holder, leaseTime)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			p.log.Warn("the lead cannot be asked for", "err", err)
			if time.Since(renewed) > leaseTime-leaseRenew {
				now.end()
				now = nil
			}
		case epoch == 0:
			now.end()
			now = nil
		case now == nil || epoch != p.fence.epoch.Load():
			now.end()
			p.fence.epoch.Store(epoch)
			p.log.Info("this server leads", "epoch", epoch)
			now = p.beginTenure(ctx)
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

// resign lets the next server lead at once.
func (p *portal) resign(holder string) {
	ctx, cancel := context.WithTimeout(context.Background(), leaseRenew)
	defer cancel()
	if err := p.store.Resign(ctx, leadership, holder); err != nil {
		p.log.Warn("the lead was not given up; it ends by itself", "err", err)
	}
}

// holderName tells this process from all others.
func holderName() string {
	host, _ := os.Hostname() // the secret is enough; the name is for people
	return host + "/" + strconv.Itoa(os.Getpid()) + "/" + policies.NewSecret()[:8]
}
