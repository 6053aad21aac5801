package pool

import (
	"cmp"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
	"weir/pool/timeline"
)

// forever is after everything.
var forever = time.Unix(1<<40, 0)

func spanOf(from, until time.Time) timeline.Span {
	return timeline.Span{From: from.UnixMicro(), Until: until.UnixMicro()}
}

// reservedShares are the shares that reservations keep, by device, from what is new and ends by a moment: at any time
// until then it must leave what is reserved, beside the other shares that are still there. There is one share for each
// project, because devices may not be mixed; their holder is the device's number, negative.
func (m *machine) reservedShares(now, end time.Time) map[int64][]placement.Share {
	kept := map[int64][]placement.Share{}
	for device, grants := range byDevice(m.reserved) {
		var use timeline.Timeline
		var shares []placement.Share
		for _, g := range grants {
			if !g.EndsAt.After(now) || !g.StartsAt.Before(end) || !m.admits(g) {
				continue
			}
			use.Add(spanOf(g.StartsAt, g.EndsAt), timeline.Amount{Cores: g.Cores, MemoryMiB: g.MemoryMiB})
			if !slices.ContainsFunc(shares, func(s placement.Share) bool { return s.Project == g.ProjectID }) {
				shares = append(shares, placement.Share{Project: g.ProjectID, Holder: -device})
			}
		}
		if shares == nil {
			continue
		}
		var inUse timeline.Amount
		for _, s := range m.shares {
			if s.DeviceID != device {
				continue
			}
			inUse.Cores, inUse.MemoryMiB = inUse.Cores+s.Cores, inUse.MemoryMiB+s.MemoryMiB
			if !m.covered(s, now) {
				use.Add(spanOf(now, after(s.EndsBy, now)), timeline.Amount{Cores: s.Cores, MemoryMiB: s.MemoryMiB})
			}
		}
		most := use.Max(spanOf(now, end))
		shares[0].Cores, shares[0].MemoryMiB = max(most.Cores-inUse.Cores, 0), max(most.MemoryMiB-inUse.MemoryMiB, 0)
		kept[device] = shares
	}
	return kept
}

// withoutReserved is the state without what reservations keep, of the machines where they keep something: kept reports
// whether there is one.
func withoutReserved(s placement.Snapshot) (open placement.Snapshot, kept bool) {
	reserved := func(one placement.Share) bool { return one.Holder < 0 }
	keeps := func(d placement.Device) bool { return slices.ContainsFunc(d.Shares, reserved) }
	for _, n := range s.Nodes {
		if !slices.ContainsFunc(n.Devices, keeps) {
			continue
		}
		n.Devices = slices.Clone(n.Devices)
		for i, d := range n.Devices {
			n.Devices[i].Shares = slices.DeleteFunc(slices.Clone(d.Shares), reserved)
		}
		open.Nodes = append(open.Nodes, n)
	}
	return open, len(open.Nodes) > 0
}

// covered reports whether a share is in a reservation that has not ended and that the present
// terms admit. One that stays longer is as any other.
func (m *machine) covered(s store.ShareView, now time.Time) bool {
	g, found := m.grantOf(s, now)
	return found && m.admits(g)
}

// grantOf is the part of a reservation that a share is in, until that has ended.
func (m *machine) grantOf(s store.ShareView, now time.Time) (g models.ReservedView, found bool) {
	at := slices.IndexFunc(m.reserved, func(g models.ReservedView) bool {
		return s.GrantID != nil && g.ID == *s.GrantID && g.EndsAt.After(now)
	})
	if at < 0 {
		return g, false
	}
	return m.reserved[at], true
}

// reservedOf are the grants of a device, which follow each other, as far as terms admit them.
func (m *machine) reservedOf(device int64) []models.ReservedView {
	from, _ := slices.BinarySearchFunc(m.reserved, device, func(g models.ReservedView, id int64) int { return cmp.Compare(g.DeviceID, id) })
	until, _ := slices.BinarySearchFunc(m.reserved, device+1, func(g models.ReservedView, id int64) int { return cmp.Compare(g.DeviceID, id) })
	return slices.DeleteFunc(slices.Clone(m.reserved[from:until]), func(g models.ReservedView) bool { return !m.admits(g) })
}

// lastReserved is when the last reservation of a device ends; zero without any.
func (m *machine) lastReserved(device int64) (last time.Time) {
	for _, g := range m.reservedOf(device) {
		if g.EndsAt.After(last) {
			last = g.EndsAt
		}
	}
	return last
}

// nextEnd is the earlier of a time and the first end of a reservation after now.
func (m *machine) nextEnd(until *time.Time, now time.Time) *time.Time {
	for _, g := range m.reserved {
		if g.EndsAt.After(now) && (until == nil || g.EndsAt.Before(*until)) {
			until = &g.EndsAt
		}
	}
	return until
}

// admits reports whether the present terms of the machine's owner lend a reserved device to the project. Where
// they do not, as they are from after the reservation, it takes nothing from others.
func (m *machine) admits(g models.ReservedView) bool {
	d, known := m.byID(g.DeviceID)
	return known && m.Terms.Lends(d.PhysicalID(), g.ProjectID)
}

// after is a moment after now, or forever.
func after(at *time.Time, now time.Time) time.Time {
	if at == nil || !at.After(now) {
		return forever
	}
	return *at
}

func byDevice(grants []models.ReservedView) map[int64][]models.ReservedView {
	all := map[int64][]models.ReservedView{}
	for _, g := range grants {
		all[g.DeviceID] = append(all[g.DeviceID], g)
	}
	return all
}
