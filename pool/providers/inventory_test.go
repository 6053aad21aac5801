package providers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// A machine whose identity has changed is still the same machine, with the
// shares that are held on it.
func TestTheMachineChangesItsIdentity(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		p := o.Provider(t)
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		anew := providers.Host{Name: "other", Digest: providers.MachineDigest("anew")}
		if err := o.Providers.Enlist(o.Ctx, anew, pooltest.Machine(2)); err != nil {
			t.Fatal(err)
		}
		if now := o.Provider(t); now.ID != p.ID || now.Machine != anew.Digest || now.State != models.ProviderOnline {
			t.Errorf("it is %+v", now)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)

		// Other GPUs are another machine; what is held on the former is kept.
		moved := providers.Host{Name: "third", Digest: providers.MachineDigest("third")}
		if err := o.Providers.Enlist(o.Ctx, moved, pooltest.Machine(0)); err != nil {
			t.Fatal(err)
		}
		q := o.Store.Read(o.Ctx)
		if former, err := q.Provider(p.ID); err != nil || former.State == models.ProviderOffline {
			t.Errorf("the former is %+v, %v", former, err)
		}
		if inUse, err := q.OpenSharesAt(p.ID); err != nil || inUse != 2 {
			t.Errorf("%d shares are in use there, %v", inUse, err)
		}
	})
}

// Who holds a GPU is told when it vanishes, fails and is back; who holds
// another is not.
func TestUsersAreNotifiedOfTheirGPU(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		w := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		o.Enlist(t, pooltest.Machine(2))
		other := o.WantClaim(t, m, models.Demand{GPUs: 1, Cores: 100}, models.OutcomeGranted)
		broken := pooltest.Machine(2)
		broken[0].Trouble = "fell off the bus"
		for _, step := range []struct {
			devices pooltest.Devices
			says    string
		}{
			{broken, "failed: the driver reports: fell off the bus"},
			{broken[1:], "is no longer reported"},
			{pooltest.Machine(2), "is back"},
			{broken, "failed: "},
			{pooltest.Machine(2), "has recovered"},
		} {
			before := o.CountEvents(t, w, step.says)
			for range 2 {
				o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(step.devices)})
			}
			if n := o.CountEvents(t, w, step.says); n != before+1 {
				t.Errorf("that it %s is told %d times", step.says, n-before)
			}
			if n := o.CountEvents(t, other, step.says); n != 0 {
				t.Errorf("that it %s is told to who holds another", step.says)
			}
		}
	})
}

// Instances come and go with each cut; what nobody ever held leaves no row.
func TestInstancesThatNobodyHeldAreForgotten(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		for i := range 5 {
			cut := pooltest.Machine(1)
			cut[0].Sharing = models.SharingMIG
			uuid := fmt.Sprintf("MIG-%d", i)
			cut = append(cut, providers.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: cut[0].Model, MemoryMiB: 40_000, NUMA: -1})
			o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(cut), Samples: []providers.Sample{{UUID: uuid, Utilisation: 1}}})
		}
		devices, err := o.Store.Read(o.Ctx).DevicesOf(o.Provider(t).ID)
		if err != nil || len(devices) != 2 || devices[1].UUID != "MIG-4" {
			t.Errorf("%+v, %v", devices, err)
		}
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 1})
		if err != nil || len(entries) != 1 || entries[0].Action != "update" || strings.Contains(entries[0].Before+entries[0].After, `"GPU-0"`) ||
			!strings.Contains(entries[0].Before, "MIG-3") || !strings.Contains(entries[0].After, "MIG-4") {
			t.Errorf("the last entry is %+v, %v", entries, err)
		}
	})
}

// A list is not read further than one beat may go.
func TestListsAreBounded(t *testing.T) {
	many := func(n int) string { return "[" + strings.Repeat("{},", n) + "{}]" }
	for text, field := range map[string]string{
		`{"devices":` + many(127) + `,"samples":null,"faults":[]}`: "",
		`{"devices":` + many(128) + `}`:                            "devices",
		`{"devices":{}}`:                                           "devices",
		`{"samples":` + many(100_000) + `}`:                        "samples",
		`{"faults":` + many(10_000) + `}`:                          "faults",
	} {
		var b providers.Heartbeat
		err := json.Unmarshal([]byte(text), &b)
		if field != "" {
			refused(t, field, err, models.KindInvalid, field)
		} else if err != nil || len(b.Devices) != 128 {
			t.Errorf("%d devices, %v", len(b.Devices), err)
		}
	}
	var b providers.Heartbeat
	if err := json.Unmarshal([]byte(`{"token":"t","gpu_code":"c","devices":[{"uuid":"x"},7]}`), &b); err == nil {
		t.Error("a number was taken for a device")
	}
	if err := json.Unmarshal([]byte(`{"token":"t","gpu_code":"c","samples":[{"uuid":"x","age":5}]}`), &b); err != nil || b.Token != "t" || b.GPUCode != "c" || b.Samples[0].Age != 5 {
		t.Errorf("%+v, %v", b, err)
	}
}

type broken struct{}

func (broken) Devices(context.Context) ([]providers.DeviceReport, error) {
	return nil, errors.New("the driver does not answer")
}

func TestEnlist(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(3))
		first := o.DevicesByUUID(t)
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, first["GPU-1"].ID, providers.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(time.Hour)
		changed := pooltest.Machine(4)[1:] // the first has vanished, a fourth has come
		changed[1].Driver = "new"
		o.Enlist(t, changed)
		now := o.DevicesByUUID(t)
		if len(now) != 4 || now["GPU-0"].Present || !now["GPU-3"].Present || now["GPU-2"].Driver != "new" {
			t.Errorf("devices: %+v", now)
		}
		if d := now["GPU-1"]; !d.Exclusive() || d.ID != first["GPU-1"].ID || !d.CreatedAt.Equal(first["GPU-1"].CreatedAt) {
			t.Errorf("what an administrator had set is gone: %+v", d)
		}
		o.Enlist(t, pooltest.Machine(4))
		if d := o.DevicesByUUID(t)["GPU-0"]; !d.Present || d.ID != first["GPU-0"].ID {
			t.Errorf("the first is back: %+v", d)
		}
		if err := o.Providers.Enlist(o.Ctx, providers.Host{Name: "node", Digest: providers.MachineDigest("node")}, broken{}); err == nil {
			t.Error("a broken inventory was enlisted")
		}
		if totals, err := o.Totals(); err != nil || totals.GPUs != 4 || totals.FreeCores != 400 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// A GPU is in one provider at a time.
func TestGPUMovesOnlyWhenItWasTakenOut(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(2))
		p := o.Provider(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			p.Agent = true
			return q.UpdateProvider(&p)
		})
		elsewhere := providers.Host{Name: "node", Digest: providers.MachineDigest("another")}
		if err := o.Providers.Enlist(o.Ctx, elsewhere, pooltest.Machine(1)); err != nil { // the portal starts without it
			t.Fatal(err)
		}
		q := o.Store.Read(o.Ctx)
		if other, err := q.ProviderByMachine(elsewhere.Digest); err != nil || !strings.Contains(other.Reason.String(), "GPU-0") {
			t.Errorf("%+v, %v", other, err)
		}
		if d, err := q.DeviceByUUID("GPU-0"); err != nil || d.ProviderID != p.ID {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := o.Providers.Remove(o.Ctx, o.Root, p.ID, 0); err != nil {
			t.Fatal(err)
		}
		if err := o.Providers.Enlist(o.Ctx, elsewhere, pooltest.Machine(1)); err != nil {
			t.Fatal(err)
		}
		moved, err := o.Store.Read(o.Ctx).DeviceByUUID("GPU-0")
		if err != nil || moved.ProviderID == p.ID || !moved.Present {
			t.Errorf("%+v, %v", moved, err)
		}
		if other, err := o.Store.Read(o.Ctx).Provider(moved.ProviderID); err != nil || other.Name != "node-2" {
			t.Errorf("%+v, %v", other, err)
		}
	})
}
