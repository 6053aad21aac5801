package pool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"weir/models"
	"weir/pool"
	"weir/pool/pooltest"
)

// A machine whose identity has changed is still the same machine, with the
// shares that are held on it.
func TestTheMachineChangesItsIdentity(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		p := o.Provider(t)
		o.outcome(t, m, half, models.OutcomeGranted)
		anew := pool.Host{Name: "other", Digest: pool.MachineDigest("anew")}
		if err := o.Pool.Enlist(o.Ctx, anew, pooltest.Machine(2)); err != nil {
			t.Fatal(err)
		}
		if now := o.Provider(t); now.ID != p.ID || now.Machine != anew.Digest || now.State != models.ProviderOnline {
			t.Errorf("it is %+v", now)
		}
		o.outcome(t, m, half, models.OutcomeGranted)

		// Other GPUs are another machine; what is held on the former is kept.
		moved := pool.Host{Name: "third", Digest: pool.MachineDigest("third")}
		if err := o.Pool.Enlist(o.Ctx, moved, pooltest.Machine(0)); err != nil {
			t.Fatal(err)
		}
		q := o.Store.Read(o.Ctx)
		if former, err := q.Provider(p.ID); err != nil || former.State == models.ProviderOffline {
			t.Errorf("the former is %+v, %v", former, err)
		}
		if held, err := q.HeldAt(p.ID); err != nil || held != 2 {
			t.Errorf("%d shares are held there, %v", held, err)
		}
	})
}

// Who holds a GPU is told when it vanishes, fails and is back; who holds
// another is not.
func TestHoldersAreToldOfTheirGPU(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		w := o.outcome(t, m, half, models.OutcomeGranted)
		o.Enlist(t, pooltest.Machine(2))
		other := o.outcome(t, m, models.Demand{GPUs: 1, Cores: 100}, models.OutcomeGranted)
		broken := pooltest.Machine(2)
		broken[0].Trouble = "fell off the bus"
		for _, step := range []struct {
			devices pooltest.Devices
			says    string
		}{
			{broken, "has failed: the driver says: fell off the bus"},
			{broken[1:], "has vanished"},
			{pooltest.Machine(2), "is back"},
			{broken, "has failed"},
			{pooltest.Machine(2), "is well again"},
		} {
			before := o.told(t, w, step.says)
			for range 2 {
				o.Heartbeat(t, pool.Beat{Devices: step.devices})
			}
			if n := o.told(t, w, step.says); n != before+1 {
				t.Errorf("that it %s is told %d times", step.says, n-before)
			}
			if n := o.told(t, other, step.says); n != 0 {
				t.Errorf("that it %s is told to who holds another", step.says)
			}
		}
	})
}

// Instances come and go with each cut; what nobody ever held leaves no row.
func TestInstancesThatNobodyHeldAreForgotten(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, pooltest.Machine(1))
		for i := range 5 {
			cut := pooltest.Machine(1)
			cut[0].Sharing = models.SharingMIG
			uuid := fmt.Sprintf("MIG-%d", i)
			cut = append(cut, pool.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: cut[0].Model, MemoryMiB: 40_000, NUMA: -1})
			o.Heartbeat(t, pool.Beat{Devices: cut, Samples: []pool.Sample{{UUID: uuid, Utilisation: 1}}})
		}
		devices, err := o.Store.Read(o.Ctx).DevicesOf(o.Provider(t).ID)
		if err != nil || len(devices) != 2 || devices[1].UUID != "MIG-4" {
			t.Errorf("%+v, %v", devices, err)
		}
		entries, err := o.Store.Read(o.Ctx).Audit(models.AuditFilter{}, models.Page{Limit: 1})
		if err != nil || len(entries) != 1 || entries[0].Action != "enlist" || strings.Contains(entries[0].Before+entries[0].After, `"GPU-0"`) ||
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
		var b pool.Beat
		err := json.Unmarshal([]byte(text), &b)
		if field != "" {
			refused(t, field, err, models.KindInvalid, field)
		} else if err != nil || len(b.Devices) != 128 {
			t.Errorf("%d devices, %v", len(b.Devices), err)
		}
	}
	var b pool.Beat
	if err := json.Unmarshal([]byte(`{"token":"t","gpu_code":"c","devices":[{"uuid":"x"},7]}`), &b); err == nil {
		t.Error("a number was taken for a device")
	}
	if err := json.Unmarshal([]byte(`{"token":"t","gpu_code":"c","samples":[{"uuid":"x","age":5}]}`), &b); err != nil || b.Token != "t" || b.GPUCode != "c" || b.Samples[0].Age != 5 {
		t.Errorf("%+v, %v", b, err)
	}
}
