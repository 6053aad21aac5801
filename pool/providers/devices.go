package providers

import (
	"cmp"
	"reflect"
	"strconv"
	"time"

	"weir/models"
	"weir/models/store"
)

// audited is a device in the audit.
type audited struct {
	UUID, Model, Sharing string
	Present              bool
}

// inventoryChange is what a change of a provider's devices leaves in the audit.
type inventoryChange struct {
	Name    string // of the provider
	Devices []audited
}

func auditedOf(d models.Device) audited { return audited{d.UUID, d.Model, d.Applied, d.Present} }

// missingFrom lists the devices that are in one list and not in the other.
func missingFrom(one, other []models.Device) (list []audited) {
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

// registry registers the devices of one report.
type registry struct {
	q        *store.Queries
	provider *models.Provider
	known    map[string]models.Device // the provider's own, by UUID
	layouts  map[string][]string      // profiles of the instances, by the UUID of their GPU
	ids      map[string]int64         // of registered devices, by UUID
	changed  bool
	foreign  models.Text // why a GPU belongs to another provider
}

// register inserts a device, or updates what its driver reports. Settings stay.
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
	if err := notifyDeviceChange(r.q, r.provider.Name, old, d); err != nil {
		return err
	}
	return r.q.UpdateDevice(&d)
}

// insert adds a new device with the sharing mode that is in effect.
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

// ownedElsewhere explains why a device still belongs to another provider; empty if
// its GPU was moved to this machine. An instance moves with its GPU only.
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

// notifyDeviceChange tells the holders of shares of a device that it disappeared,
// returned, failed or recovered; the latter two concern its instances too.
func notifyDeviceChange(q *store.Queries, machine string, old, now models.Device) error {
	name := "GPU " + strconv.FormatInt(now.Number, 10)
	if now.Profile != "" {
		name += " " + now.Profile
	}
	switch {
	case old.Present && !now.Present:
		return q.TellHoldersOn(now.ID, false, models.Say("%s on %s is no longer reported. The share is kept until it returns.", name, machine))
	case !old.Present && now.Present:
		if err := q.TellHoldersOn(now.ID, false, models.Say("%s on %s is back. The share was kept.", name, machine)); err != nil {
			return err
		}
	}
	switch {
	case old.Trouble.Empty() && !now.Trouble.Empty():
		return q.TellHoldersOn(now.ID, true, models.Say("%s on %s failed: %s.", name, machine, now.Trouble))
	case !old.Trouble.Empty() && now.Trouble.Empty():
		return q.TellHoldersOn(now.ID, true, models.Say("%s on %s has recovered.", name, machine))
	}
	return nil
}

func deviceOf(r DeviceReport, provider, parent int64, created time.Time) models.Device {
	d := models.Device{ProviderID: provider, UUID: r.UUID, Number: int64(r.Index), Minor: int64(r.Minor), Model: r.Model,
		MemoryMiB: r.MemoryMiB, Architecture: r.Architecture, PCI: r.PCIBusID, Driver: r.Driver,
		Simulated: r.Simulated, Present: true, Sharing: models.SharingTimeSlicing, Applied: r.Sharing, SharingError: r.SharingError,
		MIGProfiles: r.MIGProfiles, Profile: r.Profile, Cores: cmp.Or(r.Cores, 100), NUMA: int64(r.NUMA), Peers: r.Peers,
		ECC: r.ECC, ECCErrors: r.ECCErrors, Version: 1, CreatedAt: created}
	if parent != 0 {
		d.ParentID, d.Sharing = &parent, models.SharingMIG
	}
	if r.Trouble != "" {
		d.Trouble = models.Say("the driver reports: %s", r.Trouble)
	}
	return d
}

// normalized makes devices comparable: empty lists are nil, times are in UTC.
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

// markAbsent marks devices that were not reported as absent, and reports whether
// there were any. Instances that were never used are deleted, because each
// partitioning creates new ones.
func markAbsent(q *store.Queries, machine string, devices []models.Device, seen map[string]int64) (changed bool, err error) {
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

func markDeviceAbsent(q *store.Queries, machine string, d models.Device) error {
	if d.ParentID != nil {
		neverUsed, err := q.NeverUsed(d.ID)
		if err != nil {
			return err
		}
		if neverUsed {
			return q.DeleteDevice(d)
		}
	}
	old := d
	d.Present = false
	if err := notifyDeviceChange(q, machine, old, d); err != nil {
		return err
	}
	return q.UpdateDevice(&d)
}
