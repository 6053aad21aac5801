package projects

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// Capacity compares the sum of the quotas with the capacity of the pool.
type Capacity struct {
	store    *store.Store
	access   *policies.Access
	machines Machines
	defaults Defaults
}

// Defaults are what quotas are filled from where the machines of the pool do not say.
type Defaults struct {
	Machine models.Resources // CPU and memory of the only machine that runs workspaces; 0: there are others
	PerGPU  models.Resources
}

// Machines returns the capacity of the lending machines, and the part of it that is
// simulated.
type Machines interface {
	Capacity(q *store.Queries) (all, simulated models.Resources, err error)
}

// NewCapacity returns the service.
func NewCapacity(store *store.Store, access *policies.Access, machines Machines, defaults Defaults) *Capacity {
	return &Capacity{store, access, machines, defaults}
}

// quotaBase is what a quota is filled from now; own is the present one. Of a capacity that
// may not be allocated whole, it is filled from what may.
func (c *Capacity) quotaBase(q *store.Queries, own models.Resources) (quota.Base, error) {
	s, err := c.state(q)
	return quota.Pool{Capacity: s.allocatable(s.capacity.Sub(s.machine)), Allocated: s.allocated.Sub(own),
		Machine: s.allocatable(c.defaults.Machine), PerGPU: c.defaults.PerGPU}.QuotaBase(), err
}

// allocatable is the part of a capacity, at most all, that may be allocated.
func (s capacityState) allocatable(r models.Resources) models.Resources {
	return r.Each(s.setting.Ratio, func(amount, ratio int64) int64 { return amount * min(ratio, 100) / 100 })
}

// CapacityRow is the capacity and the allocation of one resource.
type CapacityRow struct {
	models.Amount          // Value is the sum of the quotas
	Known            bool  // the capacity is known
	Capacity         int64 // of lending machines; of CPU, memory and storage as configured, or else Machine
	Simulated        int64 // the part of simulated GPUs
	Machine          bool  // it is that of the only machine that runs workspaces
	Ratio            int64 // overcommit ratio, percent
	Allocatable      int64 // capacity × ratio
	AboveAllocatable int64 // allocated beyond what is allocatable
	AboveCapacity    int64 // allocated beyond the capacity
}

// Beyond is how much more than is allocatable would be allocated with more; 0 if the
// capacity is not known, or a quota is unlimited already.
func (r CapacityRow) Beyond(more int64) int64 {
	if !r.Known || more <= 0 || models.IsUnlimited(r.Value) {
		return 0
	}
	return max(r.Value+more-r.Allocatable, 0)
}

// CapacityView is the capacity with the allocations of projects.
type CapacityView struct {
	Rows     []CapacityRow
	Setting  models.Overcommit
	Projects []ProjectView // whose period of use is not over, one page
}

// View shows the capacity with one page of projects.
func (c *Capacity) View(ctx context.Context, actor policies.Actor, page store.Page) (v CapacityView, err error) {
	if err := c.access.Check(actor, policies.Platform, policies.CapacityRead); err != nil {
		return v, err
	}
	q := c.store.Read(ctx)
	if v.Rows, v.Setting, err = c.rows(q); err != nil {
		return v, err
	}
	projects, err := q.AllocatedProjects(q.Now(), page)
	if err != nil || len(projects) == 0 {
		return v, err
	}
	v.Projects, err = viewsOf(q, projects...)
	return v, err
}

// ByResource returns the current rows of all resources.
func (c *Capacity) ByResource(q *store.Queries) ([]CapacityRow, error) {
	rows, _, err := c.rows(q)
	return rows, err
}

func (c *Capacity) rows(q *store.Queries) ([]CapacityRow, models.Overcommit, error) {
	s, err := c.state(q)
	return s.compare(), s.setting, err
}

// capacityState is the capacity, with what is allocated of it.
type capacityState struct {
	setting                        models.Overcommit
	allocated, capacity, simulated models.Resources
	machine                        models.Resources // the part of the capacity that is not configured
}

func (c *Capacity) state(q *store.Queries) (s capacityState, err error) {
	if s, err = c.present(q); err == nil {
		s.allocated, err = q.AllocatedQuotas(q.Now())
	}
	return s, err
}

// present is the state without what is allocated.
func (c *Capacity) present(q *store.Queries) (s capacityState, err error) {
	if s.setting, err = q.Overcommit(); err != nil {
		return s, err
	}
	s.capacity, s.simulated, err = c.machines.Capacity(q)
	stated := s.setting.Stated()
	if stated.CPUMilli == 0 {
		s.machine.CPUMilli = c.defaults.Machine.CPUMilli
	}
	if stated.MemoryMiB == 0 {
		s.machine.MemoryMiB = c.defaults.Machine.MemoryMiB
	}
	s.capacity = s.capacity.Add(stated).Add(s.machine)
	return s, err
}

// compare returns the rows of all resources. The capacity of GPUs is known; that of
// other resources is unknown if it is 0. An unlimited quota cannot be compared.
func (s capacityState) compare() []CapacityRow {
	capacities, ratios, simulations, machine := s.capacity.Amounts(), s.setting.Ratio.Amounts(), s.simulated.Amounts(), s.machine.Amounts()
	rows := make([]CapacityRow, len(capacities))
	for i, a := range s.allocated.Amounts() {
		have := capacities[i].Value
		r := CapacityRow{Amount: a, Known: i < 2 || have > 0, Capacity: have, Simulated: simulations[i].Value,
			Machine: machine[i].Value > 0, Ratio: ratios[i].Value}
		if r.Known {
			r.Allocatable = r.Capacity * r.Ratio / 100
		}
		if r.Known && !models.IsUnlimited(a.Value) {
			r.AboveAllocatable, r.AboveCapacity = max(a.Value-r.Allocatable, 0), max(a.Value-r.Capacity, 0)
		}
		rows[i] = r
	}
	return rows
}

// maxRatio is the maximum overcommit ratio, in percent.
const maxRatio = 10_000

// OvercommitInput is the overcommit setting.
type OvercommitInput struct {
	Ratio   models.Resources `json:"ratio" doc:"overcommit ratio per resource, percent, 1 to 10000"`
	Stated  Stated           `json:"stated,omitempty" doc:"configured capacity of resources that are not measured"`
	Version int64            `json:"-"`
}

// Stated is the configured capacity of resources that are not measured; 0 is
// unknown, so that allocations are not checked.
type Stated struct {
	CPUMilli   int64 `json:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core"`
	MemoryMiB  int64 `json:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB"`
	StorageMiB int64 `json:"storage_mib,omitempty" minimum:"0" doc:"storage, MiB"`
}

// Check validates the input.
func (in OvercommitInput) Check() error {
	var p models.Problems
	for _, a := range in.Ratio.Amounts() {
		if a.Value < 1 || a.Value > maxRatio {
			p.Add("ratio."+a.Name, "must be from 1 to %d percent", maxRatio)
		}
	}
	models.Resources{CPUMilli: in.Stated.CPUMilli, MemoryMiB: in.Stated.MemoryMiB, StorageMiB: in.Stated.StorageMiB}.Input().Check("stated",
		&p)
	return p.Err()
}

// Set changes the overcommit setting. Allocations stay.
func (c *Capacity) Set(ctx context.Context, actor policies.Actor, in OvercommitInput) (o models.Overcommit, err error) {
	err = c.access.Write(ctx, c.store, actor, policies.Platform, policies.CapacityWrite, func(q *store.Queries) error {
		if err := in.Check(); err != nil {
			return err
		}
		if err := q.LockPool(); err != nil { // serializes with approvals
			return err
		}
		if o, err = q.Overcommit(); err != nil {
			return err
		}
		if err := models.CheckVersion("setting", in.Version, o.Version); err != nil {
			return err
		}
		before := o
		o.Ratio, o.StatedCPU, o.StatedMemory, o.StatedStorage = in.Ratio, in.Stated.CPUMilli, in.Stated.MemoryMiB, in.Stated.StorageMiB
		if err := q.SetOvercommit(&o); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "overcommit", ID: o.ID, Before: before, After: o})
	})
	return o, err
}
