package store_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestTelemetryRings(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		device := addDevice(t, s)
		start := s.Now().Truncate(time.Minute)
		bucket := func(at time.Time, util int64) models.Telemetry {
			return models.Telemetry{DeviceID: device, Step: 60, Slot: at.Unix() / 60 % 3, At: at, Samples: 1, UtilisationSum: util, UtilisationMax: util,
				MemorySum: 10, MemoryMax: 10, TemperatureSum: 40, TemperatureMax: 40, PowerSum: 100, PowerMax: 100}
		}
		add := func(list ...models.Telemetry) {
			storetest.InTx(t, s, func(q *store.Queries) error { return q.AddTelemetry(list) })
		}
		read := func() []models.Telemetry {
			list, err := s.Read(t.Context()).Telemetry(device, 60, start.Add(-time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		add(bucket(start, 20))
		add(bucket(start, 60), bucket(start.Add(time.Minute), 5))
		got := read()
		if len(got) != 2 || got[0].Samples != 2 || got[0].UtilisationSum != 80 || got[0].UtilisationMax != 60 || got[0].MemorySum != 20 || got[1].UtilisationMax != 5 {
			t.Fatalf("added up: %+v", got)
		}
		add(bucket(start, 10))
		if got = read(); got[0].UtilisationMax != 60 || got[0].Samples != 3 {
			t.Errorf("a smaller one took the maximum: %+v", got[0])
		}
		add(bucket(start.Add(2*time.Minute), 1), bucket(start.Add(3*time.Minute), 2)) // the fourth takes the first's place
		if got = read(); len(got) != 3 || !got[0].At.Equal(start.Add(time.Minute)) || got[2].UtilisationMax != 2 || got[2].Samples != 1 {
			t.Errorf("the ring has %+v", got)
		}
		add(bucket(start, 99)) // came after its place was taken
		if got = read(); len(got) != 3 || got[2].UtilisationMax != 2 {
			t.Errorf("what came too late counts: %+v", got)
		}
	})
}

func TestNewestStateIsKept(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		device := addDevice(t, s)
		save := func(age time.Duration, util int64) {
			storetest.InTx(t, s, func(q *store.Queries) error {
				return q.SaveStates([]models.DeviceState{{DeviceID: device, At: q.Now().Add(-age), Utilisation: util,
					Processes: []models.GPUProcess{{PID: util, Name: "python", MemoryMiB: 5}}}})
			})
		}
		save(time.Minute, 10)
		save(0, 30)
		save(time.Second, 20) // late
		states, err := s.Read(t.Context()).DeviceStates()
		if err != nil || len(states) != 1 || states[device].Utilisation != 30 || states[device].Processes[0].PID != 30 {
			t.Errorf("%+v, %v", states, err)
		}
	})
}

func addDevice(t *testing.T, s *store.Store) int64 {
	t.Helper()
	d := models.Device{UUID: "GPU-1", Model: "H100", MemoryMiB: 80_000, Sharing: models.SharingTimeSlicing, Cores: 100, Version: 1, CreatedAt: s.Now()}
	storetest.InTx(t, s, func(q *store.Queries) error {
		p := models.Provider{Name: "node", State: models.ProviderOnline, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()}
		if err := q.CreateProvider(&p); err != nil {
			return err
		}
		d.ProviderID = p.ID
		return q.CreateDevice(&d)
	})
	return d.ID
}
