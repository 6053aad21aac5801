package workspaces_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/providers"
	"weir/workspaces"
)

// reserved is a world with one GPU, of which its member has a part reserved for two hours,
// from an hour ahead.
func (b *world) reserved(t *testing.T, cores int64) (*broker.Service, models.Reservation) {
	t.Helper()
	b.gpus(t, 1)
	return b.reserve(t, cores)
}

// reserve reserves a part of a GPU for two hours, from an hour ahead.
func (b *world) reserve(t *testing.T, cores int64) (*broker.Service, models.Reservation) {
	t.Helper()
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	s := broker.New(b.store, access, b.pool, broker.DefaultRules)
	r, err := s.Reserve(b.ctx, b.actor, broker.ReservationInput{ProjectID: b.project.ID, GPUs: 1, Cores: cores, DurationMinutes: 120, From: new(b.store.Now().Add(time.Hour))})
	if err != nil {
		t.Fatal(err)
	}
	return s, r
}

// begin lets the hour pass.
func (b *world) begin(t *testing.T, s *broker.Service) {
	t.Helper()
	b.clock.Advance(time.Hour)
	if err := s.Advance(b.ctx); err != nil {
		t.Fatal(err)
	}
}

// A reservation is used by its member, within its amounts, while it is active; nobody
// else gets what is reserved.
func TestLaunchInAReservation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		s, r := b.reserved(t, 60)
		in := b.ask("a", models.LaunchParameters{})
		in.ReservationID = r.ID
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "only an active one can be used")
		b.begin(t, s)
		want(t, second(b.Launch(b.ctx, b.actor, b.ask("beside", gpu(1, 50)))), models.KindNoCapacity)
		beside := b.launch(t, "beside", gpu(1, 40))

		_, other := b.addMember(t, b.role)
		want(t, second(b.Launch(b.ctx, other, in)), models.KindInvalid, "not one of your reservations")
		in.ReservationID = r.ID + 1
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "not one of your reservations")
		in.ReservationID = r.ID

		in.Request.GPUs = new(int64(0))
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "gpus")
		in.Request.GPUs = nil

		p, err := b.Preview(b.ctx, b.actor, in)
		if err != nil || p.Rejection != nil || p.Demand.Cores != 60 {
			t.Fatalf("the preview is %+v, %v", p.Rejection, err)
		}
		w, err := b.Launch(b.ctx, b.actor, in)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := s.View(b.ctx, b.actor, r.ID); err != nil || v.UsedAt == nil {
			t.Errorf("it is not noted as used: %v", err)
		}
		in.Name = "more"
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindNoCapacity, "0 GPU cores are left")
		if got := b.shares(t); got != 100 {
			t.Errorf("%d cores are in use", got)
		}
		b.until(t, w.ID, models.StateRunning)
		b.until(t, beside.ID, models.StateRunning)
		if v, err := b.View(b.ctx, b.actor, w.ID); err != nil || v.ScheduledStop == nil || !v.ScheduledStop.At.Equal(r.EndsAt) || v.ScheduledStop.ReservationID != r.ID {
			t.Errorf("its end is %+v, %v", v.ScheduledStop, err)
		}
		if v, err := b.View(b.ctx, b.actor, beside.ID); err != nil || v.ScheduledStop != nil {
			t.Errorf("the end of the workspace beside it is %+v, %v", v.ScheduledStop, err)
		}

		b.clock.Advance(2*time.Hour + time.Second)
		if w = b.until(t, w.ID, models.StateStopped); !strings.Contains(w.Reason.String(), "its reservation has ended") {
			t.Errorf("it stopped because of %q", w.Reason)
		}
		if got := b.row(t, beside.ID).State; got != models.StateRunning {
			t.Errorf("the workspace beside it is %s", got)
		}
	})
}

// A run is told of the reservation that would let it start at once, runs in it when it names it,
// and ends with it.
func TestRunInAReservation(t *testing.T) {
	eachRuns(t, func(w *runsWorld) {
		s, r := w.reserved(w.T, 100)
		w.begin(w.T, s)
		in := workspaces.RunInput{ProjectID: w.project.ID, Command: []string{"sleep", "600"}, Request: gpu(1, 100)}
		waits, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil || waits.State != models.RunQueued {
			w.Fatalf("without the reservation it is %s: %s, %v", waits.State, waits.Reason, err)
		}
		w.hints(waits.ID, w.actor, 1)
		w.Tick(w.ctx) // the queue is served, and finds a reason of its own
		w.hints(waits.ID, w.actor, 1)
		w.hints(waits.ID, w.root, 0) // whose reservation it is not

		in.Request, in.ReservationID = models.LaunchParameters{}, r.ID
		_, other := w.addMember(w.T, w.role)
		want(w.T, second(w.StartRun(w.ctx, other, in)), models.KindInvalid, "reservation_id", "not one of your reservations")
		run, err := w.StartRun(w.ctx, w.actor, in)
		if err != nil || run.State != models.RunStarting || run.Demand.Cores != 100 {
			w.Fatalf("in the reservation it is %s with %+v, %v", run.State, run.Demand, err)
		}
		w.hints(waits.ID, w.actor, 0) // nothing is left of it
		if _, err := w.StopRun(w.ctx, w.actor, waits.ID); err != nil {
			w.Fatal(err)
		}
		if v, err := s.View(w.ctx, w.actor, r.ID); err != nil || v.UsedAt == nil {
			w.Errorf("it is not noted as used: %v", err)
		}
		want(w.T, second(w.StartRun(w.ctx, w.actor, in)), models.KindNoCapacity, "0 GPU cores are left")
		w.ticks(run.ID, models.RunRunning)
		v, err := w.ViewRun(w.ctx, w.actor, run.ID)
		if err != nil || v.Reservation == nil || v.Reservation.ReservationID != r.ID || !v.EndsAt().Equal(r.EndsAt) {
			w.Errorf("its end is %v in %+v, %v", v.EndsAt(), v.Reservation, err)
		}
		w.clock.Advance(2*time.Hour + time.Second)
		w.poll(w.T, "the run has ended", func() bool {
			w.Tick(w.ctx)
			_ = w.TickRuns(w.ctx) // a test asks for the state
			return w.run(run.ID).State == models.RunEnded
		})
		if got := w.run(run.ID).Reason.String(); got != "Stopped: its reservation has ended." {
			w.Errorf("it ended because of %q", got)
		}
		if v, err = w.ViewRun(w.ctx, w.actor, run.ID); err != nil || v.Reservation != nil {
			w.Errorf("it is still in %+v, %v", v.Reservation, err)
		}
	})
}

// hints checks how often the reason why a run waits names a reservation in which it could start.
func (w *runsWorld) hints(run int64, actor policies.Actor, times int) {
	w.Helper()
	v, err := w.ViewRun(w.ctx, actor, run)
	if err != nil || v.State != models.RunQueued || v.Reason.Empty() || strings.Count(v.Reason.String(), "use --reservation 1") != times {
		w.Errorf("it is %s: %q, %v; want %d hints", v.State, v.Reason, err, times)
	}
}

// While a GPU is reconfigured, nothing is launched on it, in a reservation neither.
func TestReservedDeviceThatChanges(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		s, r := b.reserved(t, 60)
		b.begin(t, s)
		list, err := b.store.Read(b.ctx).DevicesAt(store.AllMachines)
		if err != nil {
			t.Fatal(err)
		}
		device := list[0]
		_, err = b.machines.SetSharing(b.ctx, b.root, device.ID, providers.DeviceInput{Sharing: models.SharingMPS})
		want(t, err, models.KindConflict, "Reservation")
		device.Sharing = models.SharingMPS // since before it was reserved
		storetest.InTx(t, b.store, func(q *store.Queries) error { return q.UpdateDevice(&device) })
		in := b.ask("a", models.LaunchParameters{})
		in.ReservationID = r.ID
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindNoCapacity, "cannot be used now")
	})
}

// What is used in a reservation ends with it, and can be stopped and launched again before.
func TestAReservationIsCanceled(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		s, r := b.reserved(t, 100)
		b.begin(t, s)
		in := b.ask("a", models.LaunchParameters{})
		in.ReservationID = r.ID
		for range 2 {
			w, err := b.Launch(b.ctx, b.actor, in)
			if err != nil {
				t.Fatal(err)
			}
			b.until(t, w.ID, models.StateRunning)
			if _, err := b.Stop(b.ctx, b.actor, w.ID); err != nil {
				t.Fatal(err)
			}
			b.until(t, w.ID, models.StateStopped)
		}
		w, err := b.Launch(b.ctx, b.actor, in)
		if err != nil {
			t.Fatal(err)
		}
		b.until(t, w.ID, models.StateRunning)
		if err := s.Cancel(b.ctx, b.actor, r.ID); err != nil {
			t.Fatal(err)
		}
		b.until(t, w.ID, models.StateStopped)
		b.until(t, b.launch(t, "others", gpu(1, 100)).ID, models.StateRunning)
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindInvalid, "canceled")
	})
}

// What is left of the parts of a reservation that have begun is what a launch in it gets by default.
func TestLaunchInAPartOfAReservation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		s, _ := b.reserved(t, 60)
		r, err := s.Reserve(b.ctx, b.actor, broker.ReservationInput{ProjectID: b.project.ID, GPUs: 1, Cores: 100, DurationMinutes: 120, AcceptPart: true})
		if err != nil || r.Outcome != "partial" {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, c := range []struct {
			name string
			asks models.LaunchParameters
			want int64 // GPU cores
		}{{"asked", models.LaunchParameters{Cores: new(int64(10))}, 10}, {"left", models.LaunchParameters{}, 30}} {
			in := b.ask(c.name, c.asks)
			in.ReservationID = r.ID
			w, err := b.Launch(b.ctx, b.actor, in)
			if err != nil {
				t.Fatal(err)
			}
			if d := w.Demand; d.GPUs != 1 || d.Cores != c.want {
				t.Errorf("%s: it has %d × %d GPU cores", c.name, d.GPUs, d.Cores)
			}
		}
		in := b.ask("more", models.LaunchParameters{})
		in.ReservationID = r.ID
		want(t, second(b.Launch(b.ctx, b.actor, in)), models.KindNoCapacity, "0 GPU cores are left")
	})
}
