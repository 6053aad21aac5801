package pool

import (
	"context"
	"reflect"
	"time"

	"weir/models"
	"weir/policies"
)

// Host is the machine that the portal runs on.
type Host struct {
	Name   string
	Digest string // see MachineDigest
}

// Enlist makes this machine a provider with what its inventory reports now,
// and the one that workspaces run on. Where an enrolled agent speaks for the
// machine, its devices are left to the agent.
func (p *Pool) Enlist(ctx context.Context, host Host, inventory Inventory) error {
	reports, err := inventory.Devices(ctx)
	if err != nil {
		return err
	}
	return p.store.InTx(ctx, func(q *models.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		provider, err := homeProvider(q, host)
		if err != nil {
			return err
		}
		p.home.Store(provider.ID)
		if err := retireOthers(q, provider.ID); err != nil || provider.Agent {
			return err
		}
		if err := p.hear(q, &provider); err != nil {
			return err
		}
		return p.enlist(q, &provider, reports)
	})
}

// homeProvider finds or makes the provider that a host is. A row from before
// machines had identities is known by its name.
func homeProvider(q *models.Queries, host Host) (models.Provider, error) {
	provider, err := q.ProviderOf(host.Digest)
	if err == nil || models.KindOf(err) != models.KindNotFound {
		return provider, err
	}
	provider, err = q.ProviderNamed(host.Name)
	if err == nil && provider.Machine == "" {
		provider.Machine = host.Digest
		return provider, q.UpdateProvider(&provider)
	}
	if err != nil && models.KindOf(err) != models.KindNotFound {
		return provider, err
	}
	if provider, err = newProvider(q, host.Name, host.Digest); err != nil {
		return provider, err
	}
	return provider, policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID, After: provider})
}

// newProvider makes a provider of a machine; when the name is taken it gets a
// number after it.
func newProvider(q *models.Queries, name, digest string) (models.Provider, error) {
	provider := models.Provider{Name: name, State: models.ProviderOnline, Machine: digest, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()}
	for n := int64(2); ; n++ {
		_, err := q.ProviderNamed(provider.Name)
		if models.KindOf(err) == models.KindNotFound && err != nil {
			return provider, q.CreateProvider(&provider)
		}
		if err != nil {
			return provider, err
		}
		provider.Name = name + "-" + itoa(n)
	}
}

// retireOthers takes former identities of this machine out of the pool: only
// one provider is spoken for by the portal itself.
func retireOthers(q *models.Queries, home int64) error {
	providers, err := q.Providers()
	if err != nil {
		return err
	}
	for _, p := range providers {
		if p.ID == home || p.Agent || p.State == models.ProviderOffline {
			continue
		}
		if err := retire(q, &p, policies.System("inventory")); err != nil {
			return err
		}
	}
	return nil
}

// retire takes a provider out of the pool with all its devices.
func retire(q *models.Queries, p *models.Provider, actor policies.Actor) error {
	before := *p
	p.State, p.Reason = models.ProviderOffline, models.Text{}
	p.Draining, p.RecallAt, p.RecallReason, p.ReportedCode = false, nil, "", ""
	if err := q.UpdateProvider(p); err != nil {
		return err
	}
	devices, err := q.DevicesOf(p.ID)
	if err != nil {
		return err
	}
	if _, err := markAbsent(q, devices, nil); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "retire", Object: "provider", ID: p.ID, Before: before, After: *p})
}

// enlist brings a provider's devices to what its machine reports. Devices
// that are not reported any more are marked absent: nothing new is placed on
// them. It needs the pool's lock.
func (p *Pool) enlist(q *models.Queries, provider *models.Provider, reports []DeviceReport) error {
	before, err := q.DevicesOf(provider.ID)
	if err != nil {
		return err
	}
	r := registry{q: q, provider: provider.ID, known: map[string]models.Device{}, ids: map[string]int64{}, layouts: map[string][]string{}}
	for _, d := range before {
		r.known[d.UUID] = d
	}
	for _, report := range reports {
		if report.Parent != "" {
			r.layouts[report.Parent] = append(r.layouts[report.Parent], report.Profile)
		}
	}
	for _, instances := range []bool{false, true} { // an instance needs its GPU
		for _, report := range reports {
			if (report.Parent != "") != instances {
				continue
			}
			if err := r.register(report); err != nil {
				return err
			}
		}
	}
	absent, err := markAbsent(q, before, r.ids)
	if err != nil || !absent && !r.changed {
		return err
	}
	after, err := q.DevicesOf(provider.ID)
	if err != nil || reflect.DeepEqual(facts(before), facts(after)) {
		return err
	}
	return policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID,
		Before: facts(before), After: facts(after)})
}

// fact is what an audit entry tells of a device.
type fact struct {
	UUID, Model, Sharing string
	Present              bool
}

func facts(devices []models.Device) []fact {
	list := make([]fact, len(devices))
	for i, d := range devices {
		list[i] = fact{d.UUID, d.Model, d.Applied, d.Present}
	}
	return list
}

// registry registers what one machine reports.
type registry struct {
	q        *models.Queries
	provider int64
	known    map[string]models.Device // the provider's own, by UUID
	layouts  map[string][]string      // profiles of the instances, by the UUID of their GPU
	ids      map[string]int64         // of what was registered, by UUID
	changed  bool
}

// register inserts a device, or updates what its driver says of it; what
// people have set stays.
func (r *registry) register(report DeviceReport) error {
	old, known := r.known[report.UUID]
	if !known {
		var err error
		if old, err = r.q.DeviceByUUID(report.UUID); models.KindOf(err) == models.KindNotFound && err != nil {
			return r.insert(report)
		} else if err != nil {
			return err
		}
		if err := mayMove(r.q, old); err != nil {
			return err
		}
	}
	r.ids[report.UUID] = old.ID
	d := deviceOf(report, r.provider, r.ids[report.Parent], old.CreatedAt)
	d.ID, d.Version, d.Mixed, d.Sharing, d.Layout, d.XID, d.XIDAt = old.ID, old.Version, old.Mixed, old.Sharing, old.Layout, old.XID, old.XIDAt
	if reflect.DeepEqual(tidy(d), tidy(old)) {
		return nil
	}
	r.changed = true
	return r.q.UpdateDevice(&d)
}

// insert adds a device that was never seen. How it is shared already was the
// decision of whoever set the machine up.
func (r *registry) insert(report DeviceReport) error {
	d := deviceOf(report, r.provider, r.ids[report.Parent], r.q.Now())
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

// mayMove tells whether a GPU may go over from the provider that had it: it
// was put into another machine.
func mayMove(q *models.Queries, d models.Device) error {
	other, err := q.Provider(d.ProviderID)
	if err != nil {
		return err
	}
	if d.Present && other.State != models.ProviderOffline {
		return models.Conflict("The GPU %s is in the pool already, through %s. Remove that provider first.", d.UUID, other.Name)
	}
	held, err := q.HeldOf([]int64{d.ID})
	if err == nil && held > 0 {
		err = models.Conflict("The GPU %s is still held through %s. Wait until its shares have ended.", d.UUID, other.Name)
	}
	return err
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
		d.Trouble = models.Say("the driver says: %s", r.Trouble)
	}
	return d
}

// tidy makes empty and absent lists the same.
func tidy(d models.Device) models.Device {
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

// markAbsent marks the devices that were not seen, and tells whether there
// were any.
func markAbsent(q *models.Queries, devices []models.Device, seen map[string]int64) (changed bool, err error) {
	for _, d := range devices {
		if _, reported := seen[d.UUID]; d.Present && !reported {
			d.Present, changed = false, true
			if err := q.UpdateDevice(&d); err != nil {
				return changed, err
			}
		}
	}
	return changed, nil
}
