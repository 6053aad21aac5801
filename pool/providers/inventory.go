package providers

import (
	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// apply updates the pool from a heartbeat, except its samples, and returns the
// orders. It needs the pool's lock.
func apply(q *store.Queries, provider *models.Provider, b Heartbeat) (o Orders, err error) {
	if err := markSeen(q, provider); err != nil {
		return o, err
	}
	foreign, err := register(q, provider, b.Devices)
	if err != nil {
		return o, err
	}
	if err := setReason(q, provider, foreign); err != nil {
		return o, err
	}
	if err := saveFaults(q, provider.ID, b.Faults); err != nil {
		return o, err
	}
	o.State, o.Reason = provider.State, provider.Reason.String()
	o.Devices, err = orders(q, provider.ID)
	return o, err
}

// setReason sets the reason of a provider's state: changed GPUs, or a GPU of another
// provider.
func setReason(q *store.Queries, provider *models.Provider, foreign models.Text) error {
	why := foreign
	if provider.State == models.ProviderPending {
		why = models.Say("its GPUs have changed; the GPU code %s is waiting for authorization", provider.ReportedCode)
	}
	if provider.Reason.String() == why.String() {
		return nil
	}
	provider.Reason = why
	return q.TransitionProvider(provider, provider.State)
}

// register updates a provider's devices from a report. Devices that are no longer
// reported are marked absent. New devices are not added while the provider's GPUs
// are not authorized, or while they belong to another provider, which foreign
// explains. It needs the pool's lock.
func register(q *store.Queries, provider *models.Provider, reports []DeviceReport) (foreign models.Text, err error) {
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
	was, is := missingFrom(before, after), missingFrom(after, before)
	if len(was)+len(is) == 0 {
		return r.foreign, nil
	}
	return r.foreign, policies.System("inventory").Audit(q, policies.Change{Action: "update", Object: "provider", ID: provider.ID,
		Before: inventoryChange{provider.Name, was}, After: inventoryChange{provider.Name, is}})
}
