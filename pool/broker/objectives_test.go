package broker_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// with is the world with other objectives.
func (o *world) with(objectives broker.Objectives) *world {
	rules := broker.DefaultRules
	rules.Objectives = objectives
	return &world{World: o.World, Service: broker.New(o.Store, o.Access, o.Pool, rules), member: o.member, actor: o.actor}
}

// Of what is available at the same time, the models that a task type prefers are reserved
// first, and others when those are not available.
func TestPreferredModels(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		o.Enlist(t, append(pooltest.Machine(1), providers.DeviceReport{UUID: "GPU-other", Index: 1, Minor: 1, Model: "NVIDIA L4", MemoryMiB: 80_000, Simulated: true}))
		o = o.with(broker.Objectives{Models: map[models.TaskType][]string{models.TaskBatch: {"t4", "l4"}}})
		in := o.ask(60)
		in.TaskType = models.TaskBatch
		first, second := o.reserve(t, in), o.reserve(t, in)
		if a, b := first.Grants[0].Model, second.Grants[0].Model; a != "NVIDIA L4" || b == "NVIDIA L4" {
			t.Errorf("reserved are %s and %s", a, b)
		}
		if why := first.Explanation.String(); !strings.Contains(why, "GPU models t4, l4, then the least capacity left") {
			t.Error(why)
		}
		in.TaskType, in.Cores = models.TaskTraining, 10
		if r := o.reserve(t, in); r.Grants[0].DeviceID != min(first.Grants[0].DeviceID, second.Grants[0].DeviceID) {
			t.Errorf("a task type that prefers nothing has %+v", r.Grants)
		}
	})
}

// Spread reserves the GPU with the most left, and pack the one with the least.
func TestReservationPlacement(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		for i, objective := range []broker.Placement{broker.Pack, broker.Spread, broker.Nearest} {
			o, same := o.with(broker.Objectives{Placement: objective}), objective != broker.Spread
			in := o.ask(10)
			in.From = o.hour(1 + i*2)
			a, b := o.reserve(t, in), o.reserve(t, in)
			if got := a.Grants[0].DeviceID == b.Grants[0].DeviceID; got != same {
				t.Errorf("by objective %s, they have one GPU: %t", objective, got)
			}
		}
	})
}

// addProvider adds a machine with one GPU.
func (o *world) addProvider(t *testing.T, name string) models.Provider {
	t.Helper()
	now := o.Store.Now()
	p := models.Provider{Name: name, Machine: name, State: models.ProviderOnline, Agent: true, SeenAt: now.Add(24 * time.Hour), Version: 1, CreatedAt: now}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		p.ID = 0
		if err := q.CreateProvider(&p); err != nil {
			return err
		}
		return q.CreateDevice(&models.Device{ProviderID: p.ID, UUID: "GPU-" + name, Model: "NVIDIA H100", MemoryMiB: 80_000, Simulated: true, Present: true,
			Sharing: models.SharingTimeSlicing, Cores: 100, NUMA: -1, Version: 1, CreatedAt: now})
	})
	return p
}

// The machines with the lowest latency to the client are preferred: to the zone that it
// names, or to that of its address, as long as the latency is known.
func TestNearest(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		zones, err := models.ParseClientZones("berlin=10.1.0.0/16@192.0.2.1:443;tokyo=10.2.0.0/16@192.0.2.2:443")
		if err != nil {
			t.Fatal(err)
		}
		home, far := o.Provider(t), o.addProvider(t, "tokyo-1")
		o = o.with(broker.Objectives{Placement: broker.Nearest, Zones: zones})
		measure := func(p models.Provider, zone string, micros int64) {
			t.Helper()
			storetest.InTx(t, o.Store, func(q *store.Queries) error {
				return q.SaveLatencies([]models.ProviderLatency{{ProviderID: p.ID, Zone: zone, Micros: micros, MeasuredAt: q.Now()}})
			})
		}
		at := func(address, zone string) broker.View {
			t.Helper()
			in := o.ask(10)
			in.ClientZone = zone
			ctx := policies.WithOrigin(o.Ctx, policies.Origin{Address: address})
			r, err := o.Reserve(ctx, o.actorAt(o.actor), in)
			if err != nil {
				t.Fatal(err)
			}
			return o.look(t, r.ID)
		}
		want := func(v broker.View, p models.Provider, zone, why string) {
			t.Helper()
			if v.Grants[0].ProviderName != p.Name || v.ClientZone != zone || !strings.Contains(v.Explanation.String(), why) {
				t.Errorf("on %s near %q: %s; want %s near %q: %s", v.Grants[0].ProviderName, v.ClientZone, v.Explanation, p.Name, zone, why)
			}
		}
		measure(home, "berlin", 8000)
		measure(far, "berlin", 8400) // in whole milliseconds the same
		measure(home, "tokyo", 240_000)
		measure(far, "tokyo", 2000)
		want(at("10.2.0.1", ""), far, "tokyo", "the lowest latency to tokyo, then the least capacity left")
		want(at("10.2.0.1", "berlin"), far, "berlin", "the lowest latency to berlin") // with less left
		measure(far, "berlin", 9000)
		want(at("10.1.0.1", ""), home, "berlin", "the lowest latency to berlin")
		want(at("192.0.2.9", ""), far, "", "in no client zone")
		in := o.ask(10)
		in.ClientZone = "paris"
		pooltest.WantError(t, pooltest.Error(o.Reserve(o.Ctx, o.actorAt(o.actor), in)), models.KindInvalid, "must be one of berlin, tokyo")
		o.Clock.Advance(models.LatencyAge + time.Minute)
		want(at("10.1.0.1", ""), far, "berlin", "the lowest latency to berlin") // of none is known; with less left
	})
}

// A reservation that makes room for another one stays near its own client.
func TestNearestWhenMoved(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		zones, err := models.ParseClientZones("tokyo=10.2.0.0/16@192.0.2.2:443")
		if err != nil {
			t.Fatal(err)
		}
		far := o.addProvider(t, "tokyo-1")
		o.addProvider(t, "tokyo-2")
		o = o.with(broker.Objectives{Placement: broker.Nearest, Zones: zones})
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			return q.SaveLatencies([]models.ProviderLatency{{ProviderID: far.ID, Zone: "tokyo", Micros: 2000, MeasuredAt: q.Now()}})
		})
		in := o.ask(100)
		in.From, in.AcceptLater, in.Class, in.ClientZone = o.hour(1), true, models.ClassLow, "tokyo"
		var lows []broker.View
		for range 3 {
			lows = append(lows, o.reserve(t, in))
		}
		in.AcceptLater, in.Class, in.ClientZone = false, models.ClassHigh, ""
		o.reserve(t, in)
		moved := 0
		for _, low := range lows {
			if now := o.look(t, low.ID); now.MovedAt != nil {
				if moved++; now.Grants[0].ProviderName != far.Name || !now.StartsAt.After(low.StartsAt) {
					t.Errorf("it is on %s from %s", now.Grants[0].ProviderName, now.StartsAt)
				}
			}
		}
		if moved != 1 {
			t.Errorf("%d are moved", moved)
		}
	})
}
