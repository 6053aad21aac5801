package pool

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/placement"
)

// FreeDevices are the devices on which a project can have a part of a model now, for who may see the pool.
// The texts say why others are left out.
func (s *Scheduler) FreeDevices(ctx context.Context, actor policies.Actor, on models.DeviceQuery) (list []models.FreeDevice,
	leftOut []models.Text, err error) {
	views, err := s.viewBuilder(ctx, actor)
	if err != nil {
		return nil, nil, err
	}
	if on.ReservationID != 0 {
		list, leftOut = views.freeReserved(on)
		return list, leftOut, nil
	}
	refusal, demand := placement.Refusal{}, placement.Demand{GPUs: 1, Cores: on.Cores, MemoryMiB: 1, Project: on.ProjectID}
	for _, m := range views.machines {
		node := m.nodes[asItIs]
		for _, device := range node.Devices {
			device.Shares = slices.DeleteFunc(slices.Clone(device.Shares), func(s placement.Share) bool { return s.Holder == on.Holder })
			memory, fits := refusal.Try(node, &device, &demand)
			if d, known := m.byID(device.ID); known && fits {
				list = append(list, m.freeDevice(d, memory, device.Single || device.Parent != 0))
			}
		}
	}
	_, leftOut = explainRefusal(refusal, demand)
	return list, leftOut, nil
}

func (m *machine) freeDevice(d models.Device, memory int64, single bool) models.FreeDevice {
	return models.FreeDevice{ID: d.ID, Provider: m.Name, Number: d.Number, Model: d.Model, Simulated: d.Simulated,
		MemoryMiB: memory, Single: single}
}

// freeReserved are the devices of a reservation of which so many cores are left.
func (s snapshot) freeReserved(on models.DeviceQuery) (list []models.FreeDevice, leftOut []models.Text) {
	others := snapshot{now: s.now} // as if the holder had nothing
	for _, m := range s.machines {
		m := m.without(on.Holder)
		left, _ := m.left(on.ReservationID, s.now)
		for _, g := range left {
			if g.Cores >= on.Cores && g.MemoryMiB > 0 {
				single := slices.ContainsFunc(m.nodes[asItIs].Devices, func(d placement.Device) bool { return d.ID == g.Device.ID && d.Single })
				list = append(list, m.freeDevice(g.Device, g.MemoryMiB, single || g.Device.ParentID != nil))
			}
		}
		others.machines = append(others.machines, m)
	}
	if len(list) == 0 {
		leftOut = append(leftOut, others.decideReserved(on.ReservationID, models.Demand{GPUs: 1, Cores: on.Cores, GPUMemoryMiB: 1}).Explanation)
	}
	return list, leftOut
}

// without is a machine on which a holder has nothing.
func (m *machine) without(holder int64) *machine {
	other := *m
	other.shares = slices.DeleteFunc(slices.Clone(m.shares), func(s store.ShareView) bool { return s.HolderID == holder })
	return &other
}
