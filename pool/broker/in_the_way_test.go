package broker_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
)

// Of those whose time is over, only as many are told to end as a reservation needs, by how much each has: first those whose
// time was over first.
func TestWhoIsInTheWayOfAReservation(t *testing.T) {
	for reserved, want := range map[int64]string{30: "", 31: "early ", 70: "early ", 71: "late early "} {
		each(t, 1, func(t *testing.T, o *world) {
			in := o.ask(reserved)
			in.From, in.GPUMemoryMiB = o.hour(24), 1000
			o.reserve(t, in)
			demand := func(cores int64) models.Demand { return models.Demand{GPUs: 1, Cores: cores, GPUMemoryMiB: 1000} }
			late, d1 := o.ClaimFor(t, o.member, demand(30), 23*time.Hour)
			early, d2 := o.ClaimFor(t, o.member, demand(40), 22*time.Hour)
			if d1.Outcome != models.OutcomeGranted || d2.Outcome != models.OutcomeGranted {
				t.Fatalf("%s and %s", d1.Outcome, d2.Outcome)
			}
			inTheWay := func() (names string) {
				list, err := o.Pool.InTheWay(o.Store.Read(o.Ctx), o.Store.Now().Add(time.Minute))
				pooltest.NoError(t, err)
				for _, c := range list {
					names += map[int64]string{late.HolderID: "late ", early.HolderID: "early "}[c.ID]
					storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, c.ID) })
				}
				return names
			}
			o.pass(t, 24*time.Hour-2*time.Minute)
			if got := inTheWay(); got != "" {
				t.Errorf("%d reserved: %q too early", reserved, got)
			}
			o.pass(t, time.Minute)
			if got := inTheWay() + inTheWay(); got != want {
				t.Errorf("%d reserved: %q are in the way, not %q", reserved, got, want)
			}
			o.checkFuture(t)
		})
	}
}
