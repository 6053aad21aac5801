package providers

import (
	"errors"
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

// tellReserved tells the users of the reservations on the machine of a provider of which a part is at risk. The text
// is of what is reserved, and from when.
func tellReserved(q *store.Queries, provider int64, atRisk func(models.ReservedView) bool,
	text func(what models.Text, from models.Instant) models.Text) error {
	grants, err := q.ReservedAmong(store.MachineOf(provider))
	if err != nil {
		return err
	}
	told := map[int64]bool{}
	for _, g := range grants {
		if told[g.ReservationID] || !atRisk(g) {
			continue
		}
		told[g.ReservationID] = true
		r, err := q.Reservation(store.AllProjects, g.ReservationID)
		if err != nil {
			return err
		}
		n := r.Notification(models.NotificationReservationAtRisk,
			text(models.Say("%d × %d GPU cores", r.GPUs, r.Cores), models.Instant{At: r.StartsAt}))
		if err := q.Notify([]int64{r.UserID}, n); err != nil {
			return err
		}
	}
	return nil
}

// tellExcluded tells the users of reservations on the machine of a provider that its terms do not admit, as the
// former ones did.
func tellExcluded(q *store.Queries, provider models.Provider, former models.Terms) error {
	grants, err1 := q.ReservedAmong(store.MachineOf(provider.ID))
	list, err2 := q.DevicesOf(provider.ID)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	devices := map[int64]models.Device{}
	for _, d := range list {
		devices[d.ID] = d
	}
	excluded := func(g models.ReservedView) bool {
		from := g.StartsAt
		if now := q.Now(); from.Before(now) {
			from = now
		}
		admits := func(t models.Terms) bool {
			return t.Admits(devices[g.DeviceID].PhysicalID(), g.ProjectID, reservedBeside(g, grants, devices, t), from, g.EndsAt)
		}
		return admits(former) && !admits(provider.Terms)
	}
	return tellReserved(q, provider.ID, excluded, func(what models.Text, from models.Instant) models.Text {
		return models.Say("The owner of %s has changed its terms. Your reservation of %s from %s may not be usable any more.",
			provider.Name, what, from)
	})
}

// anyReservation is at risk.
func anyReservation(models.ReservedView) bool { return true }

// reservedBeside are the cores of a GPU that grants take at most at any moment of one of them, as far as terms lend
// them.
func reservedBeside(g models.ReservedView, grants []models.ReservedView, devices map[int64]models.Device, t models.Terms) (most int64) {
	gpu := devices[g.DeviceID].PhysicalID()
	var beside []models.ReservedView
	for _, other := range grants {
		if devices[other.DeviceID].PhysicalID() == gpu && other.Overlaps(g.ReservationGrant) && t.Lends(gpu, other.ProjectID) {
			beside = append(beside, other)
		}
	}
	for _, first := range beside { // the most is in use when one of them begins
		at := first.StartsAt
		if at.Before(g.StartsAt) {
			at = g.StartsAt
		}
		var cores int64
		for _, other := range beside {
			if !other.StartsAt.After(at) && other.EndsAt.After(at) {
				cores += reservedCores(other, devices[other.DeviceID])
			}
		}
		most = max(most, cores)
	}
	return most
}

// reservedCores are the cores that a grant takes of its GPU; an instance is taken whole.
func reservedCores(g models.ReservedView, d models.Device) int64 {
	if d.ParentID != nil {
		return d.Cores
	}
	return g.Cores
}
