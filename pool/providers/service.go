package providers

import (
	"slices"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/policies"
)

// Service keeps the machines that lend GPUs, and their devices.
type Service struct {
	store     *models.Store
	access    *policies.Access
	reachable func(models.Provider) bool
	home      atomic.Int64 // the provider that is this machine; 0: none is
	started   time.Time    // nobody is taken for silent before there was time to speak
}

// New keeps the providers in store. reachable tells on whose machines
// workspaces can run; nil: on this machine alone.
func New(store *models.Store, access *policies.Access, reachable func(models.Provider) bool) *Service {
	return &Service{store: store, access: access, reachable: reachable, started: store.Now()}
}

// Reachable tells whether workspaces can use a provider's GPUs. Where they run
// on this machine alone, GPUs that are only simulated are nowhere, and so
// everywhere.
func (s *Service) Reachable(p models.Provider, devices []models.Device) bool {
	if s.reachable != nil {
		return s.reachable(p)
	}
	return p.ID == s.home.Load() || !slices.ContainsFunc(devices, func(d models.Device) bool { return !d.Simulated })
}

// MayManage tells whether the actor may set a provider's terms, drain it,
// recall and remove it: administrators and its owner may.
func (s *Service) MayManage(actor policies.Actor, provider models.Provider) bool {
	return s.access.MayOwned(actor, provider.Owner(), policies.Platform, policies.ProviderWrite)
}

// MayShare tells whether the actor may set how a provider's devices are
// shared.
func (s *Service) MayShare(actor policies.Actor, provider models.Provider) bool {
	return s.access.MayOwned(actor, provider.Owner(), policies.Platform, policies.DeviceWrite)
}
