package pool

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// Scheduler decides who gets which share of the providers' devices.
type Scheduler struct {
	store     *models.Store
	access    *policies.Access
	providers Providers
	policy    atomic.Pointer[placement.Policy]
	cached    atomic.Pointer[cached]
	seed      int64
}

// Providers is what the scheduler asks of those who keep the machines.
type Providers interface {
	// Reachable tells whether workspaces can use a provider's GPUs.
	Reachable(provider models.Provider, devices []models.Device) bool
	// MayManage tells whether the actor may set a provider's terms, drain it,
	// recall and remove it.
	MayManage(actor policies.Actor, provider models.Provider) bool
	// MayShare tells whether the actor may set how a provider's devices are
	// shared.
	MayShare(actor policies.Actor, provider models.Provider) bool
}

// New schedules over what is in store. It places by Weir's own policy.
func New(store *models.Store, access *policies.Access, providers Providers) *Scheduler {
	s := &Scheduler{store: store, access: access, providers: providers, seed: store.Now().UnixNano()}
	policy, _ := placement.PolicyNamed("", nil, 0) // the default's name is known
	s.policy.Store(&policy)
	store.OnChange(func(topics []string) {
		if slices.Contains(topics, models.AllTopics) { // perhaps to another database, with the same version
			s.cached.Store(nil)
		}
	})
	return s
}

// PlaceBy chooses another policy: one of placement.Policies.
func (s *Scheduler) PlaceBy(name string) error { return s.choosePolicy(name, nil) }

func (s *Scheduler) choosePolicy(name string, past []placement.Demand) error {
	policy, err := placement.PolicyNamed(name, past, s.seed)
	if err == nil {
		s.policy.Store(&policy)
	}
	return err
}

const (
	// learnPeriod is how often the policy learns from what was asked since.
	learnPeriod = 10 * time.Minute
	// learnedDemands is how many of the newest demands a policy learns from.
	learnedDemands = 10_000
)

// Run lets the policy learn until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	tick := time.NewTicker(learnPeriod)
	defer tick.Stop()
	for {
		if err := s.learn(ctx); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "the placement policy has not learned", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// learn teaches the policy what is usually asked of this pool.
func (s *Scheduler) learn(ctx context.Context) error {
	past, err := s.store.Read(ctx).PastDemands(learnedDemands)
	if err != nil {
		return err
	}
	demands := make([]placement.Demand, len(past))
	for i, d := range past {
		demands[i] = demandOf(d.ProjectID, d.Demand)
	}
	return s.choosePolicy(s.policy.Load().Name, demands)
}

func demandOf(project int64, d models.Demand) placement.Demand {
	return placement.Demand{GPUs: int(d.GPUs), Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB, Model: d.GPUModel, Project: project}
}
