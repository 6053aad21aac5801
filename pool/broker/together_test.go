package broker_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/providers"
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
			// Asked in this order: a request first waits, and then decides.
			for deadline := time.Now().Add(time.Minute); !o.Deciding() || o.Waiting() != i; time.Sleep(time.Millisecond) {
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

// Requests with idempotency keys are decided together, too, and each is carried out once.
func TestRequestsWithKeysArriveTogether(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		in := o.ask(100)
		in.From, in.Until = o.hour(1), o.hour(2)
		low, high := in, in
		low.Class, high.Class = models.ClassLow, models.ClassHigh
		keys := []store.IdempotencyKey{{Key: "a", Request: "first"}, {Key: "b", Request: "low"}, {Key: "c", Request: "high"}, {Key: "c", Request: "high"}}
		errs := make([]error, len(keys))
		var requests []func()
		for i, in := range []broker.ReservationInput{in, low, high, high} {
			keys[i].UserID = o.actor.User.ID
			requests = append(requests, func() {
				_, errs[i] = o.Reserve(store.WithIdempotencyKey(o.Ctx, &keys[i]), o.actorAt(o.actor), in)
			})
		}
		o.whileLocked(t, func() {}, requests...)
		if errs[0] != nil || errs[2] != nil || !errors.Is(errs[3], store.ErrIdempotencyKeyUsed) {
			t.Errorf("%v", errs)
		}
		pooltest.WantError(t, errs[1], models.KindNoCapacity)
		if !keys[0].Claimed || keys[1].Claimed || !keys[2].Claimed || keys[3].Claimed {
			t.Errorf("claimed: %+v", keys)
		}
		list, err := o.List(o.Ctx, o.actorAt(o.actor), store.ReservationFilter{}, store.Page{Limit: 10})
		if err != nil || len(list) != 2 {
			t.Errorf("%d reservations, %v", len(list), err)
		}
		_, err = o.Reserve(store.WithIdempotencyKey(o.Ctx, &store.IdempotencyKey{UserID: o.actor.User.ID, Key: "c", Request: "high"}), o.actorAt(o.actor), high)
		if !errors.Is(err, store.ErrIdempotencyKeyUsed) {
			t.Errorf("repeated: %v", err)
		}
	})
}

// Whoever goes while the requests wait for the pool has no reservation.
func TestGoneWhileWaiting(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		first, leaveFirst := context.WithCancel(o.Ctx)
		last, leaveLast := context.WithCancel(o.Ctx)
		errs := make([]error, 3)
		reserve := func(i int, ctx context.Context) func() {
			return func() { _, errs[i] = o.Reserve(ctx, o.actorAt(o.actor), o.ask(10)) }
		}
		o.whileLocked(t, func() {
			leaveFirst() // the others are decided together now, and wait for the pool
			for deadline := time.Now().Add(time.Minute); o.Waiting() > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d wait", o.Waiting())
				}
			}
			leaveLast()
		}, reserve(0, first), reserve(1, o.Ctx), reserve(2, last))
		list, err := o.List(o.Ctx, o.actorAt(o.actor), store.ReservationFilter{}, store.Page{Limit: 10})
		if err != nil || len(list) != 1 || !errors.Is(errs[0], context.Canceled) || errs[1] != nil || !errors.Is(errs[2], context.Canceled) {
			t.Errorf("%d reservations, %v, %v", len(list), err, errs)
		}
	})
}

// Requests that are decided together have the decisions that they would have one by one in
// the order of their scores, also of devices that are not shared by projects or at all.
func TestTogetherAsOneByOne(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			together, single := newPair(t, dialect), newPair(t, dialect)
			r := rand.New(rand.NewPCG(15, 1))
			for day := range 6 {
				list := together.requests(r, 24*day)
				got, want := make([]outcome, len(list)), make([]outcome, len(list))
				var requests []func()
				for i := range list {
					requests = append(requests, func() { got[i] = together.reserve(list[i]) })
				}
				together.whileLocked(t, func() {}, requests...)
				for _, i := range single.byScore(t, list) {
					want[i] = single.reserve(list[i])
				}
				// Later requests can move what earlier ones have got, so this is read when all are decided.
				if a, b := together.describe(got), single.describe(want); a != b {
					t.Fatalf("day %d: together\n%s\none by one\n%s", day, a, b)
				}
				together.checkFuture(t)
			}
		})
	}
}

// pair is a world with two projects and devices of all kinds.
type pair struct {
	*world
	actors  []policies.Actor
	members []models.Member
}

func newPair(t *testing.T, dialect string) pair {
	p := pair{world: newWorld(t, pooltest.New(t, storetest.Open(t, dialect)), 4)}
	m, a := p.team(t, "speech")
	p.members, p.actors = []models.Member{p.member, m}, []policies.Actor{p.actor, a}
	for uuid, in := range map[string]providers.DeviceInput{"GPU-0": {Sharing: models.SharingExclusive}, "GPU-1": {Sharing: models.SharingTimeSlicing},
		"GPU-2": {Sharing: models.SharingTimeSlicing, Mixed: true}, "GPU-3": {Sharing: models.SharingTimeSlicing, Mixed: true}} {
		if err := pooltest.Error(p.Providers.SetSharing(p.Ctx, p.Root, p.DevicesByUUID(t)[uuid].ID, in)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// request is one of a project of a pair.
type request struct {
	project int
	in      broker.ReservationInput
}

// requests are some for a few hours of a day.
func (p pair) requests(r *rand.Rand, hour int) []request {
	list := make([]request, 12)
	for i := range list {
		one := request{project: r.IntN(2), in: p.ask(int64(10 * (1 + r.IntN(7))))}
		one.in.ProjectID = p.members[one.project].ProjectID
		one.in.GPUs, one.in.DurationMinutes = int64(1+r.IntN(5)/4), int64(30*(1+r.IntN(4)))
		one.in.From, one.in.Until = p.hour(hour+1+r.IntN(3)), p.hour(hour+8)
		one.in.AcceptLater = r.IntN(3) == 0
		one.in.Class = models.PriorityClasses[r.IntN(len(models.PriorityClasses))]
		list[i] = one
	}
	return list
}

// byScore are the requests in the order in which they are decided: the first, during which
// the others arrive, and these by their scores.
func (p pair) byScore(t *testing.T, list []request) (order []int) {
	t.Helper()
	scores := make([]float64, len(list))
	for i, one := range list {
		d, err := p.Preview(p.Ctx, p.actorAt(p.actors[one.project]), one.in)
		if err != nil {
			t.Fatal(err)
		}
		scores[i], _ = d.Score()
		order = append(order, i)
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return order
}

// reserve sends a request.
func (p pair) reserve(one request) (o outcome) {
	o.Reservation, o.err = p.Reserve(p.Ctx, p.actorAt(p.actors[one.project]), one.in)
	return o
}

// outcome is the answer to a request.
type outcome struct {
	models.Reservation
	err error
}

// describe is what requests have got, a line for each.
func (p pair) describe(list []outcome) (text string) {
	for _, o := range list {
		if o.err != nil {
			text += o.err.Error() + "\n"
			continue
		}
		grants, err := p.Store.Read(p.Ctx).GrantsByReservation(o.ID)
		text += fmt.Sprint(o.Outcome, " ", o.Cores, err)
		for _, g := range grants[o.ID] {
			text += fmt.Sprint(" GPU ", g.DeviceID, " from ", g.StartsAt, " until ", g.EndsAt)
		}
		text += "\n"
	}
	return text
}
