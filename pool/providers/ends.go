package providers

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// shareEnd is when the shares of a provider must end because of a recall or the
// lending hours, and why; nil before the grace period.
func shareEnd(provider models.Provider, now time.Time) (*time.Time, models.Text) {
	at, why := provider.RecallAt, models.Say("the owner of %s has recalled its GPUs", provider.Name)
	if provider.RecallReason != "" {
		why = models.Say("the owner of %s has recalled its GPUs: %s", provider.Name, provider.RecallReason)
	}
	open, until := provider.Terms.Open(now)
	notification := time.Duration(provider.Terms.GraceMinutes) * time.Minute
	switch {
	case len(provider.Terms.Hours) == 0:
	case !open:
		return &now, models.Say("%s lends its GPUs only at certain hours", provider.Name)
	case until != nil && until.Sub(now) <= notification && (at == nil || until.Before(*at)):
		return until, models.Say("%s lends its GPUs only at certain hours", provider.Name)
	}
	if at == nil {
		return nil, models.Text{}
	}
	return at, why
}

// announceEnd sets or clears the end of the shares of a provider, with one event
// for each holder. It needs the pool's lock.
func announceEnd(q *store.Queries, provider models.Provider) error {
	at, why := shareEnd(provider, q.Now())
	stale, err := q.SharesWithOtherEnd(provider.ID, at)
	if err != nil {
		return err
	}
	notified := map[int64]bool{}
	for _, share := range stale {
		if err := q.AnnounceShareEnd(share.ID, at, why); err != nil {
			return err
		}
		if notified[share.HolderID] {
			continue
		}
		notified[share.HolderID] = true
		if err := notifyEnd(q, share.HolderID, at, why); err != nil {
			return err
		}
	}
	return nil
}

// notifyEnd adds the end of its shares to the history of a holder and tells its user; nil
// withdraws the end.
func notifyEnd(q *store.Queries, holder int64, at *time.Time, why models.Text) error {
	if at == nil {
		_, err := q.TellHolder(holder, models.Say("The share no longer ends early."))
		return err
	}
	h, err := q.TellHolder(holder, models.Say("The share ends at %s: %s.", models.Instant{At: *at}, why))
	if err != nil {
		return err
	}
	n, ok := h.ShareEnding(*at, why)
	if !ok {
		return nil
	}
	return q.Notify([]int64{h.UserID}, n)
}
