package broker_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// When one reservation follows another on a GPU, what still runs of the first one keeps its share until it has ended:
// the second one gets the GPU then, not both.
func TestReservationAfterAnother(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		first, second := o.ask(100), o.ask(100)
		first.From, second.From = o.hour(1), o.hour(2)
		before, after := o.reserve(t, first), o.reserve(t, second)
		whole := models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 1000}
		o.pass(t, time.Hour)
		ends, ok := o.use(t, o.member, before.ID, whole)
		if !ok {
			t.Fatal("the first reservation cannot be used")
		}
		o.pass(t, time.Hour+time.Second)
		if _, ok := o.use(t, o.member, after.ID, whole); ok {
			t.Error("the GPU is given twice")
		}
		o.CheckDevices(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, ends.HolderID) })
		if _, ok := o.use(t, o.member, after.ID, whole); !ok {
			t.Error("the GPU is free, and the second reservation cannot be used")
		}
	})
}

// A request that a reservation days ahead keeps out reserves no machine while it waits: others use the GPU until then.
func TestDistantReservationBlocksNobody(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		distant := o.ask(10)
		distant.From = o.hour(5 * 24)
		o.reserve(t, distant)
		w := models.Workspace{ProjectID: o.member.ProjectID, MemberID: o.member.ID, UserID: o.member.UserID, EnvironmentID: o.Environment(t), Name: "waits",
			State: models.StateQueued, Demand: models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 1000}, Version: 1, RequestedAt: o.Store.Now()}
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.CreateWorkspace(&w, models.Say("Requested.")) })
		o.Clock.Advance(11 * time.Minute)
		if _, d := o.Claim(t, o.member, models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 1000}); d.Outcome != models.OutcomeGranted {
			t.Errorf("%s: %s", d.Outcome, d.Explanation)
		}
	})
}
