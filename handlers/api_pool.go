package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool"
	"weir/pool/placement"
)

func (a rest) poolOperations(s section) {
	register(a, s, route{http.MethodGet, "/pool", 200, "get-pool", "Show the pool: devices, shares, totals, who waits and the newest decisions"}, a.getPool)
	register(a, s, route{http.MethodGet, "/pool/devices/{id}", 200, "get-device", "Show a device and the history of its shares"}, a.getDevice)
	register(a, s, route{http.MethodPut, "/pool/devices/{id}", 200, "update-device", "Set how a device may be shared; for platform administrators"}, a.updateDevice)
}

// Pool is the pool as you may see it: what belongs to projects that are not
// yours has no names.
type Pool struct {
	Providers []Provider `json:"providers"`
	Totals    PoolTotals `json:"totals"`
	Waiting   []Waiting  `json:"waiting" doc:"the queue, first come first"`
	Decisions []Decision `json:"decisions" doc:"the newest answers of the pool"`
}

// Provider is a machine that lends GPUs.
type Provider struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	State   string    `json:"state"`
	SeenAt  time.Time `json:"seen_at"`
	Devices []Device  `json:"devices"`
}

// Device is a GPU.
type Device struct {
	ID            int64   `json:"id"`
	Provider      string  `json:"provider"`
	Number        int64   `json:"number" doc:"on its machine, from 0"`
	UUID          string  `json:"uuid"`
	Model         string  `json:"model"`
	MemoryMiB     int64   `json:"memory_mib"`
	Architecture  string  `json:"architecture,omitempty"`
	PCI           string  `json:"pci,omitempty"`
	Driver        string  `json:"driver,omitempty"`
	Simulated     bool    `json:"simulated" doc:"no such GPU exists"`
	Present       bool    `json:"present" doc:"the driver reports it"`
	Exclusive     bool    `json:"exclusive" doc:"one holder at a time"`
	Mixed         bool    `json:"mixed" doc:"fractions of different projects may share it"`
	FreeCores     int64   `json:"free_cores" doc:"of 100"`
	FreeMemoryMiB int64   `json:"free_memory_mib"`
	Shares        []Share `json:"shares" doc:"held now"`
}

// Share is a part of a device; of a foreign project only its size is told.
type Share struct {
	Anonymous   bool       `json:"anonymous"`
	WorkspaceID int64      `json:"workspace_id,omitempty"`
	Workspace   string     `json:"workspace,omitempty"`
	ProjectID   int64      `json:"project_id,omitempty"`
	Project     string     `json:"project,omitempty"`
	UserID      int64      `json:"user_id,omitempty"`
	User        string     `json:"user,omitempty"`
	Cores       int64      `json:"cores"`
	MemoryMiB   int64      `json:"memory_mib"`
	Enforcement string     `json:"enforcement" doc:"exclusive: the whole device; advisory: stated to the holder, not limited by anything"`
	From        time.Time  `json:"from"`
	Until       *time.Time `json:"until,omitempty" doc:"absent while it is held"`
}

// PoolTotals adds up the pool.
type PoolTotals struct {
	GPUs             int   `json:"gpus"`
	Cores            int64 `json:"cores"`
	FreeCores        int64 `json:"free_cores"`
	HeldCores        int64 `json:"held_cores"`
	MemoryMiB        int64 `json:"memory_mib"`
	FreeMemoryMiB    int64 `json:"free_memory_mib"`
	HeldMemoryMiB    int64 `json:"held_memory_mib"`
	LargestFreeCores int64 `json:"largest_free_cores" doc:"on one device"`
}

// Waiting is a workspace in the queue.
type Waiting struct {
	Place       int           `json:"place"`
	Anonymous   bool          `json:"anonymous"`
	WorkspaceID int64         `json:"workspace_id,omitempty"`
	Workspace   string        `json:"workspace,omitempty"`
	ProjectID   int64         `json:"project_id,omitempty"`
	Project     string        `json:"project,omitempty"`
	User        string        `json:"user,omitempty"`
	Demand      models.Demand `json:"demand"`
	Reason      string        `json:"reason,omitempty"`
	Since       time.Time     `json:"since"`
}

// Decision is what the pool answered.
type Decision struct {
	ID          int64     `json:"id"`
	At          time.Time `json:"at"`
	ProjectID   int64     `json:"project_id"`
	Project     string    `json:"project"`
	User        string    `json:"user"`
	WorkspaceID *int64    `json:"workspace_id,omitempty" doc:"absent when the launch was refused"`
	Outcome     string    `json:"outcome" enum:"granted,partial,delayed,refused"`
	Demand      string    `json:"demand"`
	Explanation string    `json:"explanation"`
}

func providerOf(p pool.ProviderView) Provider {
	return Provider{p.ID, p.Name, p.State, p.SeenAt.UTC(), shown(p.Devices, deviceOf)}
}

func deviceOf(d pool.DeviceView) Device {
	return Device{ID: d.ID, Provider: d.ProviderName, Number: d.Number, UUID: d.UUID, Model: d.Model, MemoryMiB: d.MemoryMiB,
		Architecture: d.Architecture, PCI: d.PCI, Driver: d.Driver, Simulated: d.Simulated, Present: d.Present,
		Exclusive: d.Exclusive, Mixed: d.Mixed, FreeCores: d.FreeCores, FreeMemoryMiB: d.FreeMemoryMiB, Shares: shown(d.Shares, shareOf)}
}

func shareOf(s pool.ShareView) Share {
	return Share{Anonymous: s.Anonymous, WorkspaceID: s.WorkspaceID, Workspace: s.WorkspaceName, ProjectID: s.ProjectID, Project: s.ProjectName,
		UserID: s.UserID, User: s.UserName, Cores: s.Cores, MemoryMiB: s.MemoryMiB, Enforcement: s.Enforcement,
		From: s.From.UTC(), Until: utc(s.Until)}
}

func waitingOf(w pool.WaitingView) Waiting {
	return Waiting{Place: w.Place, Anonymous: w.Anonymous, WorkspaceID: w.ID, Workspace: w.Name, ProjectID: w.ProjectID, Project: w.ProjectName,
		User: w.UserName, Demand: w.Demand, Reason: w.Reason.String(), Since: w.RequestedAt.UTC()}
}

func decisionOf(d models.DecisionView) Decision {
	return Decision{d.ID, d.At.UTC(), d.ProjectID, d.ProjectName, d.UserName, d.WorkspaceID, d.Outcome, d.Demand.String(), d.Explanation.String()}
}

func totalsOf(t placement.Totals) PoolTotals {
	return PoolTotals{t.GPUs, t.Cores, t.FreeCores, t.HeldCores, t.MemoryMiB, t.FreeMemoryMiB, t.HeldMemoryMiB, t.LargestFreeCores}
}

func (a rest) getPool(ctx context.Context, _ *struct{}) (*Answer[Pool], error) {
	v, err := a.Pool.View(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	return &Answer[Pool]{Pool{shown(v.Providers, providerOf), totalsOf(v.Totals), shown(v.Waiting, waitingOf), shown(v.Decisions, decisionOf)}}, nil
}

// DeviceHistory is a device with the newest shares that were held of it.
type DeviceHistory struct {
	Device
	History []Share `json:"history" doc:"newest first"`
}

func (a rest) getDevice(ctx context.Context, in *ByID) (*Found[DeviceHistory], error) {
	d, history, err := a.Pool.Device(ctx, actorOf(ctx), in.ID)
	return found(d.Version, DeviceHistory{deviceOf(d), shown(history, shareOf)}, err)
}

func (a rest) updateDevice(ctx context.Context, in *Update[pool.DeviceInput]) (*Found[DeviceHistory], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Pool.UpdateDevice(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	a.Wake()
	return a.getDevice(ctx, &in.ByID)
}
