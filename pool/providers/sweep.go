package providers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/models"
)

// sweepPeriod is how often silence and ends are looked for.
const sweepPeriod = 2 * time.Second

// Run sweeps until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sweepPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "providers not swept", "err", err)
		}
	}
}

// Sweep takes silent providers for lost, and announces to holders the ends
// that owners have set. It is to be called every few seconds.
func (s *Service) Sweep(ctx context.Context) error {
	q := s.store.Read(ctx)
	providers, err := q.Providers()
	if err != nil {
		return err
	}
	ending, err := q.ProvidersWithEnds()
	if err != nil {
		return err
	}
	var failed []error
	for _, provider := range providers {
		if provider.State == models.ProviderOffline {
			continue
		}
		if s.silent(provider) {
			failed = append(failed, s.loseSilent(ctx, provider.ID))
		}
		if at, _ := shareEnd(provider, s.store.Now()); at != nil || ending[provider.ID] {
			failed = append(failed, s.announceDue(ctx, provider))
		}
	}
	return errors.Join(failed...)
}

// lostAfter is how long a provider may be silent before it is taken for
// lost: several heartbeats, and the time that a server needs to start again.
const lostAfter = 20 * time.Second

// silent tells whether a provider should be taken for lost. A portal that has
// just started gives everybody time to speak.
func (s *Service) silent(provider models.Provider) bool {
	now := s.store.Now()
	return provider.State != models.ProviderLost && now.Sub(provider.SeenAt) > lostAfter && now.Sub(s.started) > lostAfter
}

func (s *Service) loseSilent(ctx context.Context, id int64) error {
	return s.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := q.Provider(id)
		if err != nil || !s.silent(provider) || provider.State == models.ProviderOffline {
			return err
		}
		return markLost(q, &provider, models.Say("no heartbeat for %d seconds", int64(s.store.Now().Sub(provider.SeenAt)/time.Second)))
	})
}

// announceDue announces the end of the shares at a provider, where their
// holders were told another.
func (s *Service) announceDue(ctx context.Context, provider models.Provider) error {
	at, _ := shareEnd(provider, s.store.Now())
	stale, err := s.store.Read(ctx).SharesWithOtherEnd(provider.ID, at)
	if err != nil || len(stale) == 0 {
		return err
	}
	return s.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := q.Provider(provider.ID)
		if err != nil {
			return err
		}
		return announceEnd(q, provider)
	})
}
