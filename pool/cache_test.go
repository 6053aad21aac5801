package pool_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// What is cached is what would be read: whatever changes the pool, and by
// whom, the next look sees it.
func TestCachedSnapshotIsTheTrueOne(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(4))
		random, env := rand.New(rand.NewPCG(1, 2)), o.Environment(t)
		var inUse []models.Workspace
		for range 60 {
			switch random.IntN(5) {
			case 0, 1:
				w, d := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10 + random.Int64N(90), GPUMemoryMiB: 1000})
				if d.Outcome == models.OutcomeGranted {
					inUse = append(inUse, w)
				}
			case 2:
				if len(inUse) > 0 {
					i := random.IntN(len(inUse))
					storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, inUse[i].HolderID) })
					inUse = slices.Delete(inUse, i, i+1)
				}
			case 3:
				o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(3 + random.IntN(2)))})
			case 4:
				err := o.Store.InTx(o.Ctx, func(q *store.Queries) error { // a claim that is rolled back
					w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: env,
						Name: "undone", State: models.StateStarting, Demand: pooltest.Half, Version: 1, RequestedAt: q.Now()}
					if err := q.CreateWorkspace(&w, models.Say("Requested.")); err != nil {
						return err
					}
					_, err := o.Pool.Claim(q, w.Claim())
					return errors.Join(err, errUndone)
				})
				if !errors.Is(err, errUndone) {
					t.Fatal(err)
				}
			}
			o.CheckDevices(t)
			fresh := pool.New(o.Store, access, o.Providers) // has cached nothing
			got, err := o.Pool.View(o.Ctx, o.Root)
			want, err2 := fresh.View(o.Ctx, o.Root)
			if err != nil || err2 != nil || got.Totals != want.Totals {
				t.Fatalf("%+v, %v; read anew %+v, %v", got.Totals, err, want.Totals, err2)
			}
		}
	})
}

// A GPU that was moved to another machine is that one's, with the shares on it, also if the server has read only
// the shares of the first one again, or nothing of it.
func TestCachedSnapshotOfMovedDevices(t *testing.T) {
	for _, released := range []bool{false, true} {
		each(t, func(t *testing.T, o *world) {
			access, err := policies.NewAccess()
			if err != nil {
				t.Fatal(err)
			}
			m := o.NewTeam(t, "vision")
			o.Enlist(t, pooltest.Machine(1))
			inUse, _ := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1000})
			home := o.Provider(t)
			other := models.Provider{Name: "other", State: models.ProviderOnline, Version: 1}
			storetest.InTx(t, o.Store, func(q *store.Queries) error {
				other.SeenAt, other.CreatedAt = q.Now(), q.Now()
				return q.CreateProvider(&other)
			})
			servers := providers.New(o.Store, access, func(models.Provider) bool { return true })
			cached := pool.New(o.Store, access, servers)
			demand := models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1000}
			outcome := func(s *pool.Scheduler) string {
				available, err := s.Availability(o.Store.Read(o.Ctx))
				if err != nil {
					t.Fatal(err)
				}
				return available.Decide(models.Project{ID: m.ProjectID}, demand, 0).Outcome
			}
			if got := outcome(cached); got == models.OutcomeGranted {
				t.Fatal("the GPU is free")
			}
			for _, change := range []func(q *store.Queries) error{
				func(q *store.Queries) error {
					if !released {
						return nil
					}
					return o.Pool.Release(q, inUse.HolderID)
				},
				func(q *store.Queries) error {
					devices, err := q.DevicesOf(home.ID)
					if err != nil {
						return err
					}
					devices[0].ProviderID = other.ID
					return q.UpdateDevice(&devices[0])
				},
				func(q *store.Queries) error {
					if !released {
						return nil
					}
					share := models.Share{HolderID: inUse.HolderID, ProjectID: m.ProjectID, UserID: m.UserID, DeviceID: 1, Cores: 60, MemoryMiB: 1000, Enforcement: "advisory", From: q.Now()}
					return q.CreateShare(&share)
				},
			} {
				storetest.InTx(t, o.Store, change)
			}
			if got, want := outcome(cached), outcome(pool.New(o.Store, access, servers)); got != want || want == models.OutcomeGranted {
				t.Errorf("released: %v: cached %s, read anew %s", released, got, want)
			}
			if free, _, err := cached.FreeDevices(o.Ctx, o.Root, models.DeviceQuery{ProjectID: m.ProjectID, Cores: 1}); err != nil || len(free) != 1 || free[0].Provider != "other" {
				t.Errorf("free: %+v, %v; want the GPU at its new machine", free, err)
			}
		})
	}
}

// A server that has listed its devices when it started decides without reading them again, also when it begins to
// listen to other servers, but not when the database may be another one.
func TestFirstDecisionUsesWhatTheStartHasRead(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		if list, err := o.Pool.Devices(o.Ctx); err != nil || len(list) != 2 {
			t.Fatalf("devices: %+v, %v", list, err)
		}
		read := false
		if err := o.Store.Watch(func(s store.Statement) { read = read || strings.Contains(s.SQL, "devices") }); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			topics []string
			reads  bool
		}{{nil, false}, {[]string{store.AllTopics}, false}, {[]string{store.AllTopics, store.Reconnected}, true}} {
			o.Store.Publish(c.topics...)
			if read = false; o.Available(t).Decide(models.Project{}, pooltest.Half, 0).Outcome != models.OutcomeGranted || read != c.reads {
				t.Errorf("after %v: devices are read: %v, want %v", c.topics, read, c.reads)
			}
		}
	})
}

// Hours end and machines become unreachable without a change in the database; what is
// cached follows.
func TestCachedSnapshotFollowsTheClock(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		reachable := true
		machines := providers.New(o.Store, access, func(models.Provider) bool { return reachable })
		o.Pool = pool.New(o.Store, access, machines)
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		wantFree := func(what string, want bool) {
			t.Helper()
			if d := o.Available(t).Decide(models.Project{ID: m.ProjectID}, pooltest.Half, 0); (d.Outcome == models.OutcomeGranted) != want {
				t.Errorf("%s: %s, %s", what, d.Outcome, d.Explanation)
			}
		}
		wantFree("at first", true)
		for _, reachable = range []bool{false, true} {
			o.Clock.Advance(time.Second)
			wantFree("a second after its reachability changed", reachable)
		}
		now := o.Store.Now()
		hours := []models.Window{{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: now.Format("15:04"), To: now.Add(time.Hour).Format("15:04")}}
		if _, err := o.Providers.Update(o.Ctx, o.Root, o.Provider(t).ID, providers.ProviderInput{Name: "node", Terms: models.Terms{Hours: hours}}); err != nil {
			t.Fatal(err)
		}
		wantFree("in its hours", true)
		o.Clock.Advance(now.Truncate(time.Minute).Add(time.Hour).Sub(now))
		wantFree("when its hours end", false)
	})
}

var errUndone = errors.New("undone")
