package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/pool/placement"
)

// build makes the nodes of a machine.
func (m *machine) build(now time.Time, reachable func(*models.Provider, bool) bool) {
	m.simulated = !slices.ContainsFunc(m.devices, func(d models.Device) bool { return !d.Simulated })
	_, until := m.Terms.Open(now)
	m.until = m.nextEnd(until, now)
	m.nodes = m.nodesAt(now, forever, reachable)
}

// nodesAt are the nodes of a machine for what ends by a moment.
func (m *machine) nodesAt(now, end time.Time, reachable func(*models.Provider, bool) bool) (nodes [horizonCount]*placement.Node) {
	open, _ := m.Terms.Open(now)
	reserved := m.reservedShares(now, end)
	shares := map[int64][]placement.Share{}
	for _, v := range m.shares {
		shares[v.DeviceID] = append(shares[v.DeviceID], placement.Share{
			Cores: v.Cores, MemoryMiB: v.MemoryMiB, Project: v.ProjectID, Holder: v.HolderID})
	}
	for h := range horizonCount {
		n := &placement.Node{ID: m.ID, Name: m.Name, Projects: m.Terms.Projects,
			Accepting: m.State == models.ProviderOnline && open, Unreachable: !reachable(&m.Provider, m.simulated)}
		if h == onceAllLend {
			n.Accepting = m.State != models.ProviderOffline
		}
		inUse := shares
		if h != asItIs {
			inUse = nil
		}
		for _, d := range m.devices {
			if d.Applied != models.SharingMIG || d.ParentID != nil || len(inUse[d.ID]) > 0 { // a GPU that is cut is there by its instances
				held := inUse[d.ID]
				if h == asItIs {
					held = slices.Concat(held, reserved[d.ID])
				}
				n.Devices = append(n.Devices, m.device(d, held, h))
			}
		}
		nodes[h] = n
	}
	return nodes
}

func (m *machine) device(d models.Device, inUse []placement.Share, h horizon) placement.Device {
	v := placement.Device{ID: d.ID, Index: int(d.Number), Model: d.Model, MemoryMiB: d.MemoryMiB, Cores: d.Cores,
		Exclusive: d.Exclusive(), Mixed: d.Mixed, Healthy: d.Present && d.Trouble.Empty(),
		Changing: h != onceAllLend && m.changing(d), NotLent: !m.lends(d), Shares: inUse}
	v.Single = d.Sharing == models.SharingMPS // a program reaches one daemon, and each GPU has its own
	if d.ParentID != nil {
		v.Parent = *d.ParentID
		v.NotLent = v.NotLent || !m.lendsInstance(d, h)
	} else if m.Terms.Cores > 0 {
		v.Cores = min(v.Cores, m.Terms.Cores)
	}
	for _, peer := range m.devices {
		if slices.Contains(d.Peers, peer.UUID) {
			v.Peers = append(v.Peers, peer.ID)
		}
	}
	return v
}
