package providers

import (
	"sync/atomic"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Service manages providers and their devices.
type Service struct {
	store     *store.Store
	access    *policies.Access
	reachable func(models.Provider) bool
	home      atomic.Int64 // the provider of the host; 0: none
	zones     models.ClientZones
	since     atomic.Int64 // ns since 1970: heartbeats are missed from then on
}

// New returns the service. reachable reports whether workspaces can run on a
// provider's machine; nil: only on the host. The host measures its latency to zones.
func New(store *store.Store, access *policies.Access, reachable func(models.Provider) bool, zones ...models.ClientZone) *Service {
	s := &Service{store: store, access: access, reachable: reachable, zones: zones}
	s.forgiveSilence()
	return s
}

// Reachable reports whether workspaces can use a provider's GPUs. If they run only
// on the host, simulated GPUs of all providers are reachable.
func (s *Service) Reachable(p *models.Provider, simulated bool) bool {
	if s.reachable != nil {
		return s.reachable(*p)
	}
	return simulated || p.ID == s.home.Load()
}

// CanManage reports whether the actor may set a provider's terms, and drain, recall
// and remove it.
func (s *Service) CanManage(actor policies.Actor, provider models.Provider) bool {
	return s.access.MayOwned(actor, provider.Owner(), policies.Platform, policies.ProviderWrite)
}

// CanSetSharing reports whether the actor may set the sharing modes of a provider's
// devices.
func (s *Service) CanSetSharing(actor policies.Actor, provider models.Provider) bool {
	return s.access.MayOwned(actor, provider.Owner(), policies.Platform, policies.DeviceWrite)
}

// forgiveSilence gives all providers time for a heartbeat, which may not have been received: after the start of the
// portal, and after the database was away.
func (s *Service) forgiveSilence() { s.since.Store(s.store.Now().UnixNano()) }
