package pool_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/estimates"
	"weir/pool/pooltest"
	"weir/pool/providers"
	"weir/pool/queue"
)

var whole = models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000}

// waits makes a workspace that waits.
func (o *world) waits(t *testing.T, m models.Member, d models.Demand) models.Workspace {
	t.Helper()
	w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: o.Environment(t), Name: policies.NewSecret(),
		State: models.StateQueued, Demand: d, Version: 1, RequestedAt: o.Store.Now()}
	storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.CreateWorkspace(&w, models.Say("Requested.")) })
	return w
}

func (o *world) order(t *testing.T) (ids []int64) {
	t.Helper()
	turns, err := o.Pool.QueueEntries(o.Store.Read(o.Ctx))
	if err != nil {
		t.Fatal(err)
	}
	for _, turn := range turns {
		ids = append(ids, turn.ID)
	}
	return ids
}

func TestQueueIsByPriorityThenFairness(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech, urgent := o.NewTeam(t, "vision"), o.NewTeam(t, "speech"), o.NewTeam(t, "urgent")
		o.Enlist(t, pooltest.Machine(3))
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			p, err := q.Project(store.AllProjects, urgent.ProjectID)
			if err != nil {
				return err
			}
			p.Priority = 90
			return q.UpdateProject(&p)
		})
		for _, m := range []models.Member{vision, vision, speech} {
			o.WantClaim(t, m, whole, models.OutcomeGranted)
		}
		v1, v2 := o.waits(t, vision, whole), o.waits(t, vision, whole)
		s1, s2 := o.waits(t, speech, whole), o.waits(t, speech, whole)
		u := o.waits(t, urgent, whole)
		// vision uses more GPUs, so that speech comes first, then they alternate.
		if got, want := o.order(t), []int64{u.HolderID, s1.HolderID, v1.HolderID, s2.HolderID, v2.HolderID}; !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
		view, err := o.Pool.View(o.Ctx, o.Root)
		if err != nil || len(view.Waiting) != 5 || view.Waiting[1].Behind != queue.Priority || view.Waiting[2].Behind != queue.Fairness {
			t.Fatalf("%+v, %v", view.Waiting, err)
		}
		if own, err := o.Pool.ViewOf(o.Ctx, o.Root, v1.HolderID, s2.HolderID); err != nil || own.Position(v1.HolderID) != 3 || own.Position(s2.HolderID) != 4 || own.Position(u.HolderID) != 0 {
			t.Errorf("positions %+v, %v", own.Waiting, err)
		}
		o.Clock.Advance(time.Hour) // everybody has waited for long: first come, first served
		if got, want := o.order(t), []int64{u.HolderID, v1.HolderID, v2.HolderID, s1.HolderID, s2.HolderID}; !slices.Equal(got, want) {
			t.Errorf("after an hour %v, want %v", got, want)
		}
		stranger, err := o.Pool.View(o.Ctx, o.Actor(t, o.NewPerson(t)))
		if err != nil || len(stranger.Waiting) != 5 || !stranger.Waiting[0].Anonymous || stranger.Waiting[0].ProjectName != "" || stranger.Waiting[0].ID != 0 {
			t.Errorf("%+v, %v", stranger.Waiting, err)
		}
		if stranger.Unmet != nil || len(view.Unmet) != 1 || view.Unmet[0].Waiting != 5 || view.Unmet[0].Cores != 100 {
			t.Errorf("unmet demand: %+v; a stranger sees %+v", view.Unmet, stranger.Unmet)
		}
	})
}

func TestForecast(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		ask := whole
		estimate := func() (outcome estimates.Outcome, in time.Duration, known bool) {
			t.Helper()
			v, err := o.Pool.LaunchView(o.Ctx, o.Root, models.Project{ID: m.ProjectID}, ask, models.Decision{})
			f := v.Estimate
			if err != nil || f.Text.Empty() {
				t.Fatalf("%+v, %v", f, err)
			}
			return f.Outcome, f.At.Sub(o.Store.Now()), f.Known
		}
		if outcome, in, _ := estimate(); outcome != estimates.Placed || in != 0 {
			t.Errorf("an empty pool: %v in %v", outcome, in)
		}
		for range 9 { // what was held before lasted for 40 minutes
			past := o.WantClaim(t, m, whole, models.OutcomeGranted)
			o.Clock.Advance(40 * time.Minute)
			storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, past.HolderID) })
		}
		o.WantClaim(t, m, whole, models.OutcomeGranted)
		o.Clock.Advance(10 * time.Minute)
		if outcome, in, known := estimate(); outcome != estimates.Placed || in != 30*time.Minute || known {
			t.Errorf("by the past: %v in %v, known %v", outcome, in, known)
		}
		o.waits(t, m, whole)
		if _, in, _ := estimate(); in != 70*time.Minute {
			t.Errorf("behind another: in %v", in)
		}
		if _, err := o.Providers.Recall(o.Ctx, o.Root, o.Provider(t).ID, providers.RecallInput{GraceMinutes: 20}); err != nil {
			t.Fatal(err)
		}
		if outcome, _, _ := estimate(); outcome != estimates.Unknown {
			t.Errorf("only a machine that was called back could serve it: %v", outcome)
		}
		ask.GPUs = 2
		if outcome, _, _ := estimate(); outcome != estimates.Never {
			t.Errorf("more than there is: %v", outcome)
		}
	})
}

// A request that is not queued yet is estimated at its place by fairness: with
// the use and the quota of its project.
func TestEstimateIsByFairness(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(1))
		for range 9 { // shares lasted for 40 minutes
			past := o.WantClaim(t, vision, whole, models.OutcomeGranted)
			o.Clock.Advance(40 * time.Minute)
			storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, past.HolderID) })
		}
		o.WantClaim(t, vision, whole, models.OutcomeGranted)
		o.Clock.Advance(10 * time.Minute)
		o.waits(t, vision, whole)
		for m, want := range map[*models.Member]time.Duration{&speech: 30 * time.Minute, &vision: 70 * time.Minute} {
			p, err1 := o.Store.Read(o.Ctx).Project(store.AllProjects, m.ProjectID)
			v, err2 := o.Pool.LaunchView(o.Ctx, o.Root, p, whole, models.Decision{})
			e, err := v.Estimate, errors.Join(err1, err2)
			if err != nil || e.Outcome != estimates.Placed || e.At.Sub(o.Store.Now()) != want {
				t.Errorf("project %d: %+v, %v; want it in %s", m.ProjectID, e, err, want)
			}
		}
	})
}

func TestRefusedDemandIsCounted(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		why := models.Say("the pool has no GPUs")
		d := models.Demand{GPUs: 2, Cores: 100, GPUModel: "H200"}
		for range 2 {
			storetest.InTx(t, o.Store, func(q *store.Queries) error {
				c := models.Claim{Holder: models.Holder{ProjectID: m.ProjectID, UserID: m.UserID}, Demand: d}
				return o.Pool.RecordUnmet(q, c, why)
			})
		}
		view, err := o.Pool.View(o.Ctx, o.Root)
		if err != nil || len(view.Unmet) != 1 || view.Unmet[0].Refused != 2 || view.Unmet[0].Model != "H200" || view.Unmet[0].GPUs != 2 || view.DecisionCount != 2 {
			t.Errorf("%+v, %v", view.Unmet, err)
		}
		o.Clock.Advance(25 * time.Hour)
		if view, err := o.Pool.View(o.Ctx, o.Root); err != nil || len(view.Unmet) != 0 {
			t.Errorf("a day later %+v, %v", view.Unmet, err)
		}
	})
}

// A request that only a machine could serve that does not lend now keeps
// nobody waiting, and one that waits keeps only machines that could serve it.
func TestOnlyNodesThatCanServeAreReserved(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(1))
		single := o.Provider(t)
		single.Agent = true // it goes on beside the next
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.UpdateProvider(&single) })
		pair := pooltest.Machine(3)[1:]
		if err := o.Providers.Enlist(o.Ctx, providers.Host{Name: "pair", Digest: providers.MachineDigest("pair")}, pair); err != nil {
			t.Fatal(err)
		}
		two := models.Demand{GPUs: 2, Cores: 100, GPUMemoryMiB: 80_000}
		o.WantClaim(t, vision, two, models.OutcomeGranted)
		o.waits(t, vision, two)
		o.Clock.Advance(11 * time.Minute)
		o.WantClaim(t, speech, whole, models.OutcomeGranted) // on the machine with one GPU
	})
}

// Until a request has waited for 10 minutes, others are placed before it; then the
// machines on which it can come to be placed are kept for it, and the queue says so.
func TestBackfillEndsAfterTenMinutes(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		o.WantClaim(t, vision, whole, models.OutcomeGranted)
		large := o.waits(t, speech, models.Demand{GPUs: 2, Cores: 100, GPUMemoryMiB: 80_000})
		o.Clock.Advance(time.Minute)
		small := o.waits(t, vision, pooltest.Half)
		second := func() models.Decision {
			t.Helper()
			entries, err := o.Pool.QueueEntries(o.Store.Read(o.Ctx))
			if err != nil || len(entries) != 2 || entries[0].ID != large.HolderID || entries[1].ID != small.HolderID {
				t.Fatalf("%+v, %v", entries, err)
			}
			return entries[1].Decision
		}
		o.Clock.Advance(9*time.Minute - time.Microsecond)
		if d := second(); d.Outcome != models.OutcomeGranted {
			t.Errorf("before 10 minutes it is %s: %s", d.Outcome, d.Explanation)
		}
		o.Clock.Advance(time.Microsecond)
		if d := second(); d.Outcome != models.OutcomeDelayed || !strings.Contains(d.Explanation.String(), "longer than 10 minutes") {
			t.Errorf("after 10 minutes it is %s: %s", d.Outcome, d.Explanation)
		}
		o.WantClaim(t, vision, pooltest.Half, models.OutcomeDelayed)
	})
}

// What is held until a machine closes is of no use to who waits: it does not
// lend then.
func TestForecastKnowsThatAMachineCloses(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		inUse := o.WantClaim(t, m, whole, models.OutcomeGranted)
		now := o.Store.Now()
		hours := []models.Window{{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: now.Format("15:04"), To: now.Add(time.Hour).Format("15:04")}}
		terms := models.Terms{Hours: hours, GraceMinutes: 120}
		if _, err := o.Providers.Update(o.Ctx, o.Root, o.Provider(t).ID, providers.ProviderInput{Name: "node", Terms: terms}); err != nil {
			t.Fatal(err)
		}
		if o.CountEvents(t, inUse, "certain hours") != 1 {
			t.Fatal("the holder does not know of the end")
		}
		v, err := o.Pool.LaunchView(o.Ctx, o.Root, models.Project{ID: m.ProjectID}, whole, models.Decision{})
		if err != nil || v.Estimate.Outcome != estimates.Unknown {
			t.Errorf("%+v, %v", v, err)
		}
	})
}
