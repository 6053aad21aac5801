package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// Promises compares what projects were promised with what there is.
type Promises struct {
	store  *models.Store
	access *policies.Access
	pool   *Scheduler
}

// NewPromises compares with what is in p.
func NewPromises(p *Scheduler) *Promises { return &Promises{p.store, p.access, p} }

// Promise is one resource: what there is of it, and what of it was promised
// to projects by their quotas.
type Promise struct {
	models.Amount       // Value is what was promised
	Known         bool  // whether it is known how much there is
	Capacity      int64 // of machines that lend; of CPU, memory and storage what an administrator stated
	Simulated     int64 // of the capacity what simulated GPUs have
	Ratio         int64 // percent of the capacity that may be promised
	Limit         int64 // capacity × ratio
	Excess        int64 // promised beyond the limit
	Missing       int64 // promised beyond the capacity
}

// Beyond is how much above the limit it would be promised with more; 0 when
// that stays below, or when it is not known how much there is.
func (p Promise) Beyond(more int64) int64 {
	if !p.Known || more <= 0 {
		return 0
	}
	return max(p.Value+more-p.Limit, 0)
}

// PromisesView is what was promised, of what, and to whom.
type PromisesView struct {
	Rows     []Promise
	Setting  models.Overcommit
	Projects []ProjectView // whose period of use is not over, one page
}

// View shows what was promised; only platform administrators may see it.
func (p *Promises) View(ctx context.Context, actor policies.Actor, page models.Page) (v PromisesView, err error) {
	if err := p.access.Check(actor, policies.Platform, "promise", "read"); err != nil {
		return v, err
	}
	q := p.store.Read(ctx)
	if v.Rows, v.Setting, err = p.rows(q); err != nil {
		return v, err
	}
	projects, err := q.PromisedProjects(q.Now(), page)
	if err != nil || len(projects) == 0 {
		return v, err
	}
	v.Projects, err = withSums(q, projects)
	return v, err
}

// rows are all resources as they stand.
func (p *Promises) rows(q *models.Queries) ([]Promise, models.Overcommit, error) {
	o, err := q.Overcommit()
	if err != nil {
		return nil, o, err
	}
	promised, err := q.PromisedQuotas(q.Now())
	if err != nil {
		return nil, o, err
	}
	all, simulated, err := p.pool.Capacity(q)
	if err != nil {
		return nil, o, err
	}
	return compare(promised, all.Add(o.Stated()), simulated, o.Ratio), o, nil
}

// compare holds promises against capacity, resource by resource. Of GPUs the
// capacity is known; of the others 0 means that nobody has stated it.
func compare(promised, capacity, simulated, ratio models.Resources) []Promise {
	have, ratios, pretended := capacity.Amounts(), ratio.Amounts(), simulated.Amounts()
	rows := make([]Promise, len(have))
	for i, a := range promised.Amounts() {
		r := Promise{Amount: a, Known: i < 2 || have[i].Value > 0, Capacity: have[i].Value, Simulated: pretended[i].Value, Ratio: ratios[i].Value}
		if r.Known {
			r.Limit = r.Capacity * r.Ratio / 100
			r.Excess, r.Missing = max(a.Value-r.Limit, 0), max(a.Value-r.Capacity, 0)
		}
		rows[i] = r
	}
	return rows
}

// maxRatio is the most that may be promised of a resource, in percent.
const maxRatio = 10_000

// OvercommitInput says how much of each resource may be promised.
type OvercommitInput struct {
	Ratio   models.Resources `json:"ratio" doc:"percent of what there is that may be promised, 1 to 10000; one number for each resource"`
	Stated  Stated           `json:"stated,omitempty" doc:"how much there is of what nothing measures"`
	Version int64            `json:"-"`
}

// Stated is how much there is of what nothing measures; 0 is unknown, and
// then promises of it are not checked.
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

// Set changes how much may be promised; only platform administrators may.
// Nothing that was promised is taken back.
func (p *Promises) Set(ctx context.Context, actor policies.Actor, in OvercommitInput) (o models.Overcommit, err error) {
	if err := p.access.Check(actor, policies.Platform, "promise", "write"); err != nil {
		return o, err
	}
	if err := in.check(); err != nil {
		return o, err
	}
	err = p.access.Write(ctx, p.store, actor, policies.Need{Project: policies.Platform, Object: "promise", Act: "write"}, func(q *models.Queries) error {
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

// beyond words what would be promised beyond the limits with more.
func beyond(rows []Promise, more models.Resources) (texts []models.Text) {
	mores := more.Amounts()
	for i, r := range rows {
		if over := r.Beyond(mores[i].Value); over > 0 {
			texts = append(texts, models.Say("%s: %s would be promised, %s more than %s (%d %% of the pool's %s)", r.Label,
				models.Quantity(r.Name, r.Value+mores[i].Value), models.Quantity(r.Name, over), models.Quantity(r.Name, r.Limit),
				r.Ratio, models.Quantity(r.Name, r.Capacity)))
		}
	}
	return texts
}
