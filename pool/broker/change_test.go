package broker_test

import (
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
)

func (o *world) change(id int64, starts, ends *time.Time) error {
	return o.Change(o.Ctx, o.actorAt(o.actor), id, broker.ReservationChange{StartsAt: starts, EndsAt: ends})
}

// A reservation that has not begun moves, also to where it overlaps itself.
func TestMoveReservation(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		in := o.ask(100)
		in.From, in.DurationMinutes = o.hour(10), 24*60
		r := o.reserve(t, in)
		in.From, in.DurationMinutes = o.hour(40), 10*60
		other := o.reserve(t, in)
		start := o.Store.Now()
		at := func(hours int) *time.Time { return new(start.Add(time.Duration(hours) * time.Hour)) }
		pooltest.NoError(t, o.change(r.ID, at(12), nil))
		if got := o.look(t, r.ID); !got.StartsAt.Equal(*at(12)) || !got.EndsAt.Equal(*at(36)) || got.DurationMinutes != 24*60 || len(got.Grants) != 1 || got.Version <= r.Version {
			t.Errorf("moved: %+v", got)
		}
		pooltest.WantError(t, o.change(r.ID, at(20), nil), models.KindNoCapacity, "The earliest start is")
		pooltest.WantError(t, o.change(r.ID, nil, at(41)), models.KindNoCapacity, "The earliest start is")
		pooltest.NoError(t, o.change(r.ID, at(20), at(40)))
		pooltest.NoError(t, o.change(other.ID, at(50), at(51)))
		pooltest.NoError(t, o.change(r.ID, at(-5), at(2)))
		if got := o.look(t, r.ID); got.State != models.ReservationActive || !got.StartsAt.Equal(start) || !got.EndsAt.Equal(*at(2)) {
			t.Errorf("moved to the present: %+v", got)
		}
		o.checkFuture(t)
	})
}

// One with a part and the rest later keeps its duration when it moves, and is granted whole where it fits.
func TestMoveParts(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		start := o.Store.Now()
		at := func(hours int) *time.Time { return new(start.Add(time.Duration(hours) * time.Hour)) }
		for _, hours := range []int{10, 30} {
			busy := o.ask(60)
			busy.From = at(hours)
			o.reserve(t, busy)
		}
		in := o.ask(100)
		in.From, in.AcceptPart = at(10), true
		r := o.reserve(t, in)
		parts := func(outcome string, from, until, minutes, cores int64) {
			t.Helper()
			got, hours, most := o.look(t, r.ID), 0.0, int64(0)
			for _, g := range got.Grants {
				hours, most = hours+float64(g.Cores)*g.EndsAt.Sub(g.StartsAt).Hours(), max(most, g.Cores)
			}
			if got.Outcome != outcome || !got.StartsAt.Equal(*at(int(from))) || !got.EndsAt.Equal(*at(int(until))) || got.DurationMinutes != minutes ||
				most != cores || hours != float64(100*minutes)/60 {
				t.Errorf("%s, %d minutes, %v core-hours of %d at most, %+v", got.Outcome, got.DurationMinutes, hours, most, got.Grants)
			}
		}
		parts("partial", 10, 12, 60, 60)
		pooltest.NoError(t, o.change(r.ID, at(30), nil))
		parts("partial", 30, 32, 60, 60)
		pooltest.NoError(t, o.change(r.ID, at(20), nil))
		parts("granted", 20, 21, 60, 100)
		pooltest.NoError(t, o.change(r.ID, nil, at(23)))
		parts("granted", 20, 23, 180, 100)
		o.checkFuture(t)
	})
}

// Neither the limit nor the hours ahead count a reservation twice that moves.
func TestMoveWithinTheLimit(t *testing.T) {
	each(t, 4, func(t *testing.T, o *world) {
		project := o.NewProject(t, "small", models.Resources{GPUCores: 100, GPUMemoryMiB: 320_000})
		_, ann := o.NewMember(t, o.NewRole(t, project.ID, "engineer", "member", models.Resources{GPUCores: 100, GPUMemoryMiB: 100_000}))
		o.actor, o.member.ProjectID = o.Actor(t, ann), project.ID
		in := o.ask(100)
		in.GPUMemoryMiB, in.DurationMinutes, in.From = 1000, 39*60, o.hour(1)
		r := o.reserve(t, in)
		pooltest.NoError(t, o.change(r.ID, o.hour(2), nil))
		pooltest.NoError(t, o.change(r.ID, o.hour(1), o.hour(41)))
		pooltest.WantError(t, o.change(r.ID, o.hour(1), o.hour(42)), models.KindNoCapacity, "your role allows")
		o.pass(t, time.Hour+time.Minute)
		o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 1})
		pooltest.NoError(t, o.change(r.ID, nil, new(o.look(t, r.ID).EndsAt.Add(time.Minute))))
		pooltest.WantError(t, o.change(r.ID, nil, new(o.look(t, r.ID).EndsAt.Add(time.Minute))), models.KindNoCapacity, "your role allows")
	})
}

// One that has begun is extended on its devices as far as they are free, and shortened.
func TestExtendReservation(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		start := o.Store.Now()
		at := func(minutes int) *time.Time { return new(start.Add(time.Duration(minutes) * time.Minute)) }
		r := o.reserve(t, o.ask(60))
		w, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1})
		if !ok {
			t.Fatal("it cannot be used")
		}
		in := o.ask(50)
		in.From = at(90)
		next := o.reserve(t, in)
		o.pass(t, 30*time.Minute)
		decision, err := o.PreviewChange(o.Ctx, o.actorAt(o.actor), r.ID, broker.ReservationChange{EndsAt: at(120)})
		if err != nil || decision.Latest == nil || !decision.Latest.Equal(*at(90)) || len(decision.Grants) != 0 {
			t.Errorf("a preview of too long an extension: %+v, %v", decision, err)
		}
		pooltest.WantError(t, o.change(r.ID, nil, at(120)), models.KindNoCapacity, "ends_at", models.Moment(*at(90)).String())
		pooltest.NoError(t, o.change(r.ID, nil, at(90)))
		got := o.look(t, r.ID)
		if !got.EndsAt.Equal(*at(90)) || len(got.Grants) != 1 || got.Grants[0].ID != r.Grants[0].ID || !got.Grants[0].EndsAt.Equal(*at(90)) {
			t.Errorf("extended: %+v", got)
		}
		o.checkFuture(t)
		o.pass(t, 50*time.Minute) // past its first end
		if got := o.look(t, r.ID); got.State != models.ReservationActive {
			t.Errorf("it is %s in its extension", got.State)
		}
		pooltest.NoError(t, o.change(r.ID, nil, at(85)))
		o.pass(t, 4*time.Minute)
		if past, err := o.Store.Read(o.Ctx).HoldersPastReservation(o.Store.Now()); err != nil || len(past) != 0 {
			t.Errorf("before its new end: %v, %v", past, err)
		}
		o.pass(t, time.Minute)
		if past, err := o.Store.Read(o.Ctx).HoldersPastReservation(o.Store.Now()); err != nil || len(past) != 1 || past[0].ID != w.HolderID {
			t.Errorf("at its new end: %v, %v", past, err)
		}
		if got := o.look(t, r.ID); got.State != models.ReservationDone {
			t.Errorf("it is %s after its new end", got.State)
		}
		pooltest.WantError(t, o.change(r.ID, nil, at(200)), models.KindConflict, "already done")
		if got := o.look(t, next.ID); got.State != models.ReservationGranted || !got.StartsAt.Equal(*at(90)) {
			t.Errorf("the next one: %+v", got)
		}
	})
}

// A refused change leaves the reservation as it is.
func TestWrongChanges(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		active := o.reserve(t, o.ask(10))
		in := o.ask(10)
		in.From = o.hour(5)
		ahead := o.reserve(t, in)
		for name, wrong := range map[string]struct {
			id           int64
			field        string
			starts, ends *time.Time
		}{
			"nothing":             {ahead.ID, "ends_at", nil, nil},
			"start of one begun":  {active.ID, "starts_at", o.hour(1), nil},
			"end in the past":     {active.ID, "ends_at", nil, o.hour(-1)},
			"end before start":    {ahead.ID, "ends_at", nil, o.hour(4)},
			"too long":            {ahead.ID, "ends_at", nil, o.hour(5 + 7*24 + 1)},
			"active for too long": {active.ID, "ends_at", nil, o.hour(7*24 + 1)},
			"too far ahead":       {ahead.ID, "ends_at", o.hour(90 * 24), nil},
		} {
			var e *models.Error
			if err := o.change(wrong.id, wrong.starts, wrong.ends); !errors.As(err, &e) || e.Kind != models.KindInvalid || e.Fields[0].Name != wrong.field {
				t.Errorf("%s: %v", name, err)
			}
		}
		change := func(who policies.Actor, in broker.ReservationChange) error {
			return o.Change(o.Ctx, o.actorAt(who), ahead.ID, in)
		}
		pooltest.WantError(t, change(o.Root, broker.ReservationChange{EndsAt: o.hour(7)}), models.KindForbidden)
		_, stranger := o.team(t, "speech")
		pooltest.WantError(t, change(stranger, broker.ReservationChange{EndsAt: o.hour(7)}), models.KindNotFound)
		if err := change(o.actor, broker.ReservationChange{EndsAt: o.hour(7), Version: ahead.Version + 1}); !errors.Is(err, models.ErrStale) {
			t.Errorf("of another version: %v", err)
		}
		o.EndMembership(t, o.member, o.hour(7))
		pooltest.WantError(t, o.change(ahead.ID, nil, o.hour(8)), models.KindInvalid, "when the project or your membership in it ends")
		for _, r := range []broker.View{active, ahead} {
			if got := o.look(t, r.ID); got.Version != r.Version || !got.EndsAt.Equal(r.EndsAt) || !got.CanChange {
				t.Errorf("changed: %+v", got)
			}
		}
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{Object: "reservation", Action: "update"}, store.Page{Limit: 9})
		if err != nil || len(entries) != 0 {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}
