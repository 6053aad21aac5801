package providers

import (
	"context"
	"slices"

	"weir/models"
	"weir/policies"
)

// Host is the machine that the portal runs on.
type Host struct {
	Name   string
	Digest string // see MachineDigest
}

// Enlist makes this machine a provider with what its inventory reports now,
// and the one that workspaces run on. Where an enrolled agent speaks for the
// machine, its devices are left to the agent.
func (s *Service) Enlist(ctx context.Context, host Host, inventory Inventory) error {
	reports, err := inventory.Devices(ctx)
	if err != nil {
		return err
	}
	return s.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := homeProvider(q, host, reports)
		if err != nil {
			return err
		}
		s.home.Store(provider.ID)
		if err := takeOutOthers(q, provider.ID); err != nil || provider.Agent {
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

// homeProvider finds or makes the provider that a host is. A row from before
// machines had identities is known by its name, and a machine whose identity
// has changed by its GPUs.
func homeProvider(q *models.Queries, host Host, reports []DeviceReport) (models.Provider, error) {
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
	if known, err := former(q, reports); err != nil || known != nil {
		if err != nil {
			return provider, err
		}
		before := *known
		known.Machine = host.Digest
		if err := q.UpdateProvider(known); err != nil {
			return provider, err
		}
		return *known, policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: known.ID, Before: before, After: *known})
	}
	if provider, err = newProvider(q, host.Name, host.Digest); err != nil {
		return provider, err
	}
	return provider, policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID, After: provider})
}

// former finds the one provider for which the portal itself spoke and that had
// some of the reported GPUs: it is this machine under another identity. nil
// when there is none, or more than one.
func former(q *models.Queries, reports []DeviceReport) (found *models.Provider, err error) {
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

// takeOutOthers takes former identities of this machine out of the pool: only
// one provider is spoken for by the portal itself. One where shares are still
// held is lost instead, for nobody speaks for it, until they have ended.
func takeOutOthers(q *models.Queries, home int64) error {
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
		if err := takeOut(q, &p, policies.System("inventory")); err != nil {
			return err
		}
	}
	return nil
}

// Report is the heartbeat of this machine's own GPUs, for which the portal
// speaks itself: nothing has to be proven.
func (s *Service) Report(ctx context.Context, b Heartbeat) (o Orders, err error) {
	home, spoken := s.home.Load(), false
	err = s.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := q.Provider(home)
		if err != nil || provider.Agent || provider.State == models.ProviderOffline {
			return err
		}
		spoken = true
		o, err = apply(q, &provider, b)
		return err
	})
	if err != nil || !spoken {
		return o, err
	}
	return o, saveSamples(ctx, s.store, home, b.Samples)
}
