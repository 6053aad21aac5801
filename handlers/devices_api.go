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
	register(a, s, route{http.MethodGet, "/pool/devices/{id}", 200, "get-device", models.Say("Get a device and its share history")},
		a.getDevice)
	register(a, s, route{http.MethodPut, "/pool/devices/{id}", 200, "update-device",
		models.Say("Update the sharing mode of a device; requires the provider's owner or platform administrator")}, a.updateDevice)
	register(a, s, route{http.MethodGet, "/pool/devices/{id}/telemetry", 200, "get-telemetry",
		models.Say("Get device telemetry; periods without measurements have no buckets")}, a.getTelemetry)
}

// Device is a GPU, or a MIG instance of one.
type Device struct {
	ID            int64      `json:"id"`
	ProviderID    int64      `json:"provider_id"`
	Provider      string     `json:"provider"`
	Number        int64      `json:"number" doc:"device index on the machine, from 0; for a MIG instance the index of its GPU"`
	UUID          string     `json:"uuid"`
	Model         string     `json:"model"`
	MemoryMiB     int64      `json:"memory_mib"`
	Architecture  string     `json:"architecture,omitempty"`
	PCI           string     `json:"pci,omitempty"`
	Driver        string     `json:"driver,omitempty"`
	NUMA          *int64     `json:"numa,omitempty" doc:"NUMA node; absent if unknown"`
	Peers         []string   `json:"peers" doc:"UUIDs of GPUs connected by NVLink"`
	Simulated     bool       `json:"simulated" doc:"simulated device"`
	Present       bool       `json:"present" doc:"reported by the driver"`
	Trouble       string     `json:"trouble,omitempty" doc:"reason that the device is not schedulable"`
	ECC           string     `json:"ecc,omitempty" doc:"ECC mode, on or off; absent if unknown"`
	ECCErrors     int64      `json:"ecc_errors" doc:"uncorrected ECC errors since the driver started"`
	XID           int64      `json:"xid,omitempty" doc:"last XID error code"`
	XIDAt         *time.Time `json:"xid_at,omitempty"`
	Sharing       string     `json:"sharing" enum:"exclusive,time-slicing,mps,mig" doc:"desired sharing mode"`
	Applied       string     `json:"applied,omitempty" doc:"current sharing mode reported by the agent"`
	Changing      bool       `json:"changing" doc:"the desired sharing mode is not applied yet"`
	SharingError  string     `json:"sharing_error,omitempty" doc:"reason that the desired sharing mode is not applied, as the agent reports it"`
	Layout        []string   `json:"layout" doc:"desired MIG profiles"`
	MIGProfiles   []string   `json:"mig_profiles" doc:"supported MIG profiles"`
	ParentID      *int64     `json:"parent_id,omitempty" doc:"GPU of a MIG instance"`
	Profile       string     `json:"profile,omitempty" doc:"MIG profile"`
	Cores         int64      `json:"cores" doc:"GPU cores; fewer than 100 on a MIG instance"`
	Mixed         bool       `json:"mixed" doc:"can be shared by several projects"`
	Lent          bool       `json:"lent" doc:"available to at least one project under the terms"`
	FreeCores     int64      `json:"free_cores" doc:"available GPU cores"`
	FreeMemoryMiB int64      `json:"free_memory_mib"`
	Measured      *Measured  `json:"measured,omitempty" doc:"latest report of the GPU, made up if it is simulated; absent if none"`
	MayManage     bool       `json:"may_manage" doc:"you can change the sharing mode"`
	Shares        []Share    `json:"shares" doc:"current shares"`
}

// Measured is the last measurement of a device.
type Measured struct {
	At            time.Time           `json:"at"`
	Utilisation   int64               `json:"utilization" doc:"utilization, percent"`
	MemoryUsedMiB int64               `json:"memory_used_mib"`
	Temperature   int64               `json:"temperature" doc:"temperature, °C"`
	PowerMW       int64               `json:"power_mw" doc:"power, milliwatts"`
	Processes     []models.GPUProcess `json:"processes" doc:"processes; visible if you can manage the provider or view all of its shares"`
}

// Share is a part of a device. Of a project that the actor may not see, it contains
// only the size.
type Share struct {
	Anonymous   bool   `json:"anonymous"`
	WorkspaceID int64  `json:"workspace_id,omitempty"`
	Workspace   string `json:"workspace,omitempty"`
	RunID       int64  `json:"run_id,omitempty" doc:"run ID"`

	DeploymentID int64      `json:"deployment_id,omitempty" doc:"deployment ID"`
	Deployment   string     `json:"deployment,omitempty" doc:"name of the deployment"`
	Run          string     `json:"run,omitempty" doc:"program of the run"`
	ProjectID    int64      `json:"project_id,omitempty"`
	Project      string     `json:"project,omitempty"`
	UserID       int64      `json:"user_id,omitempty"`
	User         string     `json:"user,omitempty"`
	Cores        int64      `json:"cores"`
	MemoryMiB    int64      `json:"memory_mib"`
	Enforcement  string     `json:"enforcement" enum:"exclusive,mig,mps,advisory,lapsed" doc:"exclusive: the whole device; mig: a hardware-isolated instance; mps: limits enforced by NVIDIA MPS; advisory: limits not enforced; lapsed: not enforced until the MPS daemon restarts"`
	Utilisation  *int64     `json:"utilization,omitempty" doc:"percent of the simulated GPU that it uses, by the CPU time of what runs in it; absent if unknown"`
	From         time.Time  `json:"from"`
	Until        *time.Time `json:"until,omitempty" doc:"end; absent while in use"`
	EndsAt       *time.Time `json:"ends_at,omitempty" doc:"end set by the provider's owner"`
	EndReason    string     `json:"end_reason,omitempty"`
}

func deviceOf(d pool.DeviceView) Device {
	v := Device{ID: d.ID, ProviderID: d.ProviderID, Provider: d.ProviderName, Number: d.Number, UUID: d.UUID, Model: d.Model,
		MemoryMiB: d.MemoryMiB, Architecture: d.Architecture, PCI: d.PCI, Driver: d.Driver, Peers: append([]string{},
			d.Peers...), Simulated: d.Simulated, Present: d.Present,
		Trouble: d.Trouble.String(), ECC: d.ECC, ECCErrors: d.ECCErrors, XID: d.XID, XIDAt: utc(d.XIDAt), Sharing: d.Sharing, Applied: d.Applied,
		SharingError: d.SharingError, Changing: d.Changing(), Layout: append([]string{}, d.Layout...),
		MIGProfiles: append([]string{}, d.MIGProfiles...), ParentID: d.ParentID, Profile: d.Profile,
		Cores: d.Cores, Mixed: d.Mixed, Lent: d.Lent, FreeCores: d.FreeCores, FreeMemoryMiB: d.FreeMemoryMiB,
		MayManage: d.Manage, Shares: models.Map(d.Shares, shareOf)}
	if d.NUMA >= 0 {
		v.NUMA = &d.NUMA
	}
	if m := d.Measured; m != nil {
		v.Measured = &Measured{m.At.UTC(), m.Utilisation, m.MemoryUsedMiB, m.Temperature, m.PowerMW,
			append([]models.GPUProcess{}, m.Processes...)}
	}
	return v
}

func shareOf(s pool.ShareView) Share {
	v := Share{Anonymous: s.Anonymous, ProjectID: s.ProjectID, Project: s.ProjectName,
		UserID: s.UserID, User: s.UserName, Cores: s.Cores, MemoryMiB: s.MemoryMiB, Enforcement: s.Enforcement, Utilisation: s.Utilisation,
		From: s.From.UTC(), Until: utc(s.Until), EndsAt: utc(s.EndsAt), EndReason: s.EndReason.String()}
	switch s.Kind {
	case models.HolderWorkspace:
		v.WorkspaceID, v.Workspace = s.ObjectID, s.Name
	case models.HolderRun:
		v.RunID, v.Run = s.ObjectID, s.Name
	case models.HolderDeployment:
		v.DeploymentID, v.Deployment = s.ObjectID, s.Name
	}
	return v
}

// DeviceHistory is a device with its latest shares.
type DeviceHistory struct {
	Device
	History []Share `json:"history" doc:"past shares, newest first"`
}

func (a rest) getDevice(ctx context.Context, in *ByID) (*Found[DeviceHistory], error) {
	d, history, err := a.Pool.Device(ctx, actorOf(ctx), in.ID)
	return found(d.Version, DeviceHistory{deviceOf(d), models.Map(history, shareOf)}, err)
}

func (a rest) updateDevice(ctx context.Context, in *Update[providers.DeviceInput]) (*Found[DeviceHistory], error) {
	in.Body.Version = in.version
	if _, err := a.Providers.SetSharing(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getDevice(ctx, &in.ByID)
}

// TelemetryQuery selects the measurements of a time span.
type TelemetryQuery struct {
	ByID
	Span string `query:"span" enum:"hour,day,week,month,months" default:"hour" doc:"hour: 5-second buckets; day: 1-minute buckets; week, month and months, which are 90 days: 1-hour buckets"`
}

// Telemetry is the measurements of a device.
type Telemetry struct {
	Span    string   `json:"span"`
	Buckets []Bucket `json:"buckets" doc:"buckets, oldest first"`
}

// Bucket aggregates the measurements of an interval.
type Bucket struct {
	At      time.Time `json:"at" doc:"start of the bucket"`
	Seconds int64     `json:"seconds" doc:"length of the bucket, seconds"`
	Samples int64     `json:"samples"`
	Mean    Amounts   `json:"mean"`
	Most    Amounts   `json:"max"`
}

// Amounts are the measured values of a device.
type Amounts struct {
	Utilisation   int64 `json:"utilization" doc:"utilization, percent"`
	MemoryUsedMiB int64 `json:"memory_used_mib"`
	Temperature   int64 `json:"temperature" doc:"temperature, °C"`
	PowerMW       int64 `json:"power_mw" doc:"power, milliwatts"`
}

func bucketOf(t models.Telemetry) Bucket {
	n := max(t.Samples, 1)
	return Bucket{At: t.At.UTC(), Seconds: t.Step, Samples: t.Samples,
		Mean: Amounts{t.UtilisationSum / n, t.MemorySum / n, t.TemperatureSum / n, t.PowerSum / n},
		Most: Amounts{t.UtilisationMax, t.MemoryMax, t.TemperatureMax, t.PowerMax}}
}

func (a rest) getTelemetry(ctx context.Context, in *TelemetryQuery) (*Response[Telemetry], error) {
	buckets, err := a.Providers.History(ctx, actorOf(ctx), in.ID, in.Span)
	return &Response[Telemetry]{Telemetry{in.Span, models.Map(buckets, bucketOf)}}, err
}
