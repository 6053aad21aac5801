package pool

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

// snapshot is what the scheduler knows at one moment, for decisions and for
// pages. It is not changed: what follows from it is another, which shares with
// it the machines that are the same.
type snapshot struct {
	now       time.Time
	checked   time.Time // hours and reachability, see checkPeriod
	reachable func(p *models.Provider, simulated bool) bool
	machines  []*machine        // by provider id
	nodes     []*placement.Node // of the machines, as they are
	index     map[int64]int     // of a provider in machines
	owner     map[int64]int     // of a device's machine in machines
	until     *time.Time        // what is decided on ends by then; nil: never
}

// readSnapshot reads all machines.
func readSnapshot(q *store.Queries, reachable func(*models.Provider, bool) bool) (snapshot, error) {
	return snapshot{reachable: reachable}.reread(q, store.AllMachines)
}

// reread is the snapshot with some machines as they are in the database now.
func (s snapshot) reread(q *store.Queries, which store.Machines) (snapshot, error) {
	changed, sharesOnly := which.Changed(func(provider int64) bool { _, known := s.index[provider]; return known })
	providers, err1 := q.ProvidersOf(changed)
	devices, err2 := q.DevicesAt(changed)
	shares, err3 := q.OpenSharesAmong(which)
	reserved, err4 := q.ReservedAmong(which)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return s, err
		}
	}
	s.now = q.Now()
	read := make(map[int64]*machine, len(providers))
	provider := make(map[int64]*machine, len(devices)) // by device
	for _, p := range providers {
		read[p.ID] = &machine{Provider: p}
	}
	for _, id := range sharesOnly {
		former := s.machines[s.index[id]]
		read[id] = &machine{Provider: former.Provider}
		devices = slices.Concat(former.devices, devices) // before those that were read: one may have moved
	}
	for _, d := range devices {
		if m := read[d.ProviderID]; m != nil {
			m.devices = append(m.devices, d)
			provider[d.ID] = m
		}
	}
	for _, share := range shares {
		if m := provider[share.DeviceID]; m != nil {
			m.shares = append(m.shares, share)
		}
	}
	for _, g := range reserved {
		if m := provider[g.DeviceID]; m != nil {
			m.reserved = append(m.reserved, g)
		}
	}
	for _, id := range sharesOnly {
		read[id].devices = slices.DeleteFunc(read[id].devices, func(d models.Device) bool { return provider[d.ID] != read[id] })
		read[id].dropAbsent()
	}
	s.dropMoved(read)
	for _, m := range read {
		m.build(s.now, s.reachable)
	}
	return s.with(read), nil
}

// dropMoved takes the devices of the machines that were read from those that had them before and were not read.
func (s snapshot) dropMoved(read map[int64]*machine) {
	moved := map[int64]*machine{}
	for _, m := range read {
		for _, d := range m.devices {
			at, known := s.owner[d.ID]
			if !known || s.machines[at].ID == m.ID || read[s.machines[at].ID] != nil {
				continue
			}
			former := cmp.Or(moved[s.machines[at].ID], s.machines[at])
			another := *former
			another.devices = slices.DeleteFunc(slices.Clone(former.devices), func(other models.Device) bool { return other.ID == d.ID })
			another.shares = slices.DeleteFunc(slices.Clone(former.shares), func(share store.ShareView) bool { return share.DeviceID == d.ID })
			moved[another.ID] = &another
		}
	}
	maps.Copy(read, moved)
}

// dropAbsent drops the devices that are not present and have no share any more.
func (m *machine) dropAbsent() {
	m.devices = slices.DeleteFunc(m.devices, func(d models.Device) bool {
		return !d.Present && !slices.ContainsFunc(m.shares, func(share store.ShareView) bool { return share.DeviceID == d.ID })
	})
}

// with is the snapshot with other machines in the place of those with the same
// id, or beside them.
func (s snapshot) with(changed map[int64]*machine) snapshot {
	machines := slices.Clone(s.machines)
	for id, m := range changed {
		if at, known := s.index[id]; known {
			machines[at] = m
		} else {
			machines = append(machines, m)
		}
	}
	sameDevices := len(machines) == len(s.machines)
	if !sameDevices {
		slices.SortFunc(machines, func(a, b *machine) int { return int(a.ID - b.ID) })
	}
	s.nodes = make([]*placement.Node, len(machines))
	for i, m := range machines {
		s.nodes[i] = m.nodes[asItIs]
		sameDevices = sameDevices && (m == s.machines[i] || slices.EqualFunc(m.devices, s.machines[i].devices,
			func(a, b models.Device) bool { return a.ID == b.ID }))
	}
	s.machines = machines
	if sameDevices {
		return s
	}
	s.index, s.owner = make(map[int64]int, len(machines)), map[int64]int{}
	for i, m := range machines {
		s.index[m.ID] = i
		for _, d := range m.devices {
			s.owner[d.ID] = i
		}
	}
	return s
}

// checkPeriod is how often hours and reachability are checked.
const checkPeriod = time.Second

// at is the snapshot at another time: hours begin and end, and machines become
// reachable and unreachable, without a change in the database.
func (s snapshot) at(now time.Time) snapshot {
	changed := map[int64]*machine{}
	if d := now.Sub(s.checked); d >= 0 && d < checkPeriod {
		s.now = now
		return s
	}
	for _, m := range s.machines {
		if now.Before(s.now) || m.until != nil && !now.Before(*m.until) || s.reachable(&m.Provider, m.simulated) == m.nodes[asItIs].Unreachable {
			another := *m
			another.build(now, s.reachable)
			changed[m.ID] = &another
		}
	}
	s.now, s.checked = now, now
	if len(changed) == 0 {
		return s
	}
	return s.with(changed)
}

// placement is what is decided over.
func (s snapshot) placement(h horizon) placement.Snapshot {
	snap := placement.Snapshot{Nodes: make([]placement.Node, len(s.machines))}
	for i, m := range s.machines {
		snap.Nodes[i] = *m.nodes[h]
	}
	return snap
}

// device finds a device that is there or still has a share.
func (s snapshot) device(id int64) (d models.Device, m *machine) {
	at, known := s.owner[id]
	if !known {
		return d, nil
	}
	d, _ = s.machines[at].byID(id)
	return d, s.machines[at]
}

// shares are all open shares, with the machines that they are of.
func (s snapshot) shares(yield func(*machine, store.ShareView) bool) {
	for _, m := range s.machines {
		for _, share := range m.shares {
			if !yield(m, share) {
				return
			}
		}
	}
}
