package pool_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/pool"
	"weir/pool/pooltest"
)

// An end that has not come yet can be taken back; see TestDrainAndRecall for
// one that has.
func TestRecallIsTakenBackInTime(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		id := o.Provider(t).ID
		held := o.outcome(t, m, half, models.OutcomeGranted)
		if _, err := o.Pool.Recall(o.Ctx, o.Root, id, pool.RecallInput{NoticeMinutes: 30}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Pass(29 * time.Minute)
		if _, err := o.Pool.Resume(o.Ctx, o.Root, id, 0); err != nil {
			t.Fatal(err)
		}
		o.Clock.Pass(31 * time.Minute)
		list, err := o.Store.Read(o.Ctx).Overdue(o.Store.Now())
		if err != nil || len(list) != 0 || o.told(t, held, "not end early") != 1 {
			t.Errorf("overdue: %+v, %v", list, err)
		}
	})
}
