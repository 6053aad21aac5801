package providers_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

func TestTelemetryAndFaults(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		device := o.DevicesByUUID(t)["GPU-0"]
		before, _, err := o.Pool.Device(o.Ctx, o.Root, device.ID) // the pool is cached from here on
		if err != nil || before.XID != 0 {
			t.Fatalf("%+v, %v", before, err)
		}
		o.Clock.Advance(time.Second)
		sample := func(age time.Duration, util int64) providers.Sample {
			return providers.Sample{UUID: "GPU-0", Age: age, Utilisation: util, MemoryUsedMiB: 100, Temperature: 50, PowerMW: 70_000}
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Samples: []providers.Sample{sample(10*time.Second, 20), sample(0, 40), sample(-time.Hour, 40), {UUID: "GPU-9"}},
			Faults: []providers.Fault{{UUID: "GPU-0", XID: 79, Age: time.Minute}}})
		view, _, err := o.Pool.Device(o.Ctx, o.Root, device.ID)
		if err != nil || view.Measured == nil || view.Measured.Utilisation != 40 || view.XID != 79 || !view.XIDAt.Equal(o.Store.Now().Add(-time.Minute)) {
			t.Fatalf("%+v, %v", view, err)
		}
		if p, err := o.Pool.Provider(o.Ctx, o.Root, device.ProviderID); err != nil || !p.SeenAt.Equal(o.Store.Now()) {
			t.Errorf("last heartbeat at %s, %v", p.SeenAt, err)
		}
		for span, samples := range map[string]int64{providers.LastHour: 3, providers.LastDay: 3, providers.LastMonths: 3} {
			history, err := o.Providers.History(o.Ctx, o.Root, device.ID, span)
			n := int64(0)
			for _, b := range history {
				n += b.Samples
				if b.At.After(o.Store.Now()) {
					t.Errorf("%s: a bucket of the future: %+v", span, b)
				}
			}
			if err != nil || n != samples {
				t.Errorf("%s: %d samples, %v", span, n, err)
			}
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.History(o.Ctx, o.Root, device.ID, "year")), models.KindInvalid, "span")
		pooltest.WantError(t, pooltest.Error(o.Providers.History(o.Ctx, o.Root, 99, providers.LastHour)), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Providers.History(o.Ctx, policies.Actor{}, device.ID, providers.LastHour)), models.KindUnauthenticated)
		if v, err := o.Pool.View(o.Ctx, o.Root); err != nil || v.Computing != 40 {
			t.Errorf("computing %d, %v", v.Computing, err)
		}
	})
}

// A year of samples takes no more rows than the rings have.
func TestTelemetryIsBounded(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		device := o.DevicesByUUID(t)["GPU-0"].ID
		for range 60 {
			var samples []providers.Sample
			for i := range 300 {
				samples = append(samples, providers.Sample{UUID: "GPU-0", Age: time.Duration(i) * 29 * time.Minute})
			}
			o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Samples: samples})
			o.Clock.Advance(6 * 24 * time.Hour)
		}
		q := o.Store.Read(o.Ctx)
		for step, length := range map[int64]int{5: 720, 60: 1440, 3600: 2160} {
			list, err := q.Telemetry(device, step, time.Time{})
			if err != nil || len(list) == 0 || len(list) > length {
				t.Errorf("%d rows of %d seconds, %v", len(list), step, err)
			}
		}
	})
}

// What a machine has measured in a month may come at once, the newest first or
// last: of two moments that have one place the newer is kept.
func TestTelemetryOfAMonthAtOnce(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		device := o.DevicesByUUID(t)["GPU-0"].ID
		samples := []providers.Sample{{UUID: "GPU-0", Age: time.Hour, Utilisation: 90}, {UUID: "GPU-0", Utilisation: 10}, {UUID: "GPU-0", Age: time.Hour, Utilisation: 90}}
		for age := time.Duration(0); age < 30*24*time.Hour; age += 20 * time.Minute {
			samples = append(samples, providers.Sample{UUID: "GPU-0", Age: age, Utilisation: 10})
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Samples: samples})
		list, err := o.Store.Read(o.Ctx).Telemetry(device, 5, time.Time{})
		now := 0
		for _, b := range list {
			if o.Store.Now().Sub(b.At) < 5*time.Second {
				now++
				if b.Samples != 2 || b.UtilisationMax != 10 {
					t.Errorf("now there is %+v", b)
				}
			}
		}
		if err != nil || now != 1 {
			t.Errorf("%d buckets of now among %d, %v", now, len(list), err)
		}
	})
}

// Faults change nothing that people set, and of many the newest counts.
func TestFaultsKeepTheVersion(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		before := o.DevicesByUUID(t)["GPU-0"]
		faults := []providers.Fault{{UUID: "GPU-0", XID: 1, Age: time.Hour}, {UUID: "GPU-0", XID: 2}, {UUID: "GPU-0", XID: 3, Age: time.Minute}, {UUID: "GPU-9", XID: 4}}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Faults: faults})
		if d := o.DevicesByUUID(t)["GPU-0"]; d.Version != before.Version || d.XID != 2 {
			t.Errorf("%+v", d)
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Faults: faults[2:3]})
		if d := o.DevicesByUUID(t)["GPU-0"]; d.XID != 2 {
			t.Errorf("an older fault has taken the place of a newer: %+v", d)
		}
	})
}
