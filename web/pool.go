package web

import (
	"context"
	"slices"
	"time"

	"weir/models"
)

// PoolView answers "what is free and who waits".
type PoolView struct {
	Providers []Provider
	Queue     []QueueRow
	Decisions []DecisionRow
}

// Provider is a machine that lends GPUs.
type Provider struct {
	ID        int64
	Name      string
	State     string // models.Provider…
	SeenAt    time.Time
	Simulated bool
	Devices   []Device
}

// QueueRow is a request that waits.
type QueueRow struct {
	Place       int // from 1
	WorkspaceID int64
	Label       string // such as "nlp · Wang · notebook"; empty when Anonymous
	Anonymous   bool
	Href        string
	GPUs        int64
	Cores       int64 // per GPU
	Why         models.Text
	Since       time.Time
}

// DecisionRow is what the pool answered to a request.
type DecisionRow struct {
	ID          int64
	At          time.Time
	Who         string // empty when the reader may not know
	Outcome     string // models.Outcome…
	Demand      models.Text
	Explanation models.Text
}

// DeviceView is one GPU.
type DeviceView struct {
	Device   Device
	Facts    models.Device
	Provider string
	State    string // of the provider
	History  []ShareRow
	Next     string // address of the next page, empty on the last
	CanEdit  bool
	Form     Form // exclusive, mixed
}

// ShareRow is a share that was or is held.
type ShareRow struct {
	Label       string // empty when the reader may not know
	Href        string
	Cores       int64
	MemoryMiB   int64
	Enforcement string
	From        time.Time
	Until       *time.Time
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

func (v PoolView) gpus() int64 { return int64(len(v.devices())) }

func (v PoolView) held() (n int64) {
	for _, d := range v.devices() {
		n += d.Held()
	}
	return n
}

func (v PoolView) free() (n int64) {
	for _, d := range v.devices() {
		n += d.FreeCores
	}
	return n
}

func (v PoolView) waiting() (n int64) {
	for _, q := range v.Queue {
		n += q.GPUs * q.Cores
	}
	return n
}

// machines says from where the GPUs are.
func (v PoolView) machines(ctx context.Context) string {
	if len(v.Providers) == 1 {
		return T(ctx, "on one provider")
	}
	return T(ctx, "on %d providers", len(v.Providers))
}

func (v PoolView) simulated() bool {
	return slices.ContainsFunc(v.Providers, func(p Provider) bool { return p.Simulated })
}

// alone is the device on its own page, where its machine is named above.
func (v DeviceView) alone() Device {
	d := v.Device
	d.Provider = ""
	return d
}
