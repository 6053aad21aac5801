package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/pool/placement"
)

// Capacity is what the machines that lend have: whatever the hour, for hours
// come back, and whoever holds it; and of it what simulated GPUs have. What is
// leaving does not count.
func (s *Scheduler) Capacity(q *models.Queries) (all, simulated models.Resources, err error) {
	snap, err := s.load(q)
	if err == nil {
		all, simulated = snap.capacity()
	}
	return all, simulated, err
}

func (s snapshot) capacity() (all, simulated models.Resources) {
	online := map[int64]bool{}
	for _, p := range s.providers {
		online[p.ID] = p.State == models.ProviderOnline
	}
	snap := s.nodes(onceReleased, anyProject)
	snap.Nodes = slices.DeleteFunc(snap.Nodes, func(n placement.Node) bool { return !online[n.ID] })
	for i, n := range snap.Nodes {
		snap.Nodes[i].Devices = slices.DeleteFunc(slices.Clone(n.Devices), func(d placement.Device) bool { return !d.Healthy || d.NotLent })
	}
	all = capacityOf(snap)
	real := map[int64]bool{}
	for _, d := range s.devices {
		real[d.ID] = !d.Simulated
	}
	for i, n := range snap.Nodes {
		snap.Nodes[i].Devices = slices.DeleteFunc(n.Devices, func(d placement.Device) bool { return real[d.ID] })
	}
	return all, capacityOf(snap)
}

func capacityOf(snap placement.Snapshot) models.Resources {
	t := placement.Capacity(snap)
	return models.Resources{GPUCores: t.Cores, GPUMemoryMiB: t.MemoryMiB}
}

// NodeCores is how many GPU cores each provider of the pool has, by name.
func (s *Scheduler) NodeCores(ctx context.Context) (map[string]int64, error) {
	snap, err := s.load(s.store.Read(ctx))
	cores := map[string]int64{}
	for _, provider := range snap.providers {
		if provider.State != models.ProviderOffline {
			cores[provider.Name] = 0
		}
	}
	for _, d := range snap.devices {
		if name := snap.names[d.ProviderID]; d.Present && d.ParentID == nil {
			cores[name] += d.Cores
		}
	}
	return cores, err
}
