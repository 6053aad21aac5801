package pool

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

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
