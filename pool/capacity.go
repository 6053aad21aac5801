package pool

import (
	"slices"

	"weir/models"
	"weir/pool/placement"
)

// Capacity is what the machines that lend have: whatever the hour, for hours
// come back, and whoever holds it; and of it what simulated GPUs have. What is
// leaving does not count.
func (p *Pool) Capacity(q *models.Queries) (all, simulated models.Resources, err error) {
	s, err := p.load(q)
	if err != nil {
		return all, simulated, err
	}
	lends, real := map[int64]bool{}, map[int64]bool{}
	for _, p := range s.providers {
		lends[p.ID] = p.State == models.ProviderOnline
	}
	for _, d := range s.devices {
		real[d.ID] = !d.Simulated
	}
	snap := s.snapshot(freed, everybody)
	snap.Nodes = slices.DeleteFunc(snap.Nodes, func(n placement.Node) bool { return !lends[n.ID] })
	all = capacityOf(snap, func(d placement.Device) bool { return d.Healthy && !d.NotLent })
	return all, capacityOf(snap, func(d placement.Device) bool { return d.Healthy && !d.NotLent && !real[d.ID] }), nil
}

// capacityOf adds up the devices that count.
func capacityOf(snap placement.Snapshot, counts func(placement.Device) bool) models.Resources {
	nodes := slices.Clone(snap.Nodes)
	for i, n := range nodes {
		nodes[i].Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d placement.Device) bool { return !counts(d) })
	}
	t := placement.Capacity(placement.Snapshot{Nodes: nodes})
	return models.Resources{GPUCores: t.Cores, GPUMemoryMiB: t.MemoryMiB}
}
