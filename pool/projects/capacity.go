package projects

import (
	"context"

	"weir/models"
	"weir/policies"
)

// Capacity compares what is allocated to projects by their quotas with what
// there is.
type Capacity struct {
	store    *models.Store
	access   *policies.Access
	machines Machines
}

// Machines tells what the machines that lend have, and of it what simulated
// GPUs have.
type Machines interface {
	Capacity(q *models.Queries) (all, simulated models.Resources, err error)
}

// NewCapacity compares with what the machines have.
func NewCapacity(store *models.Store, access *policies.Access, machines Machines) *Capacity {
	return &Capacity{store, access, machines}
}

// CapacityRow is one resource: what there is of it, and what of it is
// allocated to projects by their quotas.
type CapacityRow struct {
	models.Amount       // Value is what is allocated
	Known         bool  // whether it is known how much there is
	Capacity      int64 // of machines that lend; of CPU, memory and storage what an administrator stated
	Simulated     int64 // of the capacity what simulated GPUs have
	Ratio         int64 // percent of the capacity that may be allocated
	Limit         int64 // capacity × ratio
	Excess        int64 // allocated beyond the limit
	Missing       int64 // allocated beyond the capacity
}

// Beyond is how much above the limit would be allocated with more; 0 when
// that stays below, or when it is not known how much there is.
func (r CapacityRow) Beyond(more int64) int64 {
	if !r.Known || more <= 0 {
		return 0
	}
	return max(r.Value+more-r.Limit, 0)
}

// CapacityView is what is allocated, of what, and to whom.
type CapacityView struct {
	Rows     []CapacityRow
	Setting  models.Overcommit
	Projects []ProjectView // whose period of use is not over, one page
}

// View shows what is allocated; only platform administrators may see it.
func (c *Capacity) View(ctx context.Context, actor policies.Actor, page models.Page) (v CapacityView, err error) {
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
	v.Projects, err = ViewsOf(q, projects...)
	return v, err
}

// ByResource are all resources as they stand.
func (c *Capacity) ByResource(q *models.Queries) ([]CapacityRow, error) {
	rows, _, err := c.rows(q)
	return rows, err
}

func (c *Capacity) rows(q *models.Queries) ([]CapacityRow, models.Overcommit, error) {
	o, err := q.Overcommit()
	if err != nil {
		return nil, o, err
	}
	allocated, err := q.AllocatedQuotas(q.Now())
	if err != nil {
		return nil, o, err
	}
	all, simulated, err := c.machines.Capacity(q)
	if err != nil {
		return nil, o, err
	}
	return compare(allocated, all.Add(o.Stated()), simulated, o.Ratio), o, nil
}

// compare holds what is allocated against capacity, resource by resource. Of
// GPUs the capacity is known; of the others 0 means that nobody has stated it.
func compare(allocated, capacity, simulated, ratio models.Resources) []CapacityRow {
	have, ratios, pretended := capacity.Amounts(), ratio.Amounts(), simulated.Amounts()
	rows := make([]CapacityRow, len(have))
	for i, a := range allocated.Amounts() {
		r := CapacityRow{Amount: a, Known: i < 2 || have[i].Value > 0, Capacity: have[i].Value, Simulated: pretended[i].Value, Ratio: ratios[i].Value}
		if r.Known {
			r.Limit = r.Capacity * r.Ratio / 100
			r.Excess, r.Missing = max(a.Value-r.Limit, 0), max(a.Value-r.Capacity, 0)
		}
		rows[i] = r
	}
	return rows
}

// maxRatio is the most that may be allocated of a resource, in percent.
const maxRatio = 10_000

// OvercommitInput says how much of each resource may be allocated.
type OvercommitInput struct {
	Ratio   models.Resources `json:"ratio" doc:"overcommit ratio per resource, percent, 1 to 10000"`
	Stated  Stated           `json:"stated,omitempty" doc:"configured capacity of resources that are not measured"`
	Version int64            `json:"-"`
}

// Stated is how much there is of what nothing measures; 0 is unknown, and
// then what is allocated of it is not checked.
type Stated struct {
	CPUMilli   int64 `json:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core"`
	MemoryMiB  int64 `json:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB"`
	StorageMiB int64 `json:"storage_mib,omitempty" minimum:"0" doc:"storage, MiB"`
}

func (in OvercommitInput) check() error {
	var p models.Problems
	for _, a := range in.Ratio.Amounts() {
		if a.Value < 1 || a.Value > maxRatio {
			p.Add("ratio."+a.Name, "must be from 1 to %d percent", maxRatio)
		}
	}
	models.Resources{CPUMilli: in.Stated.CPUMilli, MemoryMiB: in.Stated.MemoryMiB, StorageMiB: in.Stated.StorageMiB}.Check("stated", &p)
	return p.Err()
}

// Set changes how much may be allocated; only platform administrators may.
// Nothing that is allocated is taken back.
func (c *Capacity) Set(ctx context.Context, actor policies.Actor, in OvercommitInput) (o models.Overcommit, err error) {
	err = c.access.Write(ctx, c.store, actor, policies.Platform, policies.CapacityWrite, func(q *models.Queries) error {
		if err := in.check(); err != nil {
			return err
		}
		if err := q.LockPool(); err != nil { // no approval counts with the old ones meanwhile
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

// Beyond words what would be allocated beyond the limits with more.
func Beyond(rows []CapacityRow, more models.Resources) (texts []models.Text) {
	mores := more.Amounts()
	for i, r := range rows {
		if over := r.Beyond(mores[i].Value); over > 0 {
			texts = append(texts, models.Say("%s: %s would be allocated, %s more than the maximum of %s (%d %% of the pool's capacity of %s)", r.Label,
				models.Quantity(r.Name, r.Value+mores[i].Value), models.Quantity(r.Name, over), models.Quantity(r.Name, r.Limit),
				r.Ratio, models.Quantity(r.Name, r.Capacity)))
		}
	}
	return texts
}
