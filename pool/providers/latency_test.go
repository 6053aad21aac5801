package providers_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// The latency to a zone is kept for ten minutes; that to an unknown one is not.
func TestLatencies(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		zones, err := models.ParseClientZones("berlin=10.0.0.0/8@192.0.2.1:443;tokyo=10.1.0.0/16@192.0.2.2:443")
		if err != nil {
			t.Fatal(err)
		}
		o.Providers = providers.New(o.Store, o.Access, nil, zones...)
		o.Enlist(t, pooltest.Machine(1))
		report := func(l ...providers.Latency) {
			t.Helper()
			orders := o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(1)), Latencies: l})
			if len(orders.Probes) != 2 || orders.Probes[1] != (providers.Probe{Zone: "tokyo", Address: "192.0.2.2:443"}) {
				t.Fatalf("%+v", orders.Probes)
			}
		}
		want := func(micros ...int64) {
			t.Helper()
			v, err := o.Pool.Provider(o.Ctx, o.Root, o.Provider(t).ID)
			if err != nil || len(v.Latencies) != len(micros) {
				t.Fatalf("%+v, %v", v.Latencies, err)
			}
			for i, l := range v.Latencies {
				if l.Micros != micros[i] {
					t.Errorf("%+v, want %d", l, micros[i])
				}
			}
		}
		report(providers.Latency{Zone: "tokyo", Time: 240 * time.Millisecond}, providers.Latency{Zone: "berlin", Time: 8 * time.Millisecond},
			providers.Latency{Zone: "gone", Time: time.Second})
		want(8000, 240_000)
		o.Clock.Advance(6 * time.Minute)
		report(providers.Latency{Zone: "berlin", Time: 16 * time.Millisecond})
		want(9000, 240_000)
		o.Clock.Advance(5 * time.Minute)
		report()
		want(9000)
	})
}

func TestLatenciesAreBounded(t *testing.T) {
	var b providers.Heartbeat
	many := `{"latencies": [` + strings.Repeat(`{"zone": "a", "time": 1},`, models.MaxClientZones) + `{"zone": "a", "time": 1}]}`
	pooltest.WantError(t, json.Unmarshal([]byte(many), &b), models.KindInvalid, "at most 32")
}
