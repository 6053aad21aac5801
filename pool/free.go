package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/placement"
)

// FreeDevices are the devices of which a project can have so many cores now, for who may see the pool, as if
// a holder had nothing; 0: of none. The texts say why the others are left out.
func (s *Scheduler) FreeDevices(ctx context.Context, actor policies.Actor, project, cores, holder int64) (list []models.FreeDevice,
	leftOut []models.Text, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return nil, nil, err
	}
	refusal, demand := placement.Refusal{}, placement.Demand{GPUs: 1, Cores: cores, MemoryMiB: 1, Project: project}
	for _, m := range views.machines {
		node := m.nodes[asItIs]
		for _, device := range node.Devices {
			device.Shares = slices.DeleteFunc(slices.Clone(device.Shares), func(s placement.Share) bool { return s.Holder == holder })
			memory, fits := refusal.Try(node, &device, &demand)
			if d, known := m.byID(device.ID); known && fits {
				list = append(list, models.FreeDevice{ID: d.ID, Provider: m.Name, Number: d.Number, Model: d.Model, Simulated: d.Simulated,
					MemoryMiB: memory, Single: device.Single || device.Parent != 0})
			}
		}
	}
	_, leftOut = explainRefusal(refusal, demand)
	return list, leftOut, nil
}
