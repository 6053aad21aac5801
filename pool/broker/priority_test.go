package broker_test

import (
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/broker"
	"weir/pool/pooltest"
)

// low is a request of low priority for a whole GPU, an hour from now or later.
func (o *world) low(level models.QoS, acceptLater bool) broker.ReservationInput {
	in := o.ask(100)
	in.From, in.AcceptLater = o.hour(1), acceptLater
	in.Priority = broker.Priority{Class: models.ClassLow, QoS: level, TaskType: models.TaskBatch}
	return in
}

// told is how many notifications of a kind the member has.
func (o *world) told(t *testing.T, kind string) (n int) {
	t.Helper()
	list, err := o.Store.Read(o.Ctx).Notifications(o.actor.User.ID, store.Page{Limit: 50})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		if one.Kind == kind {
			n++
		}
	}
	return n
}

// A request with a higher score changes what has not started as far as the QoS level
// allows, and its member is told.
func TestHigherPriorityMoves(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		for _, c := range []struct {
			level       models.QoS
			acceptLater bool
			cores       int64         // that are asked for with a higher score
			outcome     string        // of that
			start       time.Duration // by which the first is moved
			left        int64         // GPU cores that the first has then
		}{
			{models.QoSStandard, true, 100, "granted", time.Hour, 100},
			{models.QoSStandard, false, 50, "refused", 0, 100},
			{models.QoSBestEffort, false, 50, "granted", 0, 50},
			{models.QoSBestEffort, false, 51, "refused", 0, 100},
			{models.QoSBestEffort, true, 51, "granted", time.Hour, 100},
			{models.QoSPreemptible, false, 40, "granted", 0, 60},
		} {
			r := o.reserve(t, o.low(c.level, c.acceptLater))
			told := o.told(t, models.NotificationReservationMoved)
			in := o.ask(c.cores)
			in.From = &r.StartsAt
			d, err := o.Preview(o.Ctx, o.actorAt(o.actor), in)
			if err != nil || d.Outcome.String() != c.outcome || (len(d.Moves) == 1) != (c.outcome == "granted") {
				t.Errorf("%+v: the preview: %+v, %v", c, d, err)
			}
			second, err := o.Reserve(o.Ctx, o.actorAt(o.actor), in)
			if (err == nil) != (c.outcome == "granted") {
				t.Errorf("%+v: %v", c, err)
			}
			got := o.look(t, r.ID)
			if !got.StartsAt.Equal(r.StartsAt.Add(c.start)) || got.Cores != c.left || len(got.Grants) != 1 || got.Grants[0].Cores != c.left || (got.MovedAt != nil) != (c.outcome == "granted") {
				t.Errorf("%+v: it became %+v", c, got)
			}
			if more := o.told(t, models.NotificationReservationMoved) - told; more == 1 != (c.outcome == "granted") {
				t.Errorf("%+v: told %d times", c, more)
			}
			o.checkFuture(t)
			for _, id := range []int64{r.ID, second.ID} {
				if id != 0 {
					pooltest.NoError(t, o.Cancel(o.Ctx, o.actorAt(o.actor), id))
				}
			}
		}
	})
}

// counted counts what is asked of a pool.
type counted struct {
	broker.Pool
	shares int
}

func (c *counted) FairShares(q *store.Queries) (func(p models.Project) (use, all, share float64), error) {
	c.shares++
	return c.Pool.FairShares(q)
}

// The pool is locked while a request is decided: what a project's reservations have in
// common is computed once, however many of them could be moved.
func TestManyMovableReservations(t *testing.T) {
	each(t, 4, func(t *testing.T, o *world) {
		in := o.low(models.QoSStandard, true)
		in.Cores = 10
		for range 39 {
			o.reserve(t, in)
		}
		pool := &counted{Pool: o.World.Pool}
		service := broker.New(o.Store, o.Access, pool, broker.DefaultRules)
		high := o.ask(30)
		high.From = in.From
		d, err := service.Preview(o.Ctx, o.actorAt(o.actor), high)
		if err != nil || d.Outcome.String() != "granted" || len(d.Moves) != 2 {
			t.Errorf("%+v, %v", d, err)
		}
		if pool.shares > 2 {
			t.Errorf("the fair share of two projects was computed %d times", pool.shares)
		}
	})
}

// A preview names what would be changed, as far as its reader may see it.
func TestPreviewNamesMoves(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		own := o.reserve(t, o.low(models.QoSStandard, true))
		m, other := o.team(t, "speech")
		in := o.low(models.QoSStandard, true)
		in.ProjectID = m.ProjectID
		if _, err := o.Reserve(o.Ctx, o.actorAt(other), in); err != nil {
			t.Fatal(err)
		}
		high := o.ask(100)
		high.GPUs, high.From = 2, in.From
		d, err := o.Preview(o.Ctx, o.actorAt(o.actor), high)
		if err != nil || len(d.Moves) != 2 || len(d.Shown) != 1 || d.Shown[0].Before.ID != own.ID || d.Shown[0].Project != "vision" {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// Only who decides requests in a project asks for more than others get; what is guaranteed
// is never changed, and of what has started only what is preemptible ends early.
func TestPromises(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		project := o.NewProject(t, "led", models.Resources{GPUCores: 300, GPUMemoryMiB: 600_000})
		limit := models.Resources{GPUCores: 100, GPUMemoryMiB: 200_000}
		lead, member := o.NewRole(t, project.ID, "lead", "manager", limit), o.NewRole(t, project.ID, "engineer", "member", limit)
		_, ann := o.NewMember(t, member)
		engineer := o.Actor(t, ann)
		_, user := o.NewMember(t, lead)
		manager := o.Actor(t, user)
		reserve := func(in broker.ReservationInput) (models.Reservation, error) {
			manager.At, in.ProjectID = o.Store.Now(), project.ID
			return o.Reserve(o.Ctx, manager, in)
		}
		for field, p := range map[string]broker.Priority{"class": {Class: models.ClassHigh}, "qos": {QoS: models.QoSGuaranteed}} {
			in := o.ask(10)
			in.Priority, in.ProjectID = p, project.ID
			_, err := o.Reserve(o.Ctx, engineer, in)
			pooltest.WantError(t, err, models.KindInvalid, "only for those who decide requests")
			var e *models.Error
			if !errors.As(err, &e) || e.Fields[0].Name != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		high := o.ask(100)
		high.From, high.Class = o.hour(1), models.ClassHigh
		kept, err := reserve(o.low(models.QoSGuaranteed, true))
		pooltest.NoError(t, err)
		_, err = reserve(high)
		pooltest.WantError(t, err, models.KindNoCapacity, "earliest start")
		pooltest.NoError(t, o.Cancel(o.Ctx, manager, kept.ID))

		begun := o.low(models.QoSPreemptible, false)
		begun.From = nil
		begun.DurationMinutes = 240
		r := o.reserve(t, begun)
		now := high
		now.From = nil
		_, err = reserve(now) // without notice
		pooltest.WantError(t, err, models.KindNoCapacity, "earliest start")
		_, err = reserve(high)
		pooltest.NoError(t, err)
		if got := o.look(t, r.ID); !got.EndsAt.Equal(*high.From) || got.State != models.ReservationActive || got.Grants[0].ID != r.Grants[0].ID {
			t.Errorf("it became %+v", got)
		}
		o.checkFuture(t)
	})
}

// A reservation that was not used lowers the score for a while.
func TestNoShowCostsPriority(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		attendance := func() float64 {
			t.Helper()
			d, err := o.Preview(o.Ctx, o.actorAt(o.actor), o.ask(10))
			score, parts := d.Score()
			sum := 0.0
			for _, p := range parts {
				sum += p.Points
			}
			if err != nil || len(parts) != 7 || parts[5].Name != "attendance" || sum-score > 1e-9 || score-sum > 1e-9 {
				t.Fatalf("%v of %+v, %v", score, parts, err)
			}
			return parts[5].Factor
		}
		if got := attendance(); got != 1 {
			t.Errorf("at first %v", got)
		}
		o.reserve(t, o.ask(10))
		o.pass(t, 15*time.Minute)
		if got := attendance(); got != 0.5 {
			t.Errorf("after a no-show %v", got)
		}
		o.pass(t, 7*24*time.Hour)
		if got := attendance(); got < 0.7 || got > 0.71 {
			t.Errorf("a week later %v", got)
		}
		o.pass(t, 35*24*time.Hour)
		if got := attendance(); got != 1 {
			t.Errorf("after six weeks %v", got)
		}
	})
}
