package pool

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/placement"
)

// Scheduler allocates shares of the providers' devices.
type Scheduler struct {
	store     *store.Store
	access    *policies.Access
	providers Providers
	cached    atomic.Pointer[cached]
	displayed *store.Cache[struct{}, state] // see display
	used      usedByProjects
	name      string // of the policy

	mu     sync.Mutex
	policy placement.Policy
	engine *placement.Engine // as some snapshot was
}

// cached is a snapshot with the version of the pool at which it was read.
type cached struct {
	version  int64
	snapshot snapshot
}

// Providers are the service of the providers.
type Providers interface {
	// Reachable reports whether workspaces can use a provider's GPUs, which may
	// all be simulated.
	Reachable(provider *models.Provider, simulated bool) bool
	// CanManage reports whether the actor may set a provider's terms, drain it,
	// recall and remove it.
	CanManage(actor policies.Actor, provider models.Provider) bool
	// CanSetSharing reports whether the actor may set how a provider's devices are
	// shared.
	CanSetSharing(actor policies.Actor, provider models.Provider) bool
}

// New schedules over what is in store. It places by Weir's own policy.
func New(db *store.Store, access *policies.Access, providers Providers) *Scheduler {
	s := &Scheduler{store: db, access: access, providers: providers, name: placement.Default,
		displayed: store.NewCache[struct{}, state](db, 1)}
	s.setPolicy(placement.Policy{})
	db.OnChange(func(topics []string) {
		if slices.Contains(topics, store.Reconnected) { // another database may have the same version
			s.cached.Store(nil)
		}
	})
	return s
}

// SetPolicyByName chooses another policy: one of placement.Policies. It is called
// before the scheduler is used.
func (s *Scheduler) SetPolicyByName(name string) error {
	policy, err := placement.PolicyNamed(name, nil)
	if err == nil {
		s.name = name
		s.setPolicy(policy)
	}
	return err
}

func (s *Scheduler) setPolicy(policy placement.Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy, s.engine = policy, placement.New(nil, policy)
}

// find chooses the devices for a demand and explains the choice. It leaves out
// the providers in without.
func (s *Scheduler) find(snap snapshot, d placement.Demand, without []int64) (c placement.Choice, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine = s.engine.Update(snap.nodes)
	if c, ok = s.engine.Find(d, without...); ok {
		c.Explanation = s.engine.Explain(c, d, without...)
	}
	return c, ok
}

const (
	// learnPeriod is how often the policy learns from the past requests.
	learnPeriod = 10 * time.Minute
	// learnedDemands is how many of the newest demands a policy learns from.
	learnedDemands = 10_000
)

// Run updates the policy regularly until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	tick := time.NewTicker(learnPeriod)
	defer tick.Stop()
	for {
		if err := s.updatePolicy(ctx); err != nil && ctx.Err() == nil {
			s.store.Log().ErrorContext(ctx, "the placement policy has not learned", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// updatePolicy makes the policy follow the newest requests.
func (s *Scheduler) updatePolicy(ctx context.Context) error {
	past, err := s.store.Read(ctx).PastDemands(time.Time{}, learnedDemands)
	if err != nil {
		return err
	}
	demands := models.Map(past, func(d store.PastDemand) placement.Demand { return demandOf(d.ProjectID, d.Demand) })
	policy, err := placement.PolicyNamed(s.name, demands)
	if err == nil {
		s.setPolicy(policy)
	}
	return err
}

func demandOf(project int64, d models.Demand) placement.Demand {
	return placement.Demand{GPUs: int(d.GPUs), Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB, Model: d.GPUModel, Project: project}
}
