package broker_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
)

// A preview of what cannot begin when it was asked for names the reservations in the way: those of others only by their
// amounts and times. Those that leave enough, or are at another time, are not in the way.
func TestPreviewNamesConflicts(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		other, stranger := o.team(t, "speech")
		in := o.ask(60)
		in.From = o.hour(1)
		own := o.reserve(t, in)
		in.From = o.hour(9)
		o.reserve(t, in)
		in.ProjectID, in.From, in.Cores = other.ProjectID, o.hour(3), 70
		_, err := o.Reserve(o.Ctx, o.actorAt(stranger), in)
		pooltest.NoError(t, err)

		ask := o.ask(50)
		ask.From, ask.DurationMinutes = o.hour(1), 180
		d, err := o.Preview(o.Ctx, o.actorAt(o.actor), ask)
		if err != nil || len(d.Conflicts) != 2 || d.Earliest == nil || !d.Earliest.Equal(*o.hour(4)) {
			t.Fatalf("%+v, %v", d, err)
		}
		if c := d.Conflicts[0]; c.ID != own.ID || c.ProjectName != "vision" {
			t.Errorf("their own is %+v", c)
		}
		if c := d.Conflicts[1]; c.ID != 0 || c.ProjectID+c.UserID != 0 || c.ProjectName+c.UserName != "" || c.Cores != 70 || !c.EndsAt.Equal(*o.hour(4)) {
			t.Errorf("that of others is %+v", c)
		}
		ask.Cores, ask.DurationMinutes = 40, 60
		if d, err := o.Preview(o.Ctx, o.actorAt(o.actor), ask); err != nil || len(d.Conflicts) != 0 {
			t.Errorf("beside 60 cores, 40 are in conflict with %+v, %v", d.Conflicts, err)
		}
		small := o.ask(20)
		small.From, small.DurationMinutes = o.hour(6), 60
		o.reserve(t, small)
		ask.Cores, ask.From, ask.DurationMinutes = 50, o.hour(6), 5*60
		if d, err := o.Preview(o.Ctx, o.actorAt(o.actor), ask); err != nil || len(d.Conflicts) != 1 || d.Conflicts[0].Cores != 60 {
			t.Errorf("beside what leaves enough, in the way are %+v, %v", d.Conflicts, err)
		}
	})
}

// The preview of a change names what is in the way of it, and never what is changed itself: of one that has begun, only
// on its own GPUs and after its end.
func TestPreviewOfChangeNamesConflicts(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		ask := o.ask(100)
		ask.DurationMinutes = 60
		begun := o.reserve(t, ask)
		at := func(hours int) broker.ReservationInput {
			in := ask
			in.From = o.hour(hours)
			return in
		}
		first, second := o.reserve(t, at(3)), o.reserve(t, at(3)) // one on each device
		later := o.reserve(t, at(9))
		own, elsewhere := first, second
		if first.Grants[0].DeviceID != begun.Grants[0].DeviceID {
			own, elsewhere = second, first
		}
		preview := func(id int64, in broker.ReservationChange, outcome string, conflicts ...int64) {
			t.Helper()
			d, err := o.PreviewChange(o.Ctx, o.actorAt(o.actor), id, in)
			got := models.Map(d.Conflicts, func(r models.ReservationView) int64 { return r.ID })
			if err != nil || d.Outcome.String() != outcome || !slices.Equal(got, conflicts) {
				t.Errorf("%s, in the way are %v, not %v, %v", d.Outcome, got, conflicts, err)
			}
		}
		preview(begun.ID, broker.ReservationChange{EndsAt: o.hour(2)}, "granted")
		preview(begun.ID, broker.ReservationChange{EndsAt: o.hour(5)}, "refused", own.ID)
		preview(later.ID, broker.ReservationChange{StartsAt: o.hour(3)}, "refused", slices.Sorted(slices.Values([]int64{own.ID, elsewhere.ID}))...)
		preview(later.ID, broker.ReservationChange{EndsAt: o.hour(12)}, "granted")
	})
}

// A calendar of reservations shows those of the project that the actor may see, or the actor's own.
func TestCalendarOfReservations(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		project := o.NewProject(t, "shared", models.Resources{GPUCores: 200, GPUMemoryMiB: 320_000})
		role := o.NewRole(t, project.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 100, GPUMemoryMiB: 160_000})
		member, user := o.NewMember(t, role)
		o.member, o.actor = member, o.Actor(t, user)
		_, colleague := o.NewMember(t, role)
		in := o.ask(60)
		in.From = o.hour(48)
		own := o.reserve(t, in)
		in.Cores = 30
		theirs, err := o.Reserve(o.Ctx, o.Actor(t, colleague), in)
		pooltest.NoError(t, err)
		storetest.InTx(t, o.Store, func(q *store.Queries) error { // as an instance of MIG
			devices, err := q.DevicesAt(store.AllMachines)
			for _, d := range devices {
				d.Cores = 95
				err = errors.Join(err, q.UpdateDevice(&d))
			}
			return err
		})
		for _, c := range []struct {
			actor    policies.Actor
			reserved string
			most     int64 // GPU cores
			first    int64 // reservation
		}{
			{o.actor, broker.ReservedByProject, 90, own.ID},
			{o.actor, broker.ReservedByMe, 60, own.ID},
			{o.Actor(t, colleague), broker.ReservedByMe, 30, theirs.ID},
		} {
			ask := broker.CalendarInput{ProjectID: o.member.ProjectID, View: broker.ViewDay, Date: own.StartsAt.Format(time.DateOnly), Limit: 10, Reserved: c.reserved}
			got, err := o.Calendar(o.Ctx, o.actorAt(c.actor), ask)
			if err != nil || len(got.Devices) != 1 || got.Devices[0].DeviceID != own.Grants[0].DeviceID || got.Devices[0].Cores != 95 {
				t.Fatalf("%s: %+v, %v", c.reserved, got.Devices, err)
			}
			for i, cores := range got.Devices[0].Reserved {
				in := got.Slots[i].Before(own.EndsAt) && got.Slots[i+1].After(own.StartsAt)
				if first := got.Devices[0].Reservations[i]; in && (cores != c.most || first != c.first) || !in && cores+first != 0 {
					t.Errorf("%s: %d cores of reservation %d at %v", c.reserved, cores, first, got.Slots[i])
				}
			}
			ask.Date = own.StartsAt.AddDate(0, 0, 2).Format(time.DateOnly)
			if got, err := o.Calendar(o.Ctx, o.actorAt(c.actor), ask); err != nil || len(got.Devices) != 0 {
				t.Errorf("%s: on another day %+v, %v", c.reserved, got.Devices, err)
			}
		}
		_, err = o.Calendar(o.Ctx, o.actorAt(o.actor), broker.CalendarInput{ProjectID: o.member.ProjectID, View: broker.ViewDay, Reserved: "all"})
		pooltest.WantError(t, err, models.KindInvalid, "reserved")
	})
}
