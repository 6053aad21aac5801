package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

// Capacity is that of the providers that are online, at any hour and whether
// in use or not, and the part of it that is simulated.
func (s *Scheduler) Capacity(q *store.Queries) (all, simulated models.Resources, err error) {
	snap, err := s.load(q)
	if err != nil {
		return all, simulated, err
	}
	var nodes []placement.Node
	simulates := map[int64]bool{}
	for _, m := range snap.machines {
		if m.State == models.ProviderOnline {
			nodes = append(nodes, *m.nodes[onceReleased])
		}
		for _, d := range m.devices {
			simulates[d.ID] = d.Simulated
		}
	}
	all = capacityOf(nodes, func(d placement.Device) bool { return d.Healthy && !d.NotLent })
	return all, capacityOf(nodes, func(d placement.Device) bool { return d.Healthy && !d.NotLent && simulates[d.ID] }), nil
}

// capacityOf adds up the devices that count.
func capacityOf(nodes []placement.Node, counts func(placement.Device) bool) models.Resources {
	nodes = slices.Clone(nodes)
	for i, n := range nodes {
		nodes[i].Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d placement.Device) bool { return !counts(d) })
	}
	t := placement.Capacity(placement.Snapshot{Nodes: nodes})
	return models.Resources{GPUCores: t.Cores, GPUMemoryMiB: t.MemoryMiB}
}

// Devices are those of all machines. A server that lists them at its start has read what its first
// decision needs.
func (s *Scheduler) Devices(ctx context.Context) (devices []models.Device, err error) {
	snap, err := s.load(s.store.Read(ctx))
	for _, m := range snap.machines {
		devices = append(devices, m.devices...)
	}
	return devices, err
}

// ProviderCores is how many GPU cores each provider of the pool has, by name.
func (s *Scheduler) ProviderCores(ctx context.Context) (map[string]int64, error) {
	snap, err := s.load(s.store.Read(ctx))
	cores := map[string]int64{}
	for _, m := range snap.machines {
		if m.State != models.ProviderOffline {
			cores[m.Name] = 0
		}
		for _, d := range m.devices {
			if d.Present && d.ParentID == nil {
				cores[m.Name] += d.Cores
			}
		}
	}
	return cores, err
}
