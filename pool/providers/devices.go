package providers

import (
	"reflect"
	"strconv"
	"time"

	"weir/models"
)

// audited is what an audit entry tells of a device.
type audited struct {
	UUID, Model, Sharing string
	Present              bool
}

func auditedOf(d models.Device) audited { return audited{d.UUID, d.Model, d.Applied, d.Present} }

// onlyIn is what is true in one list of devices and not in the other.
func onlyIn(one, other []models.Device) (list []audited) {
	both := map[audited]bool{}
	for _, d := range other {
		both[auditedOf(d)] = true
	}
	for _, d := range one {
		if f := auditedOf(d); !both[f] {
			list = append(list, f)
		}
	}
	return list
}

// registry registers what one machine reports.
type registry struct {
	q        *models.Queries
	provider *models.Provider
	known    map[string]models.Device // the provider's own, by UUID
	layouts  map[string][]string      // profiles of the instances, by the UUID of their GPU
	ids      map[string]int64         // of what was registered, by UUID
	changed  bool
	foreign  models.Text // why a GPU is not this provider's
}

// register inserts a device, or updates what its driver says of it; what
// people have set stays.
func (r *registry) register(report DeviceReport) error {
	old, known := r.known[report.UUID]
	if report.Parent != "" && r.ids[report.Parent] == 0 || !known && r.provider.ReportedCode != "" {
		return nil
	}
	if !known {
		var err error
		if old, err = r.q.DeviceByUUID(report.UUID); models.KindOf(err) == models.KindNotFound {
			return r.insert(report)
		} else if err != nil {
			return err
		}
		if why, err := r.ownedElsewhere(old, report); err != nil || !why.Empty() {
			r.foreign = why
			return err
		}
	}
	r.ids[report.UUID] = old.ID
	d := deviceOf(report, r.provider.ID, r.ids[report.Parent], old.CreatedAt)
	d.ID, d.Version, d.Mixed, d.Sharing, d.Layout, d.XID, d.XIDAt = old.ID, old.Version, old.Mixed, old.Sharing, old.Layout, old.XID, old.XIDAt
	if reflect.DeepEqual(normalized(d), normalized(old)) {
		return nil
	}
	r.changed = true
	if err := tellOfChange(r.q, r.provider.Name, old, d); err != nil {
		return err
	}
	return r.q.UpdateDevice(&d)
}

// insert adds a device that was never seen. How it is shared already was the
// decision of whoever set the machine up.
func (r *registry) insert(report DeviceReport) error {
	d := deviceOf(report, r.provider.ID, r.ids[report.Parent], r.q.Now())
	if report.Sharing == models.SharingMIG || report.Sharing == models.SharingMPS {
		d.Sharing, d.Layout = report.Sharing, r.layouts[report.UUID]
	}
	r.changed = true
	if err := r.q.CreateDevice(&d); err != nil {
		return err
	}
	r.ids[report.UUID] = d.ID
	return nil
}

// ownedElsewhere tells why a device does not go over from the provider that had it. It
// does when its GPU was put into another machine; an instance goes with its
// GPU only, for no code names it.
func (r *registry) ownedElsewhere(d models.Device, report DeviceReport) (models.Text, error) {
	other, err := r.q.Provider(d.ProviderID)
	if err != nil {
		return models.Text{}, err
	}
	alike := d.ParentID == nil && report.Parent == "" || d.ParentID != nil && *d.ParentID == r.ids[report.Parent]
	if !alike || d.Present && other.State != models.ProviderOffline {
		return models.Say("The GPU %s is already in the pool through %s. Remove that provider first.", d.UUID, other.Name), nil
	}
	inUse, err := r.q.OpenSharesOf([]int64{d.ID})
	if err != nil || inUse == 0 {
		return models.Text{}, err
	}
	return models.Say("The GPU %s is still in use through %s. Wait until its shares end.", d.UUID, other.Name), nil
}

// tellOfChange writes what has become of a device into the history of every
// workspace that holds a share of it; a failure is also that of its instances.
func tellOfChange(q *models.Queries, machine string, old, now models.Device) error {
	name := "GPU " + strconv.FormatInt(now.Number, 10)
	if now.Profile != "" {
		name += " " + now.Profile
	}
	switch {
	case old.Present && !now.Present:
		return notifyDeviceWorkspaces(q, now.ID, false, models.Say("%s on %s is no longer reported. The share is kept until it returns.", name, machine))
	case !old.Present && now.Present:
		if err := notifyDeviceWorkspaces(q, now.ID, false, models.Say("%s on %s is back. The share was kept.", name, machine)); err != nil {
			return err
		}
	}
	switch {
	case old.Trouble.Empty() && !now.Trouble.Empty():
		return notifyDeviceWorkspaces(q, now.ID, true, models.Say("%s on %s failed: %s.", name, machine, now.Trouble))
	case !old.Trouble.Empty() && now.Trouble.Empty():
		return notifyDeviceWorkspaces(q, now.ID, true, models.Say("%s on %s has recovered.", name, machine))
	}
	return nil
}

func notifyDeviceWorkspaces(q *models.Queries, device int64, instances bool, line models.Text) error {
	holders, err := q.WorkspacesOnDevice(device, instances)
	if err != nil {
		return err
	}
	return addEvents(q, holders, line)
}

func deviceOf(r DeviceReport, provider, parent int64, created time.Time) models.Device {
	d := models.Device{ProviderID: provider, UUID: r.UUID, Number: int64(r.Index), Minor: int64(r.Minor), Model: r.Model,
		MemoryMiB: r.MemoryMiB, Architecture: r.Architecture, PCI: r.PCIBusID, Driver: r.Driver,
		Simulated: r.Simulated, Present: true, Sharing: models.SharingTimeSlicing, Applied: r.Sharing,
		MIGProfiles: r.MIGProfiles, Profile: r.Profile, Cores: r.Cores, NUMA: int64(r.NUMA), Peers: r.Peers,
		ECC: r.ECC, ECCErrors: r.ECCErrors, Version: 1, CreatedAt: created}
	if d.Cores == 0 {
		d.Cores = 100
	}
	if parent != 0 {
		d.ParentID, d.Sharing = &parent, models.SharingMIG
	}
	if r.Trouble != "" {
		d.Trouble = models.Say("the driver reports: %s", r.Trouble)
	}
	return d
}

// normalized makes empty and absent lists the same.
func normalized(d models.Device) models.Device {
	for _, list := range []*[]string{&d.Layout, &d.MIGProfiles, &d.Peers} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	if d.XIDAt != nil {
		at := d.XIDAt.UTC()
		d.XIDAt = &at
	}
	d.CreatedAt = d.CreatedAt.UTC()
	return d
}

// markAbsent marks the devices of a machine that were not seen, and tells
// whether there were any. An instance that nobody ever held is forgotten: each
// time that a GPU is cut, its instances are others.
func markAbsent(q *models.Queries, machine string, devices []models.Device, seen map[string]int64) (changed bool, err error) {
	for _, d := range devices {
		if _, reported := seen[d.UUID]; !d.Present || reported {
			continue
		}
		changed = true
		if err := markDeviceAbsent(q, machine, d); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

func markDeviceAbsent(q *models.Queries, machine string, d models.Device) error {
	if d.ParentID != nil {
		neverUsed, err := q.NeverUsed(d.ID)
		if err != nil {
			return err
		}
		if neverUsed {
			return q.DeleteDevice(d.ID)
		}
	}
	old := d
	d.Present = false
	if err := tellOfChange(q, machine, old, d); err != nil {
		return err
	}
	return q.UpdateDevice(&d)
}
