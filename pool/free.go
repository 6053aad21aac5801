package pool

import (
	"context"

	"weir/models"
	"weir/policies"
)

// FreeDevices are the devices of which cores and memory are available now, for who may see
// the pool. What a holder has counts as available; 0: of none.
func (s *Scheduler) FreeDevices(ctx context.Context, actor policies.Actor, holder int64) (list []models.FreeDevice, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return nil, err
	}
	for _, m := range views.machines {
		for _, d := range m.devices {
			cores, memory := m.free(d.ID)
			for _, share := range m.shares {
				if share.HolderID == holder && share.DeviceID == d.ID {
					cores, memory = cores+share.Cores, memory+share.MemoryMiB
				}
			}
			if cores > 0 && memory > 0 {
				list = append(list, models.FreeDevice{ID: d.ID, Provider: m.Name, Number: d.Number, Model: d.Model,
					Simulated: d.Simulated, Cores: cores, MemoryMiB: memory})
			}
		}
	}
	return list, nil
}
