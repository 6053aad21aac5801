package providers

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
)

// sweepPeriod is the time between two sweeps.
const sweepPeriod = 2 * time.Second

// Run sweeps until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(sweepPeriod)
	defer tick.Stop()
	s.forgiveSilence()
	for last := s.store.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if s.store.Now().Sub(last) > lostAfter/2 { // this process has stood still
			s.forgiveSilence()
		}
		if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
			s.store.Log().ErrorContext(ctx, "providers not swept", "err", err)
		}
		last = s.store.Now()
	}
}

// Sweep marks providers without heartbeats as lost, and announces the ends of
// shares that follow from terms and recalls.
func (s *Service) Sweep(ctx context.Context) error {
	q, began := s.store.Read(ctx), s.store.Now()
	providers, err := q.Providers()
	if err != nil || s.store.Now().Sub(began) > lostAfter/2 {
		s.forgiveSilence()
	}
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
		if s.lost(provider) {
			failed = append(failed, s.markLost(ctx, provider.ID))
		}
		if at, _ := shareEnd(provider, s.store.Now()); at != nil || ending[provider.ID] {
			failed = append(failed, s.announceDue(ctx, provider))
		}
	}
	return errors.Join(failed...)
}

// lostAfter is the time without heartbeats after which a provider is lost: several
// heartbeats, and the time of a restart of the server.
const lostAfter = 20 * time.Second

// lost reports whether a provider is lost.
func (s *Service) lost(provider models.Provider) bool {
	now := s.store.Now()
	return provider.State != models.ProviderLost && now.Sub(provider.SeenAt) > lostAfter && now.Sub(time.Unix(0, s.since.Load())) > lostAfter
}

func (s *Service) markLost(ctx context.Context, id int64) error {
	return lockedTx(ctx, s.store, func(q *store.Queries) error {
		provider, err := q.Provider(id)
		if err != nil || !s.lost(provider) || provider.State == models.ProviderOffline {
			return err
		}
		return markLost(q, &provider, models.Say("no heartbeat for %d seconds", int64(s.store.Now().Sub(provider.SeenAt)/time.Second)))
	})
}

// announceDue announces the end of the shares of a provider if it has changed.
func (s *Service) announceDue(ctx context.Context, provider models.Provider) error {
	at, _ := shareEnd(provider, s.store.Now())
	stale, err := s.store.Read(ctx).SharesWithOtherEnd(provider.ID, at)
	if err != nil || len(stale) == 0 {
		return err
	}
	return lockedTx(ctx, s.store, func(q *store.Queries) error {
		provider, err := q.Provider(provider.ID)
		if err != nil {
			return err
		}
		return announceEnd(q, provider)
	})
}
