package workspaces_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/workspaces"
)

// A deployment takes its GPUs from a reservation of its user, also for its update and when it is deployed again
// after it was idle, and ends with the reservation.
func TestDeploymentInAReservation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		s, r := b.reserve(t, 60)
		in := workspaces.DeployInput{ProjectID: b.project.ID, Path: "/notebook/1/project_model/tiny", ReservationID: r.ID, IdleMinutes: 10}
		want(t, second(w.Deploy(w.ctx, w.actor, in)), models.KindInvalid, "reservation_id", "only an active one can be used")
		b.begin(t, s)
		_, other := b.addMember(t, b.role)
		want(t, second(w.Deploy(w.ctx, other, in)), models.KindInvalid, "reservation_id", "not one of your reservations")
		beside := in
		beside.ReservationID, beside.Cores = 0, 60
		want(t, second(w.Deploy(w.ctx, w.actor, beside)), models.KindNoCapacity)

		// reserved checks that it serves in the reservation; holder is whose shares its plan counted as free.
		reserved := func(when string, holder int64) {
			t.Helper()
			w.load()
			v, planned := w.get(), models.DeviceQuery{ProjectID: b.project.ID, Cores: 60, Holder: holder, ReservationID: r.ID}
			if v.Demand.Cores != 60 || v.Reservation == nil || v.Reservation.ReservationID != r.ID || w.served.asked != planned {
				t.Errorf("%s: %+v in %+v, planned on %+v", when, v.Demand, v.Reservation, w.served.asked)
			}
		}
		w.deployWith(in)
		reserved("deployed", 0)
		if v, err := s.View(b.ctx, b.actor, r.ID); err != nil || v.UsedAt == nil {
			t.Errorf("it is not noted as used: %v", err)
		}
		want(t, second(w.Deploy(w.ctx, w.actor, in)), models.KindNoCapacity, "0 GPU cores are left")
		w.idle()
		if v := w.get(); v.Reservation == nil || !v.Reservation.EndsAt.Equal(r.EndsAt) {
			t.Errorf("while it is idle, it ends with %+v", v.Reservation)
		}
		opened := w.request()
		reserved("after it was idle", 0)
		if err := <-opened; err != nil {
			t.Fatal(err)
		}
		w.quiet()
		w.served.change("second", nil)
		want(t, second(w.UpdateDeployment(w.ctx, w.actor, w.id, models.UpdateRolling)), models.KindNoCapacity, "0 GPU cores are left")
		if _, err := w.UpdateDeployment(w.ctx, w.actor, w.id, models.UpdateRecreate); err != nil {
			t.Fatal(err)
		}
		w.vacated(w.id)
		holder := w.get().HolderID
		w.id++
		reserved("its update", holder)
		b.clock.Advance(2 * time.Hour)
		w.poll(t, "it has ended with the reservation", func() bool { w.Tick(w.ctx); return w.get().State.Ended() })
		if !w.has("Stopped: its reservation has ended.") || w.shares() != 0 {
			t.Errorf("%d shares, %+v", w.shares(), w.get().Events)
		}
	})
}

// One that is idle when its reservation ends, and has no share in it, ends all the same.
func TestIdleAfterAReservation(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := newDeploymentWorld(t, b)
		s, r := b.reserve(t, 60)
		b.begin(t, s)
		w.deployWith(workspaces.DeployInput{ReservationID: r.ID, IdleMinutes: 10})
		w.load()
		w.idle()
		b.clock.Advance(2 * time.Hour)
		w.poll(t, "it has ended with the reservation", func() bool { w.Tick(w.ctx); return w.get().State.Ended() })
		if !w.has("Stopped: its reservation has ended.") {
			t.Errorf("%+v", w.get().Events)
		}
	})
}
