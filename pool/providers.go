package pool

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"weir/models"
	"weir/policies"
)

// lostAfter is how long a provider may be silent before it is taken for
// lost: several beats, and the time that a server needs to start again.
const lostAfter = 20 * time.Second

// hear notes that a provider has spoken. One that was lost is back, with its
// shares as they were: they were never given to anybody else.
func (p *Pool) hear(q *models.Queries, provider *models.Provider) error {
	now := q.Now()
	provider.SeenAt = now
	state := provider.Standing()
	if state == provider.State {
		return q.SeeProvider(provider.ID, now)
	}
	before := *provider
	provider.State, provider.Reason = state, models.Text{}
	if err := q.MoveProvider(provider, before.State); err != nil {
		return err
	}
	if before.State == models.ProviderLost {
		if err := p.tell(q, provider.ID, models.Say("The machine %s answers again; the share was kept.", provider.Name)); err != nil {
			return err
		}
	}
	return auditState(q, before, *provider)
}

// lose marks a provider lost, for a reason; who holds shares there is told.
func (p *Pool) lose(q *models.Queries, provider *models.Provider, reason models.Text) error {
	before := *provider
	provider.State, provider.Reason = models.ProviderLost, reason
	if err := q.MoveProvider(provider, before.State); err != nil {
		return err
	}
	if before.State != models.ProviderLost {
		if err := p.tell(q, provider.ID, models.Say("The machine %s is lost: %s. The share is kept for when it comes back.", provider.Name, reason)); err != nil {
			return err
		}
	}
	return auditState(q, before, *provider)
}

func auditState(q *models.Queries, before, after models.Provider) error {
	return policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: after.ID,
		Before: map[string]any{"state": before.State}, After: map[string]any{"state": after.State, "reason": after.Reason.String()}})
}

// tell writes a line into the history of every workspace that holds a share
// at a provider.
func (p *Pool) tell(q *models.Queries, provider int64, line models.Text) error {
	holders, err := q.HoldersAt(provider)
	if err != nil {
		return err
	}
	for i := range holders {
		if err := q.AddEvent(&holders[i], line); err != nil {
			return err
		}
	}
	return nil
}

// sweepPeriod is how often silence and ends are looked for.
const sweepPeriod = 2 * time.Second

// learnPeriod is how often the policy learns from what was asked since.
const learnPeriod = 10 * time.Minute

// Run sweeps, and lets the policy learn, until ctx ends.
func (p *Pool) Run(ctx context.Context) {
	sweep, learn := time.NewTicker(sweepPeriod), time.NewTicker(learnPeriod)
	defer sweep.Stop()
	defer learn.Stop()
	next := p.learn
	for {
		if err := next(ctx); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "background work of the pool", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			next = p.Sweep
		case <-learn.C:
			next = p.learn
		}
	}
}

// Sweep takes silent providers for lost, and announces to holders the ends
// that owners have set. It is to be called every few seconds.
func (p *Pool) Sweep(ctx context.Context) error {
	q := p.store.Read(ctx)
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
		if p.silent(provider) {
			failed = append(failed, p.mark(ctx, provider.ID))
		}
		if at, _ := end(provider, p.store.Now()); at != nil || ending[provider.ID] {
			failed = append(failed, p.announce(ctx, provider))
		}
	}
	return errors.Join(failed...)
}

// silent tells whether a provider should be taken for lost. A portal that has
// just started gives everybody time to speak.
func (p *Pool) silent(provider models.Provider) bool {
	now := p.store.Now()
	return provider.State != models.ProviderLost && now.Sub(provider.SeenAt) > lostAfter && now.Sub(p.started) > lostAfter
}

func (p *Pool) mark(ctx context.Context, id int64) error {
	return p.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := q.Provider(id)
		if err != nil || !p.silent(provider) || provider.State == models.ProviderOffline {
			return err
		}
		return p.lose(q, &provider, models.Say("nothing was heard of it for %d seconds", int64(p.store.Now().Sub(provider.SeenAt)/time.Second)))
	})
}

// end is when the shares at a provider must end by its owner's word, and why;
// nil when no end is near enough to be told.
func end(provider models.Provider, now time.Time) (*time.Time, models.Text) {
	at, why := provider.RecallAt, models.Say("the owner of %s has called its GPUs back", provider.Name)
	if provider.RecallReason != "" {
		why = models.Say("the owner of %s has called its GPUs back: %s", provider.Name, provider.RecallReason)
	}
	open, until := provider.Terms.Open(now)
	notice := time.Duration(provider.Terms.NoticeMinutes) * time.Minute
	switch {
	case len(provider.Terms.Hours) == 0:
	case !open:
		return &now, models.Say("%s lends its GPUs only at certain hours", provider.Name)
	case until != nil && until.Sub(now) <= notice && (at == nil || until.Before(*at)):
		return until, models.Say("%s lends its GPUs only at certain hours", provider.Name)
	}
	if at == nil {
		return nil, models.Text{}
	}
	return at, why
}

// announce sets the end of the shares at a provider, or takes it back, and
// tells each holder of the change once.
func (p *Pool) announce(ctx context.Context, provider models.Provider) error {
	at, _ := end(provider, p.store.Now())
	stale, err := p.store.Read(ctx).SharesEndingOtherwise(provider.ID, at)
	if err != nil || len(stale) == 0 {
		return err
	}
	return p.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := q.Provider(provider.ID)
		if err != nil {
			return err
		}
		return announce(q, provider)
	})
}

func announce(q *models.Queries, provider models.Provider) error {
	at, why := end(provider, q.Now())
	stale, err := q.SharesEndingOtherwise(provider.ID, at)
	if err != nil {
		return err
	}
	told := map[int64]bool{}
	for _, share := range stale {
		if err := q.EndShareAt(share.ID, at, why); err != nil {
			return err
		}
		if told[share.WorkspaceID] {
			continue
		}
		told[share.WorkspaceID] = true
		w, err := q.Workspace(models.Everything, share.WorkspaceID)
		if err != nil {
			return err
		}
		line := models.Say("The share will not end early after all.")
		if at != nil {
			line = models.Say("The share ends at %s: %s.", at.UTC().Format("2006-01-02 15:04 UTC"), why)
		}
		if err := q.AddEvent(&w, line); err != nil {
			return err
		}
	}
	return nil
}
