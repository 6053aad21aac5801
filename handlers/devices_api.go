package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool"
	"weir/pool/providers"
)

func (a rest) devicesOperations(s section) {
	register(a, s, route{http.MethodGet, "/pool/devices/{id}", 200, "get-device", "Show a device and the history of its shares"}, a.getDevice)
	register(a, s, route{http.MethodPut, "/pool/devices/{id}", 200, "update-device", "Set how a device may be shared; for its provider's owner and platform administrators"}, a.updateDevice)
	register(a, s, route{http.MethodGet, "/pool/devices/{id}/telemetry", 200, "get-telemetry", "Show what was measured of a device; times of silence have no buckets"}, a.getTelemetry)
}

// Device is a GPU, or a MIG instance of one.
type Device struct {
	ID            int64      `json:"id"`
	ProviderID    int64      `json:"provider_id"`
	Provider      string     `json:"provider"`
	Number        int64      `json:"number" doc:"on its machine, from 0; of an instance its GPU's"`
	UUID          string     `json:"uuid"`
	Model         string     `json:"model"`
	MemoryMiB     int64      `json:"memory_mib"`
	Architecture  string     `json:"architecture,omitempty"`
	PCI           string     `json:"pci,omitempty"`
	Driver        string     `json:"driver,omitempty"`
	NUMA          *int64     `json:"numa,omitempty" doc:"node; absent when unknown"`
	Peers         []string   `json:"peers" doc:"UUIDs of the GPUs that NVLink joins to it"`
	Simulated     bool       `json:"simulated" doc:"no such GPU exists"`
	Present       bool       `json:"present" doc:"the driver reports it"`
	Trouble       string     `json:"trouble,omitempty" doc:"why nothing new is placed on it"`
	ECC           string     `json:"ecc,omitempty" doc:"on or off; absent when unknown"`
	ECCErrors     int64      `json:"ecc_errors" doc:"uncorrected, since the driver started"`
	XID           int64      `json:"xid,omitempty" doc:"the last error that the driver told"`
	XIDAt         *time.Time `json:"xid_at,omitempty"`
	Sharing       string     `json:"sharing" enum:"exclusive,time-slicing,mps,mig" doc:"as it is wanted"`
	Applied       string     `json:"applied,omitempty" doc:"as it is in effect, by its agent's word"`
	Changing      bool       `json:"changing" doc:"what is wanted is not in effect yet"`
	Layout        []string   `json:"layout" doc:"wanted MIG instances, by profile"`
	MIGProfiles   []string   `json:"mig_profiles" doc:"that it can be cut into"`
	ParentID      *int64     `json:"parent_id,omitempty" doc:"of a MIG instance its GPU"`
	Profile       string     `json:"profile,omitempty" doc:"of a MIG instance"`
	Cores         int64      `json:"cores" doc:"of 100; less on a MIG instance"`
	Mixed         bool       `json:"mixed" doc:"fractions of different projects may share it"`
	Lent          bool       `json:"lent" doc:"its owner's terms lend it to somebody"`
	FreeCores     int64      `json:"free_cores" doc:"of 100"`
	FreeMemoryMiB int64      `json:"free_memory_mib"`
	Measured      *Measured  `json:"measured,omitempty" doc:"the last that was measured; absent: nothing was yet"`
	MayManage     bool       `json:"may_manage" doc:"you may set how it is shared"`
	Shares        []Share    `json:"shares" doc:"in use now"`
}

// Measured is what was last measured of a device.
type Measured struct {
	At            time.Time           `json:"at"`
	Utilisation   int64               `json:"utilisation" doc:"percent"`
	MemoryUsedMiB int64               `json:"memory_used_mib"`
	Temperature   int64               `json:"temperature" doc:"°C"`
	PowerMW       int64               `json:"power_mw" doc:"milliwatts"`
	Processes     []models.GPUProcess `json:"processes" doc:"told to who may manage the provider, or see all shares that are in use there"`
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
	Enforcement string     `json:"enforcement" enum:"exclusive,mig,mps,advisory,lapsed" doc:"exclusive: the whole device; mig: an instance that the hardware keeps apart; mps: limits kept by NVIDIA's Multi-Process Service; advisory: stated to the holder, not limited by anything; lapsed: advisory until the daemon of the Multi-Process Service is back"`
	From        time.Time  `json:"from"`
	Until       *time.Time `json:"until,omitempty" doc:"absent while it is in use"`
	EndsAt      *time.Time `json:"ends_at,omitempty" doc:"the end that the provider's owner has set"`
	EndReason   string     `json:"end_reason,omitempty"`
}

func deviceOf(d pool.DeviceView) Device {
	v := Device{ID: d.ID, ProviderID: d.ProviderID, Provider: d.ProviderName, Number: d.Number, UUID: d.UUID, Model: d.Model, MemoryMiB: d.MemoryMiB,
		Architecture: d.Architecture, PCI: d.PCI, Driver: d.Driver, Peers: append([]string{}, d.Peers...), Simulated: d.Simulated, Present: d.Present,
		Trouble: d.Trouble.String(), ECC: d.ECC, ECCErrors: d.ECCErrors, XID: d.XID, XIDAt: utc(d.XIDAt), Sharing: d.Sharing, Applied: d.Applied,
		Changing: d.Changing(), Layout: append([]string{}, d.Layout...), MIGProfiles: append([]string{}, d.MIGProfiles...), ParentID: d.ParentID,
		Profile: d.Profile, Cores: d.Cores, Mixed: d.Mixed, Lent: d.Lent, FreeCores: d.FreeCores, FreeMemoryMiB: d.FreeMemoryMiB,
		MayManage: d.Manage, Shares: shown(d.Shares, shareOf)}
	if d.NUMA >= 0 {
		v.NUMA = &d.NUMA
	}
	if m := d.Measured; m != nil {
		v.Measured = &Measured{m.At.UTC(), m.Utilisation, m.MemoryUsedMiB, m.Temperature, m.PowerMW, append([]models.GPUProcess{}, m.Processes...)}
	}
	return v
}

func shareOf(s pool.ShareView) Share {
	return Share{Anonymous: s.Anonymous, WorkspaceID: s.WorkspaceID, Workspace: s.WorkspaceName, ProjectID: s.ProjectID, Project: s.ProjectName,
		UserID: s.UserID, User: s.UserName, Cores: s.Cores, MemoryMiB: s.MemoryMiB, Enforcement: s.Enforcement,
		From: s.From.UTC(), Until: utc(s.Until), EndsAt: utc(s.EndsAt), EndReason: s.EndReason.String()}
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

func (a rest) updateDevice(ctx context.Context, in *Update[providers.DeviceInput]) (*Found[DeviceHistory], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	if _, err := a.Providers.SetSharing(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	a.Wake()
	return a.getDevice(ctx, &in.ByID)
}

// TelemetryQuery asks for what was measured over a span.
type TelemetryQuery struct {
	ByID
	Span string `query:"span" enum:"hour,day,months" default:"hour" doc:"the last hour by 5 seconds, day by minutes, or 90 days by hours"`
}

// Telemetry is what was measured of a device.
type Telemetry struct {
	Span    string   `json:"span"`
	Buckets []Bucket `json:"buckets" doc:"oldest first"`
}

// Bucket is what was measured in one span of time.
type Bucket struct {
	At      time.Time `json:"at" doc:"its beginning"`
	Seconds int64     `json:"seconds" doc:"its length"`
	Samples int64     `json:"samples"`
	Mean    Amounts   `json:"mean"`
	Most    Amounts   `json:"max"`
}

// Amounts are what is measured of a device.
type Amounts struct {
	Utilisation   int64 `json:"utilisation" doc:"percent"`
	MemoryUsedMiB int64 `json:"memory_used_mib"`
	Temperature   int64 `json:"temperature" doc:"°C"`
	PowerMW       int64 `json:"power_mw" doc:"milliwatts"`
}

func bucketOf(t models.Telemetry) Bucket {
	n := max(t.Samples, 1)
	return Bucket{At: t.At.UTC(), Seconds: t.Step, Samples: t.Samples,
		Mean: Amounts{t.UtilisationSum / n, t.MemorySum / n, t.TemperatureSum / n, t.PowerSum / n},
		Most: Amounts{t.UtilisationMax, t.MemoryMax, t.TemperatureMax, t.PowerMax}}
}

func (a rest) getTelemetry(ctx context.Context, in *TelemetryQuery) (*Response[Telemetry], error) {
	buckets, err := a.Providers.History(ctx, actorOf(ctx), in.ID, in.Span)
	if err != nil {
		return nil, err
	}
	return &Response[Telemetry]{Telemetry{in.Span, shown(buckets, bucketOf)}}, nil
}
