package broker_test

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/broker"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/providers"
)

// The four answers, over one GPU of which a workspace has 40 cores.
func TestDecisions(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		o.WantClaim(t, o.member, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 32_000}, models.OutcomeGranted)
		now := o.Store.Now()
		r := o.reserve(t, o.ask(50))
		if r.Outcome != "granted" || r.State != models.ReservationActive || !r.StartsAt.Equal(now) || !r.EndsAt.Equal(now.Add(time.Hour)) || r.GPUMemoryMiB != 40_000 ||
			len(r.Grants) != 1 || r.Grants[0].Cores != 50 || r.Grants[0].MemoryMiB != 40_000 {
			t.Errorf("granted: %+v", r)
		}
		in := o.ask(30)
		refused, err := o.Preview(o.Ctx, o.actor, in)
		if err != nil || refused.Outcome.String() != "refused" || refused.Earliest == nil || !refused.Earliest.Equal(now.Add(time.Hour)) {
			t.Errorf("refused: %+v, %v", refused, err)
		}
		_, err = o.Reserve(o.Ctx, o.actor, in)
		pooltest.WantError(t, err, models.KindNoCapacity, "earliest start")
		in.AcceptPart = true
		part := o.reserve(t, in)
		if part.Outcome != "partial" || len(part.Grants) != 2 || part.Grants[0].Cores != 10 || part.Grants[1].Cores != 20 || !part.Grants[1].StartsAt.Equal(now.Add(time.Hour)) ||
			!part.StartsAt.Equal(now) || !part.EndsAt.Equal(now.Add(2*time.Hour)) {
			t.Errorf("partial: %+v", part)
		}
		in.AcceptPart, in.AcceptLater = false, true
		later := o.reserve(t, in)
		if later.Outcome != "delayed" || !later.StartsAt.Equal(now.Add(time.Hour)) {
			t.Errorf("delayed: %+v", later)
		}
		in.Cores = 61
		_, err = o.Reserve(o.Ctx, o.actor, in)
		pooltest.WantError(t, err, models.KindNoCapacity, "at any time that is known")
		o.checkFuture(t)
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{}, store.Page{Limit: 1})
		if err != nil || entries[0].Action != "create" || entries[0].Object != "reservation" || entries[0].ObjectID != later.ID {
			t.Errorf("audit: %+v, %v", entries, err)
		}
	})
}

// What is reserved for later is kept from workspaces, which have no end, now; what a
// reservation has and does not use, too.
func TestReservationsAreKept(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		in := o.ask(70)
		in.From = o.hour(24)
		r := o.reserve(t, in)
		demand := func(cores int64) models.Demand {
			return models.Demand{GPUs: 1, Cores: cores, GPUMemoryMiB: 800 * cores}
		}
		o.WantClaim(t, o.member, demand(40), models.OutcomePartial)
		o.WantClaim(t, o.member, demand(30), models.OutcomeGranted)
		other, _ := o.team(t, "speech")
		o.WantClaim(t, other, demand(1), models.OutcomeDelayed) // of another project, beside which nothing is placed
		o.pass(t, 24*time.Hour)
		if got := o.look(t, r.ID); got.State != models.ReservationActive {
			t.Fatalf("it is %s", got.State)
		}
		if _, ok := o.use(t, o.member, r.ID, demand(71)); ok {
			t.Error("a workspace has more than its reservation")
		}
		first, ok := o.use(t, o.member, r.ID, demand(40))
		if _, more := o.use(t, o.member, r.ID, demand(31)); !ok || more {
			t.Errorf("%v, %v", ok, more)
		}
		o.WantClaim(t, o.member, demand(1), models.OutcomeDelayed)
		o.checkFuture(t)
		o.pass(t, time.Hour)
		if got := o.look(t, r.ID); got.State != models.ReservationDone || got.EndedAt == nil {
			t.Errorf("it is %s", got.State)
		}
		past, err := o.Store.Read(o.Ctx).HoldersPastReservation(o.Store.Now())
		if err != nil || len(past) != 1 || past[0].ID != first.HolderID {
			t.Errorf("past its end: %v, %v", past, err)
		}
		o.WantClaim(t, o.member, demand(30), models.OutcomeGranted) // beside what is still in use
		o.WantClaim(t, o.member, demand(1), models.OutcomeDelayed)
	})
}

// What has a time limit may use what is reserved only after its latest end, which is what is reserved beside it, too.
func TestTimeLimitBesideReservations(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		in := o.ask(70)
		in.From = o.hour(24)
		o.reserve(t, in)
		whole := models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000}
		limit := 24*time.Hour - 10*time.Minute
		if _, d := o.ClaimFor(t, o.member, whole, limit+time.Second); d.Outcome != models.OutcomePartial || d.Fewer.Cores != 30 {
			t.Errorf("what ends after the reservation begins is %s", d.Outcome)
		}
		run, d := o.ClaimFor(t, o.member, whole, limit-time.Hour)
		if d.Outcome != models.OutcomeGranted || !d.EndsBy.Equal(*o.hour(23)) {
			t.Fatalf("what ends before is %s by %v", d.Outcome, d.EndsBy)
		}
		o.checkFuture(t)
		o.WantClaim(t, o.member, models.Demand{GPUs: 1, Cores: 1, GPUMemoryMiB: 1}, models.OutcomeDelayed)
		in = o.ask(100)
		_, err := o.Reserve(o.Ctx, o.actorAt(o.actor), in)
		pooltest.WantError(t, err, models.KindNoCapacity, "The earliest start is")
		in.AcceptLater = true
		if r := o.reserve(t, in); !r.StartsAt.Equal(*o.hour(23)) {
			t.Errorf("it starts at %v, and the run ends by %v", r.StartsAt, d.EndsBy)
		}
		o.checkFuture(t)
		for want, after := range []time.Duration{23*time.Hour - 2*time.Minute, time.Minute} { // it has not ended by itself
			o.pass(t, after)
			list, err := o.Pool.InTheWay(o.Store.Read(o.Ctx), o.Store.Now().Add(time.Minute))
			if err != nil || len(list) != want || want == 1 && list[0].ID != run.HolderID {
				t.Errorf("%d are told to end, %v", len(list), err)
			}
		}
	})
}

// What of a reservation was used and what was not adds up to what was reserved until now.
func TestUseOfAReservation(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		r := o.reserve(t, o.ask(60))
		w, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 1000})
		if !ok {
			t.Fatal("it cannot be used")
		}
		const half = 30 * 60 * 1000 // minutes in milliseconds
		o.pass(t, 30*time.Minute)
		if v := o.look(t, r.ID); v.UsedMS != 40*half || v.UnusedMS != 20*half {
			t.Errorf("%d are used and %d are not", v.UsedMS, v.UnusedMS)
		}
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, w.HolderID) })
		o.pass(t, 2*time.Hour)
		if v := o.look(t, r.ID); v.UsedMS != 40*half || v.UnusedMS != 80*half {
			t.Errorf("at last %d are used and %d are not", v.UsedMS, v.UnusedMS)
		}
	})
}

// In a reservation, nothing is launched on a machine that does not lend now, and its GPU is not
// cut into instances before it ends.
func TestReservedMachineThatDoesNotLend(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		in := o.ask(70)
		in.From = o.hour(24)
		r := o.reserve(t, in)
		gpu := o.DevicesByUUID(t)["GPU-0"]
		mps := providers.DeviceInput{Sharing: models.SharingMPS}
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, mps)), models.KindConflict, "Reservation")
		o.pass(t, 24*time.Hour)
		d := models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 800}
		drained, err := o.Providers.Drain(o.Ctx, o.Root, gpu.ProviderID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := o.use(t, o.member, r.ID, d); ok {
			t.Error("a workspace was launched on a machine that is drained")
		}
		if _, err := o.Providers.Resume(o.Ctx, o.Root, gpu.ProviderID, drained.Version); err != nil {
			t.Fatal(err)
		}
		if _, ok := o.use(t, o.member, r.ID, d); !ok {
			t.Error("the machine lends again, and nothing is launched")
		}
		o.pass(t, time.Hour)
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, mps)), models.KindConflict, "1 workspace, run or deployment uses this device")
	})
}

// Of a reserved GPU that is not shared, a second workspace gets nothing, though the reservation has cores left.
func TestReservedExclusiveGPU(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		gpu := o.DevicesByUUID(t)["GPU-0"]
		_, err := o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingExclusive})
		pooltest.NoError(t, err)
		r, d := o.reserve(t, o.ask(50)), models.Demand{GPUs: 1, Cores: 20, GPUMemoryMiB: 800}
		if _, ok := o.use(t, o.member, r.ID, d); !ok {
			t.Fatal("it cannot be used")
		}
		if _, ok := o.use(t, o.member, r.ID, d); ok {
			t.Error("two workspaces have a GPU that is not shared")
		}
	})
}

// A reservation that nobody uses is given to others; a canceled one at once.
func TestUnusedReservations(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		in := o.ask(100)
		in.From = o.hour(1)
		r := o.reserve(t, in)
		if r.State != models.ReservationGranted {
			t.Errorf("it is %s", r.State)
		}
		o.pass(t, 74*time.Minute)
		if got := o.look(t, r.ID); got.State != models.ReservationActive {
			t.Errorf("it is %s", got.State)
		}
		o.pass(t, time.Minute)
		if got := o.look(t, r.ID); got.State != models.ReservationExpired || got.CanCancel {
			t.Errorf("it is %s", got.State)
		}
		list, err := o.Store.Read(o.Ctx).Notifications(o.actor.User.ID, store.Page{Limit: 10})
		if err != nil || len(list) != 2 || list[0].Kind != "reservation.expired" || list[1].Kind != "reservation.active" {
			t.Errorf("%+v, %v", list, err)
		}
		in.From = o.hour(5)
		r = o.reserve(t, in)
		if err := o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID); err != nil {
			t.Fatal(err)
		}
		if got := o.look(t, r.ID); got.State != models.ReservationCanceled || len(got.Grants) != 0 {
			t.Errorf("canceled: %+v", got)
		}
		pooltest.WantError(t, o.Cancel(o.Ctx, o.actorAt(o.actor), r.ID), models.KindConflict, "already canceled")
		o.WantClaim(t, o.member, models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000}, models.OutcomeGranted)
	})
}

// A reservation is bounded by the limit of the role and the quota at every moment, and
// by what a member may reserve ahead.
func TestBounds(t *testing.T) {
	each(t, 4, func(t *testing.T, o *world) {
		project := o.NewProject(t, "small", models.Resources{GPUCores: 150, GPUMemoryMiB: 320_000})
		role := o.NewRole(t, project.ID, "engineer", "member", models.Resources{GPUCores: 100, GPUMemoryMiB: 100_000})
		_, ann := o.NewMember(t, role)
		ask := func(cores int64, from, minutes int) broker.ReservationInput {
			return broker.ReservationInput{ProjectID: project.ID, GPUs: 1, Cores: cores, GPUMemoryMiB: 1000, DurationMinutes: int64(minutes), From: o.hour(from)}
		}
		annActor := o.Actor(t, ann)
		reserve := func(who policies.Actor, in broker.ReservationInput) error {
			who.At = o.Store.Now()
			_, err := o.Reserve(o.Ctx, who, in)
			return err
		}
		pooltest.NoError(t, reserve(annActor, ask(60, 1, 120)))
		pooltest.WantError(t, reserve(annActor, ask(60, 2, 60)), models.KindNoCapacity, "limit of the role")
		pooltest.NoError(t, reserve(annActor, ask(60, 3, 60))) // after the first
		two := ask(30, 1, 60)
		two.GPUs = 2
		pooltest.WantError(t, reserve(annActor, two), models.KindNoCapacity, "limit of the role")
		if _, err := o.UpdateRole(o.Ctx, o.Root, project.ID, role.ID, projects.RoleInput{Name: role.Name, Permission: role.Permission, Limit: models.Resources{GPUCores: 150, GPUMemoryMiB: 100_000}.Input()}); err != nil {
			t.Fatal(err)
		}
		pooltest.WantError(t, reserve(annActor, ask(91, 1, 60)), models.KindNoCapacity, "limit of the role")
		pooltest.WantError(t, reserve(annActor, ask(100, 30, 61*60)), models.KindNoCapacity, "ahead")
		for _, wrong := range []struct {
			field  string
			change func(*broker.ReservationInput)
		}{
			{"gpus", func(in *broker.ReservationInput) { in.GPUs = 0 }},
			{"cores", func(in *broker.ReservationInput) { in.Cores = 101 }},
			{"cores", func(in *broker.ReservationInput) { in.Cores = 0 }},
			{"gpu_memory_mib", func(in *broker.ReservationInput) { in.GPUMemoryMiB = -1 }},
			{"duration_minutes", func(in *broker.ReservationInput) { in.DurationMinutes = 0 }},
			{"duration_minutes", func(in *broker.ReservationInput) { in.DurationMinutes = 1 << 40 }},
			{"from", func(in *broker.ReservationInput) { in.From = o.hour(91 * 24) }},
			{"until", func(in *broker.ReservationInput) { in.Until = o.hour(1) }},
		} {
			in := ask(10, 1, 60)
			wrong.change(&in)
			err := reserve(annActor, in)
			var e *models.Error
			if !errors.As(err, &e) || e.Kind != models.KindInvalid || len(e.Fields) != 1 || e.Fields[0].Name != wrong.field {
				t.Errorf("%s: %v", wrong.field, err)
			}
		}
		foreign := ask(10, 1, 60)
		pooltest.WantError(t, reserve(o.actor, foreign), models.KindNotFound)
	})
}

// A reservation ends by the end of the project and of the membership, and is canceled when
// either ends early.
func TestReservationsEndWithTheMembership(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		project, err := o.Store.Read(o.Ctx).Project(store.AllProjects, o.member.ProjectID)
		if err != nil {
			t.Fatal(err)
		}
		reserve := func(minutes int64) error {
			in := o.ask(10)
			in.DurationMinutes = minutes
			_, err := o.Reserve(o.Ctx, o.actorAt(o.actor), in)
			return err
		}
		state := func(r broker.View) models.ReservationState { return o.look(t, r.ID).State }
		for name, of := range map[string]struct {
			end   func(*time.Time)
			after models.Kind
		}{
			"project": {func(at *time.Time) { o.EndProject(t, project, at) }, models.KindForbidden},
			// Whoever may no longer see the project is not shown its reservations either.
			"membership": {func(at *time.Time) { o.EndMembership(t, o.member, at) }, models.KindNotFound},
		} {
			end := of.end
			end(o.hour(2))
			pooltest.WantError(t, reserve(121), models.KindInvalid, "when the project or your membership in it ends")
			pooltest.NoError(t, reserve(120))
			in := o.ask(10)
			in.From = o.hour(1)
			kept, ahead := o.reserve(t, o.ask(10)), o.reserve(t, in)
			end(o.hour(1))
			o.pass(t, time.Minute)
			if state(ahead) != models.ReservationGranted {
				t.Errorf("%s: %s before the end", name, state(ahead))
			}
			o.use(t, o.member, kept.ID, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1})
			o.pass(t, 58*time.Minute+59*time.Second)
			end(o.hour(1)) // extended just in time
			o.pass(t, 30*time.Second)
			if state(ahead) != models.ReservationActive {
				t.Errorf("%s: %s in the extension", name, state(ahead))
			}
			end(new(o.Store.Now().Add(time.Second)))
			o.pass(t, time.Second)
			got, err := o.Store.Read(o.Ctx).Reservation(store.AllProjects, ahead.ID)
			if err != nil {
				t.Fatal(err)
			}
			if got.State != models.ReservationCanceled || got.EndedAt == nil || got.Reason.String() == "" {
				t.Errorf("%s: %s after the end", name, got.State)
			}
			pooltest.WantError(t, reserve(1), of.after)
			o.checkFuture(t)
			end(nil)
			o.pass(t, 3*time.Hour)
		}
	})
}

// Over random histories of reservations, workspaces and time, rules 3 and 4 hold at every
// instant to come, and what a preview says is what is reserved.
func TestRulesHoldAtEveryInstant(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := newWorld(t, pooltest.New(t, storetest.Open(t, "sqlite")), 2)
		members := []models.Member{o.member}
		actors := []policies.Actor{o.actor}
		m, a := o.team(t, "speech")
		members, actors = append(members, m), append(actors, a)
		var reserved, running []int64
		owner := map[int64]int{}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			who := rapid.IntRange(0, 1).Draw(rt, "who")
			cores := rapid.Int64Range(1, 100).Draw(rt, "cores")
			demand := models.Demand{GPUs: rapid.Int64Range(1, 2).Draw(rt, "gpus"), Cores: cores, GPUMemoryMiB: cores * rapid.Int64Range(1, 800).Draw(rt, "memory")}
			switch rapid.SampledFrom([]string{"reserve", "reserve", "reserve", "change", "claim", "use", "cancel", "release", "time"}).Draw(rt, "step") {
			case "reserve":
				in := broker.ReservationInput{ProjectID: members[who].ProjectID, GPUs: demand.GPUs, Cores: demand.Cores, GPUMemoryMiB: demand.GPUMemoryMiB,
					DurationMinutes: rapid.Int64Range(1, 300).Draw(rt, "minutes"), From: o.hour(rapid.IntRange(0, 10).Draw(rt, "from")),
					AcceptPart: rapid.Bool().Draw(rt, "part"), AcceptLater: rapid.Bool().Draw(rt, "later")}
				p, err1 := o.Preview(o.Ctx, o.actorAt(actors[who]), in)
				r, err2 := o.Reserve(o.Ctx, o.actorAt(actors[who]), in)
				if err1 != nil || (err2 == nil) != (len(p.Grants) > 0) {
					rt.Fatalf("preview %+v, %v; reserved %v", p, err1, err2)
				}
				if err2 != nil {
					continue
				}
				if from, until := p.Span(); r.Outcome != p.Outcome.String() || !r.StartsAt.Equal(from) || !r.EndsAt.Equal(until) {
					rt.Fatalf("preview %+v, reserved %+v", p, r)
				}
				reserved, owner[r.ID] = append(reserved, r.ID), who
			case "change":
				if id, ok := pooltest.Pick(rt, reserved); ok {
					in := broker.ReservationChange{EndsAt: o.hour(rapid.IntRange(1, 20).Draw(rt, "ends"))}
					if rapid.Bool().Draw(rt, "move") {
						in.StartsAt = o.hour(rapid.IntRange(0, 15).Draw(rt, "starts"))
					}
					p, err1 := o.PreviewChange(o.Ctx, o.actorAt(actors[owner[id]]), id, in)
					err2 := o.Change(o.Ctx, o.actorAt(actors[owner[id]]), id, in)
					if (err2 == nil) != (err1 == nil && len(p.Grants) > 0) {
						rt.Fatalf("preview %+v, %v; changed %v", p, err1, err2)
					}
				}
			case "claim":
				limit := time.Duration(rapid.IntRange(0, 1).Draw(rt, "limited")*rapid.IntRange(1, 600).Draw(rt, "limit")) * time.Minute
				if w, d := o.ClaimFor(t, members[who], demand, limit); d.Outcome == models.OutcomeGranted {
					running = append(running, w.HolderID)
				}
			case "use":
				if id, ok := pooltest.Pick(rt, reserved); ok {
					if w, ok := o.use(t, members[owner[id]], id, demand); ok {
						running = append(running, w.HolderID)
					}
				}
			case "cancel":
				if id, ok := pooltest.Pick(rt, reserved); ok {
					if err := o.Cancel(o.Ctx, o.actorAt(actors[owner[id]]), id); err != nil && models.KindOf(err) != models.KindConflict {
						rt.Fatal(err)
					}
				}
			case "release":
				if id, ok := pooltest.Pick(rt, running); ok {
					storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, id) })
				}
			case "time":
				o.pass(t, time.Duration(rapid.IntRange(1, 300).Draw(rt, "pass"))*time.Minute)
			}
			past, err1 := o.Store.Read(o.Ctx).HoldersPastReservation(o.Store.Now())
			inTheWay, err2 := o.Pool.InTheWay(o.Store.Read(o.Ctx), o.Store.Now().Add(time.Minute))
			if err := errors.Join(err1, err2); err != nil {
				rt.Fatal(err)
			}
			for _, h := range append(past, inTheWay...) { // the reconciler stops them
				storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, h.ID) })
			}
			o.checkFuture(rt)
		}
	})
}

// The calendar shows what a request for the whole slot would be granted.
func TestCalendar(t *testing.T) {
	each(t, 2, func(t *testing.T, o *world) {
		in := o.ask(60)
		in.From = o.hour(48)
		r := o.reserve(t, in)
		ask := broker.CalendarInput{ProjectID: o.member.ProjectID, View: broker.ViewDay, Date: r.StartsAt.Format(time.DateOnly), Limit: 10}
		c, err := o.Calendar(o.Ctx, o.actorAt(o.actor), ask)
		if err != nil || len(c.Devices) != 2 || c.More {
			t.Fatalf("%+v, %v", c, err)
		}
		for _, d := range c.Devices {
			for i, cores := range d.Available {
				want := int64(100)
				if d.DeviceID == r.Grants[0].DeviceID && c.Slots[i].Before(r.EndsAt) && c.Slots[i+1].After(r.StartsAt) {
					want = 40
				}
				if cores != want {
					t.Errorf("GPU %d at %s: %d cores, want %d", d.Number, c.Slots[i], cores, want)
				}
			}
		}
		ask.Limit = 1
		first, err1 := o.Calendar(o.Ctx, o.actorAt(o.actor), ask)
		ask.After = first.Devices[0].DeviceID
		rest, err2 := o.Calendar(o.Ctx, o.actorAt(o.actor), ask)
		if !first.More || rest.More || len(rest.Devices) != 1 || rest.Devices[0].DeviceID != c.Devices[1].DeviceID {
			t.Errorf("the pages are %+v and %+v, %v %v", first.Devices, rest.Devices, err1, err2)
		}
		_, stranger := o.team(t, "speech")
		for field, bad := range map[string]broker.CalendarInput{
			"view": {View: "year"}, "date": {View: "day", Date: "2026-13-01"}, "time_zone": {View: "day", TimeZone: "Mars/Olympus"},
		} {
			bad.ProjectID = o.member.ProjectID
			var e *models.Error
			if _, err := o.Calendar(o.Ctx, o.actorAt(o.actor), bad); !errors.As(err, &e) || e.Kind != models.KindInvalid || len(e.Fields) != 1 || e.Fields[0].Name != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		if _, err := o.Calendar(o.Ctx, o.actorAt(stranger), ask); models.KindOf(err) != models.KindNotFound {
			t.Errorf("a stranger got %v", err)
		}
	})
}
