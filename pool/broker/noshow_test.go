package broker_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// missed is how many reservations of the member count as not used.
func (o *world) missed(t *testing.T) int {
	t.Helper()
	list, err := o.Store.Read(o.Ctx).NoShows(o.Store.Now().Add(-24*time.Hour), o.actor.User.ID)
	if err != nil {
		t.Fatal(err)
	}
	return len(list[o.actor.User.ID])
}

// Whatever its owner does with a reservation at the last moment, it counts as not used once.
func TestNoShowAtTheLastMoment(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // its start
		by    func(t *testing.T, o *world, r broker.View) error
		kind  models.Kind
		state models.ReservationState // at last
		count int
	}{
		"extended": {14 * time.Minute, func(t *testing.T, o *world, r broker.View) error { return o.change(r.ID, nil, o.hour(5)) },
			"", models.ReservationExpired, 1},
		"shortened": {14 * time.Minute, func(t *testing.T, o *world, r broker.View) error {
			return o.change(r.ID, nil, new(o.Store.Now().Add(time.Second)))
		}, "", models.ReservationExpired, 1},
		"moved before its start": {-time.Second, func(t *testing.T, o *world, r broker.View) error { return o.change(r.ID, o.hour(24), nil) },
			"", models.ReservationGranted, 0},
		"moved before anyone saw its start": {time.Second, func(t *testing.T, o *world, r broker.View) error { return o.change(r.ID, o.hour(24), nil) },
			models.KindInvalid, models.ReservationExpired, 1},
		"extended before anyone saw its end": {15*time.Minute + 30*time.Second, func(t *testing.T, o *world, r broker.View) error { return o.change(r.ID, nil, o.hour(5)) },
			models.KindConflict, models.ReservationExpired, 1},
		"canceled before anyone saw its end": {15*time.Minute + 30*time.Second, func(t *testing.T, o *world, r broker.View) error {
			return o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID)
		}, models.KindConflict, models.ReservationExpired, 1},
		"canceled late": {8 * time.Minute, func(t *testing.T, o *world, r broker.View) error { return o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID) },
			"", models.ReservationExpired, 1},
		"canceled early": {7 * time.Minute, func(t *testing.T, o *world, r broker.View) error { return o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID) },
			"", models.ReservationCanceled, 0},
		"canceled by an administrator": {8 * time.Minute, func(t *testing.T, o *world, r broker.View) error {
			return o.Cancel(o.Ctx, o.actorAt(o.Root), r.ID)
		}, "", models.ReservationCanceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				in := o.ask(50)
				in.From = o.hour(1)
				r := o.reserve(t, in)
				o.pass(t, time.Hour+c.after-50*time.Second)
				o.Clock.Advance(50 * time.Second)
				if err := c.by(t, o, r); c.kind == "" && err != nil || c.kind != "" && models.KindOf(err) != c.kind {
					t.Errorf("%v, want %q", err, c.kind)
				}
				o.pass(t, 20*time.Minute)
				if got := o.look(t, r.ID); got.State != c.state || o.missed(t) != c.count {
					t.Errorf("it is %s, and %d count as not used", got.State, o.missed(t))
				}
			})
		})
	}
}

// Who cannot use a reservation, because its machine or the portal is away, has the whole time
// to use it afterwards.
func TestAwayIsNoNoShow(t *testing.T) {
	machineAway := func(o *world, t *testing.T, d time.Duration) {
		o.report(t, 0)
		o.pass(t, d)
		o.report(t, 1)
	}
	portalAway := func(o *world, _ *testing.T, d time.Duration) { o.Clock.Advance(d) }
	for _, c := range []struct {
		name  string
		away  func(*world, *testing.T, time.Duration)
		first time.Duration // before it is away
		long  time.Duration // it is away
		after time.Duration // it is back
		state models.ReservationState
		count int
	}{
		{"machine, at the start", machineAway, 0, 20 * time.Minute, 14 * time.Minute, models.ReservationActive, 0},
		{"machine, at the start, and unused later", machineAway, 0, 20 * time.Minute, 16 * time.Minute, models.ReservationExpired, 1},
		{"machine, later", machineAway, 10 * time.Minute, 20 * time.Minute, 14 * time.Minute, models.ReservationActive, 0},
		{"machine, until the end", machineAway, 0, time.Hour, 0, models.ReservationDone, 0},
		{"machine, nearly until the end", machineAway, 0, 50 * time.Minute, 15 * time.Minute, models.ReservationDone, 0},
		{"portal, at the start", portalAway, 0, 20 * time.Minute, 15 * time.Minute, models.ReservationActive, 0},
		{"portal, at the start, and unused later", portalAway, 0, 20 * time.Minute, 17 * time.Minute, models.ReservationExpired, 1},
		{"portal, until the end", portalAway, 10 * time.Minute, 2 * time.Hour, time.Minute, models.ReservationDone, 0},
		{"none", portalAway, 10 * time.Minute, 0, 6 * time.Minute, models.ReservationExpired, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				r := o.reserve(t, o.ask(50))
				o.pass(t, c.first)
				c.away(o, t, c.long)
				o.pass(t, c.after)
				if got := o.look(t, r.ID); got.State != c.state || o.missed(t) != c.count {
					t.Errorf("it is %s, and %d count as not used", got.State, o.missed(t))
				}
			})
		})
	}
}

// report makes the machine report so many GPUs.
func (o *world) report(t *testing.T, gpus int) {
	t.Helper()
	devices := pooltest.Machine(gpus)
	o.Heartbeat(t, providers.Heartbeat{GPUCode: providers.GPUCodeOf(providers.MachineDigest("node"), devices), Devices: providers.DeviceReports(devices)})
}

// Half of the time of a reservation that is shorter than the time to use it is late, too.
func TestLateCancelOfAShortReservation(t *testing.T) {
	for after, count := range map[time.Duration]int{4 * time.Minute: 0, 5 * time.Minute: 1} {
		each(t, 1, func(t *testing.T, o *world) {
			in := o.ask(50)
			in.DurationMinutes = 10
			r := o.reserve(t, in)
			o.pass(t, after)
			if err := o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID); err != nil || o.missed(t) != count {
				t.Errorf("after %s: %d count as not used, %v", after, o.missed(t), err)
			}
		})
	}
}

// Who had less time than was stated, because others needed the GPUs, is not to blame; who has
// less because it was shortened by its owner is.
func TestCutShortIsNoNoShow(t *testing.T) {
	for _, c := range []struct {
		cut, shortened int // minutes after the start; 0: not
		state          models.ReservationState
		count          int
	}{
		{6, 0, models.ReservationDone, 0},
		{6, 5, models.ReservationDone, 0},
		{20, 5, models.ReservationExpired, 1},
		{20, 0, models.ReservationExpired, 1},
	} {
		each(t, 1, func(t *testing.T, o *world) {
			in := o.low(models.QoSPreemptible, false)
			in.From, in.DurationMinutes = nil, 240
			r := o.reserve(t, in)
			at := func(minutes int) *time.Time { return new(r.StartsAt.Add(time.Duration(minutes) * time.Minute)) }
			high := o.ask(100)
			high.From = at(c.cut)
			o.reserve(t, high)
			if got := o.look(t, r.ID); !got.EndsAt.Equal(*high.From) {
				t.Fatalf("it is not cut short: %+v", got)
			}
			if c.shortened > 0 {
				pooltest.NoError(t, o.change(r.ID, nil, at(c.shortened)))
			}
			o.pass(t, 20*time.Minute)
			if got := o.look(t, r.ID); got.State != c.state || o.missed(t) != c.count {
				t.Errorf("%+v: it is %s, and %d count as not used", c, got.State, o.missed(t))
			}
		})
	}
}

// The part of a reservation that comes later is used only when it is used.
func TestUnusedPart(t *testing.T) {
	for _, used := range []bool{true, false} {
		each(t, 1, func(t *testing.T, o *world) {
			use := func(reservation, cores int64) models.Workspace {
				w, ok := o.use(t, o.member, reservation, models.Demand{GPUs: 1, Cores: cores, GPUMemoryMiB: 1000})
				if !ok {
					t.Fatalf("%d cores of %d cannot be used", cores, reservation)
				}
				return w
			}
			before := use(o.reserve(t, o.ask(60)).ID, 60)
			in := o.ask(100)
			in.AcceptPart, in.DurationMinutes = true, 180
			r := o.reserve(t, in)
			if len(r.Grants) != 2 || r.Grants[0].Cores != 40 {
				t.Fatalf("it has no parts: %+v", r.Grants)
			}
			use(r.ID, 40)
			o.pass(t, time.Hour)
			storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, before.HolderID) })
			o.pass(t, 14*time.Minute)
			if used {
				use(r.ID, 60)
			}
			o.pass(t, time.Minute)
			got, now := o.look(t, r.ID), o.Store.Now()
			if got.State != models.ReservationActive || !got.Grants[0].EndsAt.Equal(r.Grants[0].EndsAt) {
				t.Errorf("used: %v: %+v", used, got)
			}
			if got.Grants[1].EndsAt.Equal(now) == used || got.EndsAt.Equal(r.Grants[0].EndsAt) == used {
				t.Errorf("used: %v: until %v, its parts %+v", used, got.EndsAt, got.Grants)
			}
			o.pass(t, 5*time.Hour)
			if got := o.look(t, r.ID); got.State != models.ReservationDone || o.missed(t) != 0 {
				t.Errorf("it is %s at last, and %d count as not used", got.State, o.missed(t))
			}
		})
	}
}
