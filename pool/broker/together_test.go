package broker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
)

// whileLocked lets requests arrive while the pool is locked, one after the other, the first
// of which is being decided; then is called before the lock is released. It returns when all
// are decided.
func (o *world) whileLocked(t *testing.T, then func(), requests ...func()) {
	t.Helper()
	var running sync.WaitGroup
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		for i, request := range requests {
			running.Go(request)
			for deadline := time.Now().Add(time.Minute); o.Waiting() != i || i == 0 && !o.Deciding(); time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d wait, %t", o.Waiting(), o.Deciding())
				}
			}
		}
		then()
		return nil
	})
	running.Wait()
}

// Requests that arrive while another one is decided are decided by their scores: the last
// device goes to the one with the highest, not to the first.
func TestArrivingTogether(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		in := o.ask(100)
		in.From = o.hour(1)
		in.Until = o.hour(2)
		first, second, high, wrong := in, in, in, in
		second.Class, high.Class, wrong.Cores = models.ClassLow, models.ClassHigh, 101
		errs := make([]error, 5)
		ids := make([]int64, 5)
		reserve := func(i int, ctx context.Context, in broker.ReservationInput) func() {
			return func() {
				r, err := o.Reserve(ctx, o.actorAt(o.actor), in)
				ids[i], errs[i] = r.ID, err
			}
		}
		gone, leave := context.WithCancel(o.Ctx)
		at := policies.WithOrigin(o.Ctx, policies.Origin{Address: "192.0.2.7"})
		o.whileLocked(t, leave, reserve(0, o.Ctx, first), reserve(2, gone, in), reserve(1, o.Ctx, second), reserve(3, at, high), reserve(4, o.Ctx, wrong))
		if errs[0] != nil || errs[3] != nil {
			t.Errorf("the first: %v; the one with the highest score: %v", errs[0], errs[3])
		}
		pooltest.WantError(t, errs[1], models.KindNoCapacity)
		pooltest.WantError(t, errs[4], models.KindInvalid, "cores")
		if !errors.Is(errs[2], context.Canceled) {
			t.Errorf("whose client has gone: %v", errs[2])
		}
		list, err := o.List(o.Ctx, o.actorAt(o.actor), store.ReservationFilter{}, store.Page{Limit: 10})
		if err != nil || len(list) != 2 || list[0].ID != ids[3] || list[0].Class != models.ClassHigh {
			t.Errorf("%d reservations, %v", len(list), err)
		}
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{Object: "reservation"}, store.Page{Limit: 10})
		if err != nil || len(entries) != 2 || entries[0].Address != "192.0.2.7" || entries[1].Address != "" {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}
