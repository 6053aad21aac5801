package providers

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// DeviceInput is the sharing mode of a device.
type DeviceInput struct {
	Sharing string   `json:"sharing" enum:"exclusive,time-slicing,mps,mig" doc:"exclusive: one share at a time; time-slicing: fractions without isolation; mps: limits enforced by NVIDIA MPS; mig: hardware-isolated instances"`
	Layout  []string `json:"layout,omitempty" doc:"MIG profiles, such as 3g.40gb; with mig only"`
	Mixed   bool     `json:"mixed" doc:"can be shared by several projects without isolation; requires platform administrator"`
	Version int64    `json:"-"`
}

func (in *DeviceInput) normalize() error {
	var p models.Problems
	switch in.Sharing {
	case models.SharingExclusive, models.SharingTimeSlicing, models.SharingMPS, models.SharingMIG:
	default:
		p.Add("sharing", "must be exclusive, time-slicing, mps or mig")
	}
	if in.Mixed && in.Sharing == models.SharingExclusive {
		p.Add("mixed", "cannot be set for an exclusive device")
	}
	if in.Sharing == models.SharingMIG && len(in.Layout) == 0 {
		p.Add("layout", "must include the profiles to partition the GPU into")
	}
	if in.Sharing != models.SharingMIG {
		in.Layout = nil
	}
	return p.Err()
}

// SetSharing sets the sharing mode of a device. Changes that conflict with open
// shares are refused.
func (s *Service) SetSharing(ctx context.Context, actor policies.Actor, id int64, in DeviceInput) (d models.Device, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.PoolRead); err != nil {
		return d, err
	}
	q := s.store.Read(ctx)
	if d, err = q.Device(id); err != nil {
		return d, err
	}
	provider, err := q.Provider(d.ProviderID)
	if err != nil {
		return d, err
	}
	if err := in.normalize(); err != nil {
		return d, err
	}
	ownerID := provider.Owner()
	if in.Mixed != d.Mixed {
		ownerID = 0 // only administrators may change mixing
	}
	err = s.access.WriteOwned(ctx, s.store, actor, ownerID, policies.Platform, policies.DeviceWrite, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		if d, err = q.Device(id); err != nil {
			return err
		}
		if err := models.CheckVersion("device", in.Version, d.Version); err != nil {
			return err
		}
		if err := s.recheckShare(q, actor, d, in, ownerID); err != nil {
			return err
		}
		if err := checkChange(q, d, in); err != nil {
			return err
		}
		before := d
		if needsRepartition(d, in) {
			d.Applied = models.AppliedUnknown // until the agent reports after this
		}
		d.Sharing, d.Layout, d.Mixed = in.Sharing, in.Layout, in.Mixed
		if err := q.UpdateDevice(&d); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "update", Object: "device", ID: id, Before: before, After: d})
	})
	return d, err
}

// recheckShare checks the right again under the lock: the owner, or whether mixing
// changes, can differ by now.
func (s *Service) recheckShare(q *store.Queries, actor policies.Actor, d models.Device, in DeviceInput, asOwner int64) error {
	provider, err := q.Provider(d.ProviderID)
	if err != nil {
		return err
	}
	if in.Mixed != d.Mixed || asOwner != 0 && asOwner != provider.Owner() {
		return s.access.Check(actor, policies.Platform, policies.DeviceWrite)
	}
	return nil
}

// checkChange refuses changes that conflict with open shares.
func checkChange(q *store.Queries, d models.Device, in DeviceInput) error {
	if err := checkSupported(d, in); err != nil {
		return err
	}
	shares, err := openSharesOn(q, d)
	if err != nil {
		return err
	}
	holders, projects := map[int64]bool{}, map[int64]bool{}
	for _, share := range shares {
		holders[share.HolderID], projects[share.ProjectID] = true, true
	}
	if needsRepartition(d, in) {
		if err := checkUnreserved(q, d); err != nil {
			return err
		}
	}
	inPart := slices.ContainsFunc(shares, func(v store.ShareView) bool { return v.DeviceID == d.ID && v.Cores < 100 })
	switch {
	case len(holders) > 0 && needsRepartition(d, in):
		return models.Conflict("%d workspaces, runs or deployments use this device. Wait until they end: MIG and MPS settings can be changed only while the device is idle.", len(holders))
	case d.Exclusive() && in.Sharing != models.SharingExclusive && inPart:
		return models.Conflict("What was granted exclusive use of this device still uses part of it. Wait until it ends.")
	case in.Sharing == models.SharingExclusive && len(holders) > 1:
		return models.Conflict("%d workspaces, runs or deployments use this device. Before making it exclusive, stop all but one or wait until they end.",
			len(holders))
	case !in.Mixed && in.Sharing != models.SharingMIG && len(projects) > 1:
		return models.Conflict("%d projects use this device. Wait until only one remains before turning off mixing.", len(projects))
	}
	return nil
}

// checkUnreserved refuses if a device, or an instance of it, is reserved.
func checkUnreserved(q *store.Queries, d models.Device) error {
	reserved, err := q.ReservedAmong(store.MachineOf(d.ProviderID))
	if err != nil {
		return err
	}
	devices, err := q.DevicesOf(d.ProviderID)
	if err != nil {
		return err
	}
	for _, g := range reserved {
		if slices.ContainsFunc(devices, func(other models.Device) bool { return other.ID == g.DeviceID && other.PhysicalID() == d.ID }) {
			return models.Conflict("Reservation %d uses this device until %s. Cancel it or wait until it ends: MIG and MPS settings can be changed only while nothing is reserved.",
				g.ReservationID, models.Instant{At: g.EndsAt})
		}
	}
	return nil
}

// checkSupported checks that the device supports the sharing mode.
func checkSupported(d models.Device, in DeviceInput) error {
	if d.ParentID != nil {
		return models.Conflict("This is a MIG instance. Change the partitions of its GPU instead.")
	}
	for _, profile := range in.Layout {
		if !slices.Contains(d.MIGProfiles, profile) {
			return models.Invalid("layout", "this GPU does not support the profile %q; it supports %d profiles", profile, len(d.MIGProfiles))
		}
	}
	return nil
}

// needsRepartition reports whether the agent has to reconfigure the device.
func needsRepartition(d models.Device, in DeviceInput) bool {
	made := func(mode string) bool { return mode == models.SharingMPS || mode == models.SharingMIG }
	return d.Sharing != in.Sharing && (made(d.Sharing) || made(in.Sharing)) ||
		in.Sharing == models.SharingMIG && !slices.Equal(d.Layout, in.Layout)
}

// openSharesOn are the open shares of a device and its instances.
func openSharesOn(q *store.Queries, d models.Device) ([]store.ShareView, error) {
	devices, err := q.DevicesAt(store.AllMachines) // a GPU may have come from another machine
	if err != nil {
		return nil, err
	}
	of := map[int64]bool{d.ID: true}
	for _, other := range devices {
		of[other.ID] = of[other.ID] || other.PhysicalID() == d.ID
	}
	shares, err := q.OpenSharesAmong(store.AllMachines)
	return slices.DeleteFunc(shares, func(v store.ShareView) bool { return !of[v.DeviceID] }), err
}

// orders are the desired sharing modes of the devices of a provider.
func orders(q *store.Queries, provider int64) ([]DeviceOrder, error) {
	devices, err := q.DevicesOf(provider)
	if err != nil {
		return nil, err
	}
	busy := map[int64]int64{}
	if slices.ContainsFunc(devices, func(d models.Device) bool { return d.Simulated }) {
		if busy, err = q.BusyCoresAt(provider); err != nil {
			return nil, err
		}
	}
	var list []DeviceOrder
	for _, d := range devices {
		if d.Present && d.ParentID == nil {
			o := DeviceOrder{UUID: d.UUID, Sharing: d.Sharing, Layout: d.Layout}
			if d.Simulated {
				o.Busy = busy[d.ID]
			}
			list = append(list, o)
		}
	}
	return list, nil
}
