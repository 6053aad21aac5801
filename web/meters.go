package web

import (
	"context"

	"weir/models"
)

// Meter is how much of one resource is in use, allocated or requested, of how
// much.
type Meter struct {
	Resource string // as in models.Resources, such as "gpu_cores"
	Label    models.Text
	Held     int64
	Asked    int64 // what a launch would add
	Promised int64 // Σ of members' limits
	Limit    int64
	Quota    bool // a project's quota; otherwise the limit of a role
}

// PeakMeters compares what a member has in use and requests with the role's limit.
func PeakMeters(held, asked, peak models.Resources) []Meter {
	return meters(held, asked, models.Resources{}, peak, false)
}

// QuotaMeters compares what a project has in use, and has allocated to its
// members, with its quota.
func QuotaMeters(held, promised, quota models.Resources) []Meter {
	return meters(held, models.Resources{}, promised, quota, true)
}

func meters(held, asked, promised, limit models.Resources, quota bool) []Meter {
	h, a, p := held.Amounts(), asked.Amounts(), promised.Amounts()
	var out []Meter
	for i, l := range limit.Amounts() {
		out = append(out, Meter{Resource: l.Name, Label: l.Label, Held: h[i].Value,
			Asked: a[i].Value, Promised: p[i].Value, Limit: l.Value, Quota: quota})
	}
	return out
}

// Over tells whether more is in use and requested than there may be.
func (m Meter) Over() bool { return m.Held+m.Asked > m.Limit }

// words are the meter's numbers: what they count and of what.
func (m Meter) words(ctx context.Context) string {
	q := func(n int64) string { return models.Quantity(m.Resource, n) }
	switch {
	case m.Resource == "storage_mib" && m.Quota:
		return T(ctx, "%s promised of %s · use not measured", q(m.Promised), q(m.Limit))
	case m.Resource == "storage_mib":
		return T(ctx, "%s peak · use not measured", q(m.Limit))
	case m.Quota:
		return T(ctx, "%s held · %s promised of %s", q(m.Held), q(m.Promised), q(m.Limit))
	case m.Asked > 0:
		return T(ctx, "%s held + %s asked of %s peak", q(m.Held), q(m.Asked), q(m.Limit))
	}
	return T(ctx, "%s held of %s peak", q(m.Held), q(m.Limit))
}
