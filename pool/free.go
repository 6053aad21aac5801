package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// FreeDevices are the devices of which cores and memory are available now, for who may see
// the pool.
func (s *Scheduler) FreeDevices(ctx context.Context, actor policies.Actor) (list []models.FreeDevice, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return nil, err
	}
	for _, m := range views.machines {
		for _, d := range m.devices {
			if cores, memory := m.free(d.ID); cores > 0 && memory > 0 {
				list = append(list, models.FreeDevice{ID: d.ID, Provider: m.Name, Number: d.Number, Model: d.Model,
					Simulated: d.Simulated, Cores: cores, MemoryMiB: memory})
			}
		}
	}
	return list, nil
}
