package web

import (
	"context"

	"weir/models"
)

// Meter is how much of one resource is in use, allocated or requested, of how
// much.
type Meter struct {
	Resource  string // as in models.Resources, such as "gpu_cores"
	Label     models.Text
	InUse     int64
	Requested int64 // by a launch
	Allocated int64 // Σ of members' limits
	Limit     int64
	Quota     bool // a project's quota; otherwise the limit of a role
}

// LimitMeters compares the use and the request of a member with the role's limit.
func LimitMeters(inUse, requested, limit models.Resources) []Meter {
	return meters(inUse, requested, models.Resources{}, limit, false)
}

// QuotaMeters compares the use and the allocated limits of a project with its quota.
func QuotaMeters(inUse, allocated, quota models.Resources) []Meter {
	return meters(inUse, models.Resources{}, allocated, quota, true)
}

func meters(inUse, requested, allocated, limit models.Resources, quota bool) []Meter {
	h, a, p := inUse.Amounts(), requested.Amounts(), allocated.Amounts()
	var out []Meter
	for i, l := range limit.Amounts() {
		out = append(out, Meter{Resource: l.Name, Label: l.Label, InUse: h[i].Value,
			Requested: a[i].Value, Allocated: p[i].Value, Limit: l.Value, Quota: quota})
	}
	return out
}

// Over reports whether use and request exceed the limit.
func (m Meter) Over() bool { return m.InUse+m.Requested > m.Limit }

// words formats the meter's numbers.
func (m Meter) words(ctx context.Context) string {
	q := func(n int64) string { return models.Quantity(m.Resource, n) }
	switch {
	case m.Resource == "storage_mib" && !m.Quota:
		return T(ctx, "%s limit", q(m.Limit))
	case m.Quota:
		return T(ctx, "%s in use · %s allocated of %s", q(m.InUse), q(m.Allocated), q(m.Limit))
	case m.Requested > 0:
		return T(ctx, "%s in use + %s requested, limit %s", q(m.InUse), q(m.Requested), q(m.Limit))
	}
	return T(ctx, "%s in use, limit %s", q(m.InUse), q(m.Limit))
}
