package pool

import (
	"context"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

// state is what the scheduler decides over, at one moment: the machines and the
// queue. It is not changed.
type state struct {
	snapshot
	queued      []store.QueuedView
	withinQuota map[int64]bool // claims that wait for the pool alone, if for long
	involved    map[int64]bool // in display: the owners of machines and the users of shares
}

// read reads the state.
func (s *Scheduler) read(q *store.Queries) (st state, err error) {
	if st.snapshot, err = s.load(q); err != nil {
		return st, err
	}
	if st.queued, err = q.Queued(); err == nil {
		st.withinQuota, err = withinQuota(q, slices.DeleteFunc(slices.Clone(st.queued),
			func(v store.QueuedView) bool { return !st.reserves(v.Claim) }))
	}
	return st, err
}

// displayAge bounds the age of what views show, for changes without a topic.
const displayAge = time.Second

// display returns the state for views. It is read once for all readers until it changes.
// Decisions read their own.
func (s *Scheduler) display(ctx context.Context) (state, error) {
	st, err := s.displayed.Get(ctx, struct{}{}, func(ctx context.Context) (state, store.Validity, error) {
		st, err := s.read(s.store.Read(ctx))
		st.involved = st.owners()
		return st, store.Validity{Topics: []string{"pool", "projects"}, MaxAge: displayAge}, err
	})
	st.snapshot = st.at(s.store.Now())
	return st, err
}

// Availability reads the state of the pool, for decisions about new workspaces.
func (s *Scheduler) Availability(q *store.Queries) (models.Availability, error) {
	st, err := s.read(q)
	return s.availabilityIn(st), err
}

// DisplayedAvailability is Availability for views.
func (s *Scheduler) DisplayedAvailability(ctx context.Context) (models.Availability, error) {
	st, err := s.display(ctx)
	return s.availabilityIn(st), err
}

func (s *Scheduler) availabilityIn(st state) models.Availability {
	decide := func(p models.Project, d models.Demand, limit time.Duration) models.Decision {
		return s.decideIn(st.within(limit), st.queueWith(st.hypothetical(p, d)), hypotheticalID, p.ID, d)
	}
	return models.Availability{WithGPUMemory: st.withGPUMemory, Decide: decide}
}

// decideIn decides on the demand of the request with an id, after those before it in
// the queue.
func (s *Scheduler) decideIn(st state, waiting waitQueue, id, project int64, d models.Demand) models.Decision {
	decision := s.decide(st.snapshot, demandOf(project, d), d, st.reservedBefore(waiting, id))
	decision.Waiting = len(st.queued)
	return decision
}

// hypotheticalID is the id of a hypothetical request, larger than any real id.
const hypotheticalID = int64(1) << 62

// hypothetical is a new request of a project: the newest of all.
func (s state) hypothetical(p models.Project, d models.Demand) store.QueuedView {
	v := store.QueuedView{ProjectPriority: p.Priority, ProjectQuota: p.Quota}
	v.ID, v.ProjectID, v.Demand, v.RequestedAt = hypotheticalID, p.ID, d, s.now
	return v
}

// queueWith is the queue with some other requests in it.
func (s state) queueWith(views ...store.QueuedView) waitQueue {
	return orderQueue(append(slices.Clip(s.queued), views...), s.snapshot)
}

// withGPUMemory sets the GPU memory of a demand, see [models.Availability].
func (s snapshot) withGPUMemory(d models.Demand) models.Demand {
	if d.GPUs == 0 {
		d.Cores, d.GPUMemoryMiB, d.GPUModel = 0, 0, ""
		return d
	}
	if d.GPUMemoryMiB > 0 {
		return d
	}
	for _, m := range s.machines {
		for _, dev := range m.devices {
			if !dev.Present || !placement.MatchesModel(dev.Model, d.GPUModel) || !couldHold(dev, d) {
				continue
			}
			if part := dev.MemoryMiB * d.Cores / dev.Cores; d.GPUMemoryMiB == 0 || part < d.GPUMemoryMiB {
				d.GPUMemoryMiB = part
			}
		}
	}
	return d
}

// couldHold reports whether a device could be one of those of a demand: of a GPU that is cut, an
// instance, whose part of the memory is another than that of the cores.
func couldHold(dev models.Device, d models.Demand) bool {
	if dev.ParentID != nil {
		return d.GPUs == 1 && dev.Cores >= d.Cores
	}
	return d.GPUs > 1 || dev.Applied != models.SharingMIG
}
