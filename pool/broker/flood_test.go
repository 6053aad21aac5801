package broker_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/timeline"
)

// Requests with a higher class, one after the other, each for the time at which the one of the lowest
// priority would begin, move it further and further, but only until it has waited long enough.
func TestFloodDoesNotStarve(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		project := o.NewProject(t, "led", models.Resources{GPUCores: 300, GPUMemoryMiB: 600_000})
		lead := o.NewRole(t, project.ID, "lead", "manager", models.Resources{GPUCores: 100, GPUMemoryMiB: 200_000})
		_, user := o.NewMember(t, lead)
		manager := o.Actor(t, user)
		low := o.reserve(t, o.low(models.QoSStandard, true))
		begin, moves := o.Store.Now(), 0
		for o.Store.Now().Sub(begin) < 2*timeline.FullWait {
			at := o.look(t, low.ID).StartsAt
			high := o.ask(100)
			high.ProjectID, high.From, high.Priority = project.ID, &at, broker.Priority{Class: models.ClassHigh}
			flood, err := o.Reserve(o.Ctx, o.actorAt(manager), high)
			if err != nil {
				pooltest.WantError(t, err, models.KindNoCapacity)
				break
			}
			if moved := o.look(t, low.ID).StartsAt; !moved.Equal(at.Add(time.Hour)) {
				t.Fatalf("it was moved from %v to %v", at, moved)
			}
			moves++
			o.pass(t, time.Hour-time.Minute)
			pooltest.NoError(t, o.Cancel(o.Ctx, o.actorAt(manager), flood.ID))
			o.pass(t, time.Minute)
		}
		o.pass(t, time.Hour)
		waited := o.Store.Now().Sub(begin)
		if got := o.look(t, low.ID); got.State != models.ReservationActive || waited > timeline.FullWait+time.Hour || moves < 8 {
			t.Errorf("after %v and %d moves it is %+v", waited, moves, got)
		}
		o.checkFuture(t)
	})
}
