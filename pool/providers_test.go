package pool_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/pool"
)

// An end that has not come yet can be taken back; see TestDrainAndRecall for
// one that has.
func TestRecallIsTakenBackInTime(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		m := o.team(t, "vision")
		o.enlist(t, machine(1))
		id := o.provider(t).ID
		held := o.outcome(t, m, half, models.OutcomeGranted)
		if _, err := o.pool.Recall(o.ctx, o.root, id, pool.RecallInput{NoticeMinutes: 30}); err != nil {
			t.Fatal(err)
		}
		o.clock.Pass(29 * time.Minute)
		if _, err := o.pool.Resume(o.ctx, o.root, id, 0); err != nil {
			t.Fatal(err)
		}
		o.clock.Pass(31 * time.Minute)
		list, err := o.store.Read(o.ctx).Overdue(o.store.Now())
		if err != nil || len(list) != 0 || o.told(t, held, "not end early") != 1 {
			t.Errorf("overdue: %+v, %v", list, err)
		}
	})
}
