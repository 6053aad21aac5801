package pool

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
	"weir/pool/timeline"
)

// MaxAhead is how far ahead the pool is known for reservations.
const MaxAhead = 90 * 24 * time.Hour

// Reservable returns what a project can reserve for a demand, whose GPU memory it
// completes: the devices that lend to it, and what is taken of them from now on. A
// workspace takes its shares until their announced end, and a run until its time limit ends it, else forever; reservations take what
// is assumed of them; hours in which an owner does not lend take all. So does every use of a device with one holder, and the
// use of another project of a device that is not mixed.
func (s *Scheduler) Reservable(q *store.Queries, project int64, d models.Demand,
	as models.AssumedReservations) (models.Demand, []timeline.Device, []timeline.Grant, error) {
	snap, err := s.load(q)
	if err != nil {
		return d, nil, nil, err
	}
	d = snap.withGPUMemory(d)
	var devices []timeline.Device
	var taken []timeline.Grant
	for _, m := range snap.machines {
		if m.State != models.ProviderOnline || m.nodes[asItIs].Unreachable {
			continue
		}
		closed := m.closed(snap.now)
		for _, dev := range m.nodes[asItIs].Devices {
			model, known := m.byID(dev.ID)
			if !known || !m.reservable(dev, model, project, d) {
				continue
			}
			one := timeline.Device{ID: dev.ID, Node: m.ID, Model: dev.Model, Whole: dev.Exclusive || dev.Parent != 0, Mixed: dev.Mixed,
				Capacity: timeline.Amount{Cores: min(dev.Cores, placement.Whole), MemoryMiB: dev.MemoryMiB}}
			devices = append(devices, one)
			for _, span := range closed {
				taken = append(taken, timeline.Grant{Device: dev.ID, Amount: one.Capacity, Span: span})
			}
			taken = append(taken, m.taken(one, project, as, snap.now)...)
		}
	}
	return d, devices, taken, nil
}

// MatchesModel reports whether the model of a device is what was asked for.
func (s *Scheduler) MatchesModel(model, asked string) bool {
	return placement.MatchesModel(model, asked)
}

// reservable reports whether a project can reserve a device for a demand at all. What an
// owner lends of all instances of a GPU together is not known ahead.
func (m *machine) reservable(dev placement.Device, d models.Device, project int64, demand models.Demand) bool {
	return dev.Healthy && !dev.Changing && m.Terms.Lends(d.PhysicalID(), project) &&
		(dev.Parent == 0 && d.Applied != models.SharingMIG || dev.Parent != 0 && m.Terms.Cores == 0) &&
		(demand.GPUs == 1 || !dev.Single && dev.Parent == 0) && placement.MatchesModel(dev.Model, demand.GPUModel)
}

// taken is what shares and reservations, as assumed, take of a device, as a project sees
// it.
func (m *machine) taken(dev timeline.Device, project int64, as models.AssumedReservations, now time.Time) (list []timeline.Grant) {
	take := func(by int64, a timeline.Amount, from, until time.Time) {
		list = append(list, timeline.Grant{Device: dev.ID, Amount: dev.Taken(a, by != project), Span: spanOf(from, until)})
	}
	for _, s := range m.shares {
		if s.DeviceID != dev.ID || m.covered(s, now) { // its reservation takes it
			continue
		}
		until := after(s.EndsAt, now)
		if g, found := m.grantOf(s, now); found && g.EndsAt.Before(until) {
			until = g.EndsAt
		}
		if by := after(s.EndsBy, now); by.Before(until) {
			until = by
		}
		take(s.ProjectID, timeline.Amount{Cores: s.Cores, MemoryMiB: s.MemoryMiB}, now, until)
	}
	for _, g := range as.Among(m.reservedOf(dev.ID)) {
		if g.DeviceID == dev.ID && g.EndsAt.After(now) {
			take(g.ProjectID, timeline.Amount{Cores: g.Cores, MemoryMiB: g.MemoryMiB}, g.StartsAt, g.EndsAt)
		}
	}
	return list
}

// closed are the spans until MaxAhead in which a machine's owner does not lend it.
func (m *machine) closed(now time.Time) (spans []timeline.Span) {
	for at := now; at.Before(now.Add(MaxAhead)); {
		open, until := m.Terms.Open(at)
		if until == nil {
			if !open {
				spans = append(spans, spanOf(at, forever))
			}
			break
		}
		if !open {
			spans = append(spans, spanOf(at, *until))
		}
		at = *until
	}
	return spans
}

// Reserved returns how demands of workspaces in a reservation are decided on: they are
// granted from what is not used of the grants that have begun. What a demand leaves open is
// completed to the most that is left. It reads nothing else and changes nothing.
func (s *Scheduler) Reserved(q *store.Queries, r models.Reservation, d models.Demand) (models.Demand,
	func(models.Demand) models.Decision, error) {
	snap, err := s.load(q)
	return snap.mostReserved(r, d), func(d models.Demand) models.Decision { return snap.decideReserved(r.ID, d) }, err
}

// Unusable lists those of reservations of whose GPUs one that they have now cannot be used.
func (s *Scheduler) Unusable(q *store.Queries, reservations []int64) (list []int64, err error) {
	snap, err1 := s.load(q)
	grants, err2 := q.GrantsByReservation(reservations...)
	for id, of := range grants {
		if slices.ContainsFunc(of, func(g models.GrantView) bool {
			_, m := snap.device(g.DeviceID)
			return !g.StartsAt.After(snap.now) && g.EndsAt.After(snap.now) && (m == nil || !m.usableWhole(g.ID))
		}) {
			list = append(list, id)
		}
	}
	return list, errors.Join(err1, err2)
}

func (s snapshot) decideReserved(reservation int64, d models.Demand) models.Decision {
	var cores, memory int64 // the most that is left of a device, and of those with enough cores
	fitting := 0            // devices on one machine
	var away string         // a machine of the reservation that cannot be used now
	for _, m := range s.machines {
		decision := models.Decision{Outcome: models.OutcomeGranted, Provider: models.ProviderID{ID: m.ID, Name: m.Name},
			Explanation: models.Say("Reserved on %s.", m.Name)}
		left, unusable := m.left(reservation, s.now)
		if unusable {
			away = m.Name
		}
		for _, g := range left {
			cores = max(cores, g.Cores)
			if g.Cores >= d.Cores {
				memory = max(memory, g.MemoryMiB)
			}
			taken := slices.ContainsFunc(decision.Grants, func(other models.Grant) bool { return other.Device.ID == g.Device.ID })
			if !taken && g.Cores >= d.Cores && g.MemoryMiB >= d.GPUMemoryMiB && len(decision.Grants) < int(d.GPUs) {
				decision.Grants = append(decision.Grants, models.Grant{Device: g.Device, Cores: d.Cores, MemoryMiB: d.GPUMemoryMiB,
					Enforcement: enforcement(g.Device, d.Cores), Reserved: g.Reserved})
			}
		}
		if len(decision.Grants) == int(d.GPUs) {
			return decision
		}
		fitting = max(fitting, len(decision.Grants))
	}
	if away != "" {
		return models.Decision{Outcome: models.OutcomeRefused,
			Explanation: models.Say("the GPUs that are reserved on %s cannot be used now", away)}
	}
	why := models.Say("%d GPU cores are left on a device of the reservation now", cores)
	switch {
	case cores < d.Cores:
	case memory < d.GPUMemoryMiB:
		why = models.Say("%s of GPU memory are left on a device of the reservation now", models.Quantity("gpu_memory_mib", memory))
	default:
		why = models.Say("%d GPUs of the reservation have enough left now", fitting)
	}
	return models.Decision{Outcome: models.OutcomeRefused, Explanation: why}
}

// mostReserved is a demand in a reservation with what it leaves open: the most that is left of the reservation on one
// machine, or all of the reservation if nothing is left. Memory is in proportion to the cores.
func (s snapshot) mostReserved(r models.Reservation, d models.Demand) models.Demand {
	complete := func(gpus, cores, memory int64) models.Demand {
		all := d
		all.GPUs, all.Cores = cmp.Or(d.GPUs, gpus), cmp.Or(d.Cores, cores)
		all.GPUMemoryMiB = cmp.Or(d.GPUMemoryMiB, memory*min(all.Cores, cores)/max(cores, 1))
		return all
	}
	best, most := complete(r.GPUs, r.Cores, r.GPUMemoryMiB), int64(1)
	for _, m := range s.machines {
		left, _ := m.left(r.ID, s.now)
		slices.SortStableFunc(left, func(a, b models.Grant) int { return cmp.Compare(b.Cores, a.Cores) })
		devices, memory := map[int64]bool{}, int64(math.MaxInt64)
		for _, g := range left {
			gpus := int64(len(devices)) + 1
			if devices[g.Device.ID] || gpus > r.GPUs || g.Cores < max(d.Cores, 1) || g.MemoryMiB < max(d.GPUMemoryMiB, 1) {
				continue
			}
			devices[g.Device.ID], memory = true, min(memory, g.MemoryMiB)
			all := complete(gpus, g.Cores, memory)
			if all.GPUs == gpus && gpus*all.Cores >= most {
				best, most = all, gpus*all.Cores
			}
		}
	}
	return best
}

// left is what is not used on a machine of the grants of a reservation that have begun; unusable reports that there are
// some that cannot be used now.
func (m *machine) left(reservation int64, now time.Time) (list []models.Grant, unusable bool) {
	for _, g := range m.reserved {
		if g.ReservationID != reservation || g.StartsAt.After(now) || !g.EndsAt.After(now) {
			continue
		}
		dev, usable := m.usable(g)
		if !usable {
			unusable = true
			continue
		}
		cores, memory := m.unused(dev, g)
		list = append(list, models.Grant{Device: dev, Cores: cores, MemoryMiB: memory, Reserved: &g.ID})
	}
	return list, unusable
}

// usable reports whether a reserved device can be used now: its machine lends it to the project and responds, and
// it is neither faulty nor being reconfigured nor cut into instances.
func (m *machine) usable(g models.ReservedView) (d models.Device, ok bool) {
	now := m.nodes[asItIs]
	d, _ = m.byID(g.DeviceID)
	return d, now.Accepting && !now.Unreachable && m.admits(g) && d.Present && d.Trouble.Empty() && !m.changing(d) &&
		(d.ParentID == nil && d.Applied != models.SharingMIG || d.ParentID != nil && m.lendsInstance(d, asItIs))
}

// usableWhole reports whether a grant can be used now, and its owner lends as many cores.
func (m *machine) usableWhole(grant int64) bool {
	return slices.ContainsFunc(m.reserved, func(g models.ReservedView) bool {
		_, usable := m.usable(g)
		return g.ID == grant && usable && (m.Terms.Cores == 0 || g.Cores <= m.Terms.Cores)
	})
}

// unused is what no workspace uses of a grant, and of its device: processes of the reservation before
// it may still be ending there.
func (m *machine) unused(d models.Device, g models.ReservedView) (cores, memory int64) {
	cores, memory = g.Cores, g.MemoryMiB
	freeCores, freeMemory := d.Cores, d.MemoryMiB
	if m.Terms.Cores > 0 {
		freeCores = min(freeCores, m.Terms.Cores)
	}
	for _, s := range m.shares {
		if s.DeviceID != d.ID {
			continue
		}
		if d.Exclusive() {
			return 0, 0
		}
		freeCores, freeMemory = freeCores-s.Cores, freeMemory-s.MemoryMiB
		if s.GrantID != nil && *s.GrantID == g.ID {
			cores, memory = cores-s.Cores, memory-s.MemoryMiB
		} else if !d.Mixed && s.ProjectID != g.ProjectID {
			return 0, 0
		}
	}
	return min(cores, freeCores), min(memory, freeMemory)
}
