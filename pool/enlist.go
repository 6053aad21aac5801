package pool

import (
	"context"
	"reflect"
	"slices"
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
		provider, err := homeProvider(q, host, reports)
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
		foreign, err := p.enlist(q, &provider, reports)
		if err != nil {
			return err
		}
		return explain(q, &provider, foreign)
	})
}

// homeProvider finds or makes the provider that a host is. A row from before
// machines had identities is known by its name, and a machine whose identity
// has changed by its GPUs.
func homeProvider(q *models.Queries, host Host, reports []DeviceReport) (models.Provider, error) {
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
	if known, err := former(q, reports); err != nil || known != nil {
		if err != nil {
			return provider, err
		}
		before := *known
		known.Machine = host.Digest
		if err := q.UpdateProvider(known); err != nil {
			return provider, err
		}
		return *known, policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: known.ID, Before: before, After: *known})
	}
	if provider, err = newProvider(q, host.Name, host.Digest); err != nil {
		return provider, err
	}
	return provider, policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID, After: provider})
}

// former finds the one provider for which the portal itself spoke and that had
// some of the reported GPUs: it is this machine under another identity. nil
// when there is none, or more than one.
func former(q *models.Queries, reports []DeviceReport) (found *models.Provider, err error) {
	here := map[string]bool{}
	for _, r := range reports {
		here[r.UUID] = r.Parent == ""
	}
	providers, err := q.Providers()
	if err != nil {
		return nil, err
	}
	for _, p := range providers {
		if p.Agent || p.State == models.ProviderOffline {
			continue
		}
		devices, err := q.DevicesOf(p.ID)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(devices, func(d models.Device) bool { return d.ParentID == nil && here[d.UUID] }) {
			continue
		}
		if found != nil {
			return nil, nil
		}
		found = &p
	}
	return found, nil
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
// one provider is spoken for by the portal itself. One where shares are still
// held is lost instead, for nobody speaks for it, until they have ended.
func retireOthers(q *models.Queries, home int64) error {
	providers, err := q.Providers()
	if err != nil {
		return err
	}
	for _, p := range providers {
		if p.ID == home || p.Agent || p.State == models.ProviderOffline {
			continue
		}
		if held, err := q.HeldAt(p.ID); err != nil {
			return err
		} else if held > 0 {
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
	if _, err := markAbsent(q, p.Name, devices, nil); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "retire", Object: "provider", ID: p.ID, Before: before, After: *p})
}

// enlist brings a provider's devices to what its machine reports. Devices
// that are not reported any more are marked absent: nothing new is placed on
// them. A provider whose GPUs are not authorised gets none that it did not
// have, and a GPU that another provider has stays there: foreign tells of it.
// It needs the pool's lock.
func (p *Pool) enlist(q *models.Queries, provider *models.Provider, reports []DeviceReport) (foreign models.Text, err error) {
	before, err := q.DevicesOf(provider.ID)
	if err != nil {
		return foreign, err
	}
	r := registry{q: q, provider: provider, known: map[string]models.Device{}, ids: map[string]int64{}, layouts: map[string][]string{}}
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
				return r.foreign, err
			}
		}
	}
	absent, err := markAbsent(q, provider.Name, before, r.ids)
	if err != nil || !absent && !r.changed {
		return r.foreign, err
	}
	after, err := q.DevicesOf(provider.ID)
	if err != nil {
		return r.foreign, err
	}
	was, is := onlyIn(before, after), onlyIn(after, before)
	if len(was)+len(is) == 0 {
		return r.foreign, nil
	}
	return r.foreign, policies.System("inventory").Audit(q, policies.Change{Action: "enlist", Object: "provider", ID: provider.ID, Before: was, After: is})
}

// fact is what an audit entry tells of a device.
type fact struct {
	UUID, Model, Sharing string
	Present              bool
}

func factOf(d models.Device) fact { return fact{d.UUID, d.Model, d.Applied, d.Present} }

// onlyIn is what is true in one list of devices and not in the other.
func onlyIn(one, other []models.Device) (list []fact) {
	both := map[fact]bool{}
	for _, d := range other {
		both[factOf(d)] = true
	}
	for _, d := range one {
		if f := factOf(d); !both[f] {
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
		if old, err = r.q.DeviceByUUID(report.UUID); models.KindOf(err) == models.KindNotFound && err != nil {
			return r.insert(report)
		} else if err != nil {
			return err
		}
		if why, err := r.stays(old, report); err != nil || !why.Empty() {
			r.foreign = why
			return err
		}
	}
	r.ids[report.UUID] = old.ID
	d := deviceOf(report, r.provider.ID, r.ids[report.Parent], old.CreatedAt)
	d.ID, d.Version, d.Mixed, d.Sharing, d.Layout, d.XID, d.XIDAt = old.ID, old.Version, old.Mixed, old.Sharing, old.Layout, old.XID, old.XIDAt
	if reflect.DeepEqual(tidy(d), tidy(old)) {
		return nil
	}
	r.changed = true
	if err := tellHolders(r.q, r.provider.Name, old, d); err != nil {
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

// stays tells why a device does not go over from the provider that had it. It
// does when its GPU was put into another machine; an instance goes with its
// GPU only, for no code names it.
func (r *registry) stays(d models.Device, report DeviceReport) (models.Text, error) {
	other, err := r.q.Provider(d.ProviderID)
	if err != nil {
		return models.Text{}, err
	}
	alike := d.ParentID == nil && report.Parent == "" || d.ParentID != nil && *d.ParentID == r.ids[report.Parent]
	if !alike || d.Present && other.State != models.ProviderOffline {
		return models.Say("The GPU %s is in the pool already, through %s. Remove that provider first.", d.UUID, other.Name), nil
	}
	held, err := r.q.HeldOf([]int64{d.ID})
	if err != nil || held == 0 {
		return models.Text{}, err
	}
	return models.Say("The GPU %s is still held through %s. Wait until its shares have ended.", d.UUID, other.Name), nil
}

// tellHolders writes what has become of a device into the history of every
// workspace that holds a share of it; a failure is also that of its instances.
func tellHolders(q *models.Queries, machine string, old, now models.Device) error {
	name := "GPU " + itoa(now.Number)
	if now.Profile != "" {
		name += " " + now.Profile
	}
	switch {
	case old.Present && !now.Present:
		return tellOf(q, now.ID, false, models.Say("%s of %s has vanished; the share is kept for when it comes back.", name, machine))
	case !old.Present && now.Present:
		if err := tellOf(q, now.ID, false, models.Say("%s of %s is back; the share was kept.", name, machine)); err != nil {
			return err
		}
	}
	switch {
	case old.Trouble.Empty() && !now.Trouble.Empty():
		return tellOf(q, now.ID, true, models.Say("%s of %s has failed: %s.", name, machine, now.Trouble))
	case !old.Trouble.Empty() && now.Trouble.Empty():
		return tellOf(q, now.ID, true, models.Say("%s of %s is well again.", name, machine))
	}
	return nil
}

func tellOf(q *models.Queries, device int64, instances bool, line models.Text) error {
	holders, err := q.HoldersOf(device, instances)
	if err != nil {
		return err
	}
	for i := range holders {
		if err := q.AddEvent(&holders[i], line); err != nil {
			return err
		}
	}
	return nil
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

// markAbsent marks the devices of a machine that were not seen, and tells
// whether there were any. An instance that nobody ever held is forgotten: each
// time that a GPU is cut, its instances are others.
func markAbsent(q *models.Queries, machine string, devices []models.Device, seen map[string]int64) (changed bool, err error) {
	for _, d := range devices {
		if _, reported := seen[d.UUID]; !d.Present || reported {
			continue
		}
		changed = true
		if err := leave(q, machine, d); err != nil {
			return changed, err
		}
	}
	return changed, nil
}

func leave(q *models.Queries, machine string, d models.Device) error {
	if d.ParentID != nil {
		unheld, err := q.Unheld(d.ID)
		if err != nil {
			return err
		}
		if unheld {
			return q.ForgetDevice(d.ID)
		}
	}
	old := d
	d.Present = false
	if err := tellHolders(q, machine, old, d); err != nil {
		return err
	}
	return q.UpdateDevice(&d)
}
