package providers

import (
	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// markSeen records contact with a provider. A lost provider becomes reachable
// again, with its shares.
func markSeen(q *store.Queries, provider *models.Provider) error {
	now := q.Now()
	provider.SeenAt = now
	state := provider.ReachableState()
	if state == provider.State {
		return q.TouchProvider(provider.ID, now)
	}
	before := *provider
	provider.State, provider.Reason = state, models.Text{}
	if err := q.TransitionProvider(provider, before.State); err != nil {
		return err
	}
	if before.State == models.ProviderLost {
		if err := notifyOwner(q, *provider, models.NotificationProviderReturned,
			models.Say("The machine %s is responding again.", provider.Name)); err != nil {
			return err
		}
		if err := q.TellHoldersAt(provider.ID, models.Say("The machine %s is responding again. The share was kept.", provider.Name)); err != nil {
			return err
		}
	}
	return auditState(q, before, *provider)
}

// markLost marks a provider lost, with an event for the holders of its shares. The users of its reservations that have
// begun are told; those of others when they begin.
func markLost(q *store.Queries, provider *models.Provider, reason models.Text) error {
	before := *provider
	provider.State, provider.Reason = models.ProviderLost, reason
	if err := q.TransitionProvider(provider, before.State); err != nil {
		return err
	}
	if before.State != models.ProviderLost {
		if err := notifyOwner(q, *provider, models.NotificationProviderLost,
			models.Say("The machine %s is lost: %s.", provider.Name, reason)); err != nil {
			return err
		}
		if err := q.TellHoldersAt(provider.ID, models.Say("The machine %s is lost: %s. The share is kept until it returns.", provider.Name,
			reason)); err != nil {
			return err
		}
		begun := func(g models.ReservedView) bool { return !g.StartsAt.After(q.Now()) }
		if err := tellReserved(q, provider.ID, begun, func(what models.Text, from models.Instant) models.Text {
			return models.Say("The machine %s is lost. Your reservation of %s from %s cannot be used until it returns.", provider.Name, what, from)
		}); err != nil {
			return err
		}
	}
	return auditState(q, before, *provider)
}

// notifyOwner notifies the owner of a provider and the administrators.
func notifyOwner(q *store.Queries, provider models.Provider, kind string, text models.Text) error {
	to, err := q.Administrators()
	if err != nil {
		return err
	}
	if provider.OwnerID != nil {
		to = append(to, *provider.OwnerID)
	}
	return q.Notify(to, models.Notification{Kind: kind, Text: text, Link: "/pool",
		Data: models.ProviderNotification{ProviderID: provider.ID, Name: provider.Name, State: provider.State}})
}

func auditState(q *store.Queries, before, after models.Provider) error {
	return policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: after.ID,
		Before: map[string]any{"state": before.State}, After: map[string]any{"state": after.State, "reason": after.Reason.String()}})
}
