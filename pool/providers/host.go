package providers

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Host is the portal's own machine.
type Host struct {
	Name   string
	Digest string // see MachineDigest
}

// Enlist makes the host a provider with the devices of its inventory, and the one
// on which workspaces run. If an agent was enrolled for the host, the agent
// reports the devices.
func (s *Service) Enlist(ctx context.Context, host Host, inventory Inventory) error {
	reports, err := inventory.Devices(ctx)
	if err != nil {
		return err
	}
	return lockedTx(ctx, s.store, func(q *store.Queries) error {
		provider, err := homeProvider(q, host, reports)
		if err != nil {
			return err
		}
		s.home.Store(provider.ID)
		if err := removeOthers(q, provider.ID); err != nil || provider.Agent {
			return err
		}
		if err := markSeen(q, &provider); err != nil {
			return err
		}
		foreign, err := register(q, &provider, reports)
		if err != nil {
			return err
		}
		return setReason(q, &provider, foreign)
	})
}

// homeProvider finds or creates the provider of the host: by its digest, by its
// name if the row has no digest yet, or by its GPUs if its identity has changed.
func homeProvider(q *store.Queries, host Host, reports []DeviceReport) (models.Provider, error) {
	provider, err := q.ProviderByMachine(host.Digest)
	if err == nil || models.KindOf(err) != models.KindNotFound {
		return provider, err
	}
	provider, err = q.ProviderByName(host.Name)
	if err == nil && provider.Machine == "" {
		provider.Machine = host.Digest
		return provider, q.UpdateProvider(&provider)
	}
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return provider, err
	}
	known, err := formerProvider(q, reports)
	if err != nil {
		return provider, err
	}
	if known != nil {
		before := *known
		known.Machine = host.Digest
		if err := q.UpdateProvider(known); err != nil {
			return provider, err
		}
		return *known, policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: known.ID, Before: before,
			After: *known})
	}
	if provider, err = newProvider(q, host.Name, host.Digest); err != nil {
		return provider, err
	}
	return provider, policies.System("inventory").Audit(q, policies.Change{Action: "register", Object: "provider", ID: provider.ID,
		After: provider})
}

// formerProvider finds the provider without an agent that had some of the reported GPUs:
// the host under an earlier identity. nil if there is none or more than one.
func formerProvider(q *store.Queries, reports []DeviceReport) (found *models.Provider, err error) {
	here := map[string]bool{}
	for _, r := range reports {
		here[r.UUID] = r.Parent == ""
	}
	providers, err := q.Providers()
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		if p.Agent || p.State == models.ProviderOffline {
			continue
		}
		devices, err := q.DevicesOf(p.ID)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(devices, func(d models.Device) bool { return d.ParentID == nil && here[d.UUID] }) {
			continue
		}
		if found != nil {
			return nil, nil
		}
		found = &p
	}
	return found, nil
}

// removeOthers removes former identities of the host from the pool. Those with
// open shares stay, and become lost without heartbeats.
func removeOthers(q *store.Queries, home int64) error {
	providers, err := q.Providers()
	if err != nil {
		return err
	}
	for _, p := range providers {
		if p.ID == home || p.Agent || p.State == models.ProviderOffline {
			continue
		}
		if inUse, err := q.OpenSharesAt(p.ID); err != nil {
			return err
		} else if inUse > 0 {
			continue
		}
		if err := remove(q, &p, policies.System("inventory")); err != nil {
			return err
		}
	}
	return nil
}

// Report processes the heartbeat of the host, which needs no credentials.
func (s *Service) Report(ctx context.Context, b Heartbeat) (o Orders, err error) {
	home, applied := s.home.Load(), false
	err = lockedTx(ctx, s.store, func(q *store.Queries) error {
		provider, err := q.Provider(home)
		if err != nil || provider.Agent || provider.State == models.ProviderOffline {
			return err
		}
		applied = true
		o, err = apply(q, &provider, b)
		return err
	})
	if err != nil || !applied {
		return o, err
	}
	o.Probes = probes(s.zones)
	return o, saveMeasurements(ctx, s.store, home, b, s.zones)
}
