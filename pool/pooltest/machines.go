package pooltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/providers"
)

// Devices is an inventory that reports what it is told: the real ones cannot
// lose a device on demand.
type Devices []providers.DeviceReport

// Devices reports what the inventory was told.
func (d Devices) Devices(context.Context) ([]providers.DeviceReport, error) { return d, nil }

// Machine is a machine with n GPUs.
func Machine(n int) (d Devices) {
	for i := range n {
		d = append(d, providers.DeviceReport{UUID: fmt.Sprintf("GPU-%d", i), Index: i, Minor: i, Model: "NVIDIA H100 80GB HBM3",
			MemoryMiB: 80_000, Simulated: true})
	}
	return d
}

// Enlist makes a machine the provider "node".
func (w *World) Enlist(t *testing.T, d providers.Inventory) {
	t.Helper()
	if err := w.Providers.Enlist(w.Ctx, providers.Host{Name: "node", Digest: providers.MachineDigest("node")}, d); err != nil {
		t.Fatal(err)
	}
}

// Provider is the only one.
func (w *World) Provider(t *testing.T) models.Provider {
	t.Helper()
	providers, err := w.Store.Read(w.Ctx).Providers()
	if err != nil || len(providers) != 1 {
		t.Fatalf("%d providers, %v", len(providers), err)
	}
	return providers[0]
}

// DevicesByUUID are those of the only provider.
func (w *World) DevicesByUUID(t *testing.T) map[string]models.Device {
	t.Helper()
	all, err := w.Store.Read(w.Ctx).DevicesOf(w.Provider(t).ID)
	if err != nil {
		t.Fatal(err)
	}
	byUUID := map[string]models.Device{}
	for _, d := range all {
		byUUID[d.UUID] = d
	}
	return byUUID
}

// Heartbeat lets this machine speak for itself.
func (w *World) Heartbeat(t *testing.T, b providers.Heartbeat) providers.Orders {
	t.Helper()
	orders, err := w.Providers.Report(w.Ctx, b)
	if err != nil {
		t.Fatal(err)
	}
	return orders
}

// Claim makes a workspace and asks for its shares; whoever gets none has none.
func (w *World) Claim(t *testing.T, m models.Member, d models.Demand) (models.Workspace, models.Decision) {
	t.Helper()
	return w.ClaimFor(t, m, d, 0)
}

// ClaimFor claims as Claim does, for what has a time limit.
func (w *World) ClaimFor(t *testing.T, m models.Member, d models.Demand, limit time.Duration) (models.Workspace, models.Decision) {
	t.Helper()
	row := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: w.Environment(t),
		Name:  policies.NewSecret(),
		State: models.StateStarting, Demand: d, Version: 1, RequestedAt: w.Store.Now()}
	var decision models.Decision
	err := w.Store.InTx(w.Ctx, func(q *store.Queries) (err error) {
		row.ID = 0
		if err := q.CreateWorkspace(&row, models.Text{}); err != nil {
			return err
		}
		claim := row.Claim()
		claim.TimeLimitSeconds = int64(limit / time.Second)
		decision, err = w.Pool.Claim(q, claim)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return row, decision
}
