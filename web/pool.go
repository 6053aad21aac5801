package web

import (
	"context"
	"slices"
	"time"

	"weir/models"
)

// PoolView shows the pool and its queue.
type PoolView struct {
	Providers []Provider
	GPUs      int64 // physical ones
	Cores     int64 // of all of them
	InUse     int64 // cores
	Computing int64 // percent of the measured GPUs, on average; -1 when nothing is measured
	Queue     []QueueRow
	Decisions []DecisionRow
	Placed    int64       // decisions so far
	Changed   *time.Time  // when something was last placed or released; nil: never
	Unmet     []UnmetRow  // for administrators
	Offered   []OfferedTo // authorizations that wait for their machine, for administrators
}

// OfferedTo is an authorization code that was issued and not used yet.
type OfferedTo struct {
	GPUCode string
	Name    string // may be empty
	Until   time.Time
}

// UnmetRow is demand that the pool does not meet.
type UnmetRow struct {
	Model   string // empty: any
	GPUs    int64
	Cores   int64 // per GPU
	Waiting int64
	Refused int64 // in the last day
	Oldest  *time.Time
}

// Provider is a machine that lends GPUs.
type Provider struct {
	ID        int64
	Name      string
	State     string // models.Provider…
	SeenAt    time.Time
	Simulated bool
	NVLink    bool
	Devices   []Device
	Reason    models.Text // of the state
	RecallAt  *time.Time
	Lends     bool       // its hours are open
	Until     *time.Time // when that changes
	NewCode   string     // of GPUs that wait for an authorization
	Manage    bool
}

// QueueRow is a request that waits.
type QueueRow struct {
	Position  int    // from 1
	Label     string // such as "nlp · Wang · notebook"; empty when Anonymous
	Anonymous bool
	Href      string
	GPUs      int64
	Cores     int64 // per GPU
	Why       models.Text
	Since     time.Time
	Starts    models.Text // such as "in about 14 minutes"
	Estimated bool        // from how long shares lasted in the past, not known
	Behind    models.Text // why not before its predecessor; empty for the first
}

// DecisionRow is a decision of the pool.
type DecisionRow struct {
	At          time.Time
	Who         string // empty if anonymous
	Outcome     string // models.Outcome…
	Demand      models.Text
	Explanation models.Text
}

// devices are those of all providers, each with its provider's name.
func (v PoolView) devices() []Device {
	var all []Device
	for _, p := range v.Providers {
		for _, d := range p.Devices {
			d.Provider = p.Name
			all = append(all, d)
		}
	}
	return all
}

func (v PoolView) waiting() (n int64) {
	for _, q := range v.Queue {
		n += q.GPUs * q.Cores
	}
	return n
}

// machines formats the number of GPUs and machines.
func (v PoolView) machines(ctx context.Context) string {
	if len(v.Providers) == 1 {
		return T(ctx, "on one provider")
	}
	return T(ctx, "on %d providers", len(v.Providers))
}

// computing is the utilization, and whether it was measured.
func (v PoolView) computing(ctx context.Context) (percent, how string) {
	if v.Computing < 0 {
		return "–", T(ctx, "not measured")
	}
	switch percent = number(v.Computing) + "%"; {
	case !v.anyDevice(func(d Device) bool { return d.Simulated }):
		return percent, T(ctx, "measured")
	case v.anyDevice(func(d Device) bool { return !d.Simulated }):
		return percent, T(ctx, "partly simulated")
	}
	return percent, T(ctx, "simulated")
}

func (v PoolView) anyDevice(is func(Device) bool) bool {
	return slices.ContainsFunc(v.Providers, func(p Provider) bool { return slices.ContainsFunc(p.Devices, is) })
}

// hardware describes a machine's GPUs.
func (p Provider) hardware() string {
	words := describeModels(p.Devices)
	if p.NVLink {
		words += " · NVLink"
	}
	return words
}

// notification is the most important message about a machine, and the time in it.
func (p Provider) notification(ctx context.Context) (sentence string, at *time.Time) {
	switch {
	case p.State == models.ProviderLost:
		return T(ctx, "Shares are kept until it reconnects. Last heartbeat:"), &p.SeenAt
	case p.RecallAt != nil:
		return T(ctx, "Shares here end at"), p.RecallAt
	case p.State == models.ProviderDraining:
		return T(ctx, "No new shares are placed here. Existing shares are kept."), nil
	case !p.Lends && p.Until != nil:
		return T(ctx, "Available again at"), p.Until
	case p.Lends && p.Until != nil && p.State == models.ProviderOnline:
		return T(ctx, "Available until"), p.Until
	}
	return "", nil
}

// starts formats the estimated start of a request.
func (q QueueRow) starts(ctx context.Context) string {
	if q.Estimated {
		return "~ " + TT(ctx, q.Starts)
	}
	return TT(ctx, q.Starts)
}

// basis is the basis of the estimate.
func (q QueueRow) basis(ctx context.Context) string {
	if q.Estimated {
		return T(ctx, "Estimated from the duration of past shares.")
	}
	return T(ctx, "Based on scheduled end times.")
}
