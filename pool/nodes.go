package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/pool/placement"
)

// horizon is the state in which a machine is considered.
type horizon int

const (
	asItIs       horizon = iota
	onceReleased         // no share is in use any more
	onceAllLend          // no share is in use any more, and every machine lends
	horizonCount
)

// placement is what is decided over.
func (s snapshot) placement(h horizon) placement.Snapshot {
	snap := placement.Snapshot{Nodes: make([]placement.Node, len(s.machines))}
	for i, m := range s.machines {
		snap.Nodes[i] = *m.nodes[h]
	}
	return snap
}

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

// lends reports whether the terms lend a device to any project. Terms name
// devices by their physical GPUs.
func (m *machine) lends(d models.Device) bool {
	t := m.Terms
	t.Projects = nil
	return t.Lends(d.PhysicalID(), 0)
}

// byID finds one of the machine's devices.
func (m *machine) byID(id int64) (d models.Device, known bool) {
	i := slices.IndexFunc(m.devices, func(d models.Device) bool { return d.ID == id })
	if i < 0 {
		return d, false
	}
	return m.devices[i], true
}

// lendsInstance reports whether the whole of an instance is within what its owner lends of the GPU, beside
// the other instances in use.
func (m *machine) lendsInstance(d models.Device, h horizon) bool {
	left := m.Terms.Cores
	for _, share := range m.shares {
		if sibling, known := m.byID(share.DeviceID); known && h == asItIs && share.DeviceID != d.ID && sibling.ParentID != nil &&
			*sibling.ParentID == *d.ParentID {
			left -= sibling.Cores
		}
	}
	return m.Terms.Cores == 0 || d.Cores <= left
}

// changing reports whether the sharing mode of a device, or of the GPU that it
// is an instance of, is being changed.
func (m *machine) changing(d models.Device) bool {
	if d.ParentID == nil {
		return d.Changing()
	}
	parent, known := m.byID(*d.ParentID)
	return !known || parent.Changing() || m.repartitioned(parent)
}

// repartitioned reports whether a GPU's instances are not those of its layout, or
// whether one that is gone is still in use: until it is released, the
// instances that took its place are not to be lent beside it.
func (m *machine) repartitioned(parent models.Device) bool {
	missing := slices.Clone(parent.Layout)
	for _, d := range m.devices {
		if d.ParentID == nil || *d.ParentID != parent.ID {
			continue
		}
		if !d.Present { // it is known only because it is in use
			return true
		}
		at := slices.Index(missing, d.Profile)
		if at < 0 {
			return true
		}
		missing = slices.Delete(missing, at, at+1)
	}
	return false
}
