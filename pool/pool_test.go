package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
	"weir/policies"
	"weir/pool"
	"weir/pool/pooltest"
)

type broken struct{}

func (broken) Devices(context.Context) ([]pool.DeviceReport, error) {
	return nil, errors.New("the driver does not answer")
}

func TestEnlist(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, pooltest.Machine(3))
		first := o.DevicesByUUID(t)
		if _, err := o.Pool.UpdateDevice(o.Ctx, o.Root, first["GPU-1"].ID, pool.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Pass(time.Hour)
		changed := pooltest.Machine(4)[1:] // the first has vanished, a fourth has come
		changed[1].Driver = "new"
		o.Enlist(t, changed)
		now := o.DevicesByUUID(t)
		if len(now) != 4 || now["GPU-0"].Present || !now["GPU-3"].Present || now["GPU-2"].Driver != "new" {
			t.Errorf("devices: %+v", now)
		}
		if d := now["GPU-1"]; !d.Exclusive() || d.ID != first["GPU-1"].ID || !d.CreatedAt.Equal(first["GPU-1"].CreatedAt) {
			t.Errorf("what an administrator had set is gone: %+v", d)
		}
		o.Enlist(t, pooltest.Machine(4))
		if d := o.DevicesByUUID(t)["GPU-0"]; !d.Present || d.ID != first["GPU-0"].ID {
			t.Errorf("the first is back: %+v", d)
		}
		if err := o.Pool.Enlist(o.Ctx, pool.Host{Name: "node", Digest: pool.MachineDigest("node")}, broken{}); err == nil {
			t.Error("a broken inventory was enlisted")
		}
		if totals, err := o.totals(); err != nil || totals.GPUs != 4 || totals.FreeCores != 400 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

func TestNothingIsPlacedOnAVanishedDevice(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		w, a := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 50})
		if a.Outcome != models.OutcomeGranted {
			t.Fatalf("%+v", a)
		}
		o.Enlist(t, pooltest.Machine(0))
		v, err := o.Pool.View(o.Ctx, o.Root)
		if err != nil || len(v.Providers) != 1 || len(v.Providers[0].Devices) != 1 || len(v.Providers[0].Devices[0].Shares) != 1 {
			t.Errorf("what is still held is not shown: %+v, %v", v, err)
		}
		if _, a := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10}); a.Outcome != models.OutcomeRefused {
			t.Errorf("%+v", a)
		}
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, w.ID) })
		if v, err := o.Pool.View(o.Ctx, o.Root); err != nil || len(v.Providers[0].Devices) != 0 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

func TestAnswers(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		o.Claim(t, m, models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000})
		o.Claim(t, m, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 20_000})
		for _, c := range []struct {
			name    string
			project int64
			demand  models.Demand
			outcome string
			fewer   models.Demand
		}{
			{"no GPU", m.ProjectID, models.Demand{CPUMilli: 1}, models.OutcomeGranted, models.Demand{}},
			{"the rest", m.ProjectID, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 60_000}, models.OutcomeGranted, models.Demand{}},
			{"more than the rest", m.ProjectID, models.Demand{GPUs: 1, Cores: 80, GPUMemoryMiB: 8_000}, models.OutcomePartial, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 4_000}},
			{"memory is short", m.ProjectID, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 80_000}, models.OutcomePartial, models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 60_000}},
			{"two, one is full", m.ProjectID, models.Demand{GPUs: 2, Cores: 10, GPUMemoryMiB: 1}, models.OutcomeDelayed, models.Demand{}},
			{"another project's", other.ProjectID, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1}, models.OutcomeDelayed, models.Demand{}},
			{"three of two", m.ProjectID, models.Demand{GPUs: 3, Cores: 10, GPUMemoryMiB: 1}, models.OutcomeRefused, models.Demand{}},
			{"no such model", m.ProjectID, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1, GPUModel: "B200"}, models.OutcomeRefused, models.Demand{}},
			{"too much memory", m.ProjectID, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 80_001}, models.OutcomeRefused, models.Demand{}},
			{"too many cores", m.ProjectID, models.Demand{GPUs: 1, Cores: 101, GPUMemoryMiB: 1}, models.OutcomeRefused, models.Demand{}},
			{"no cores", m.ProjectID, models.Demand{GPUs: 1, GPUMemoryMiB: 1}, models.OutcomeRefused, models.Demand{}},
		} {
			a, err := o.Pool.Answer(o.Store.Read(o.Ctx), models.Workspace{ProjectID: c.project, Demand: c.demand})
			if err != nil || a.Outcome != c.outcome || a.Explanation.Empty() {
				t.Errorf("%s: %+v, %v", c.name, a, err)
			}
			if (a.Fewer != nil) != (c.outcome == models.OutcomePartial) || a.Fewer != nil && *a.Fewer != c.fewer {
				t.Errorf("%s: fewer is %+v, want %+v", c.name, a.Fewer, c.fewer)
			}
			if shares, _ := o.Store.Read(o.Ctx).OpenShares(); len(shares) != 2 {
				t.Errorf("%s: an answer has taken shares", c.name)
			}
		}
	})
}

func TestMemoryInProportion(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, append(pooltest.Machine(1), pool.DeviceReport{UUID: "GPU-small", Model: "NVIDIA L4", MemoryMiB: 24_000}))
		for _, c := range []struct{ in, out models.Demand }{
			{models.Demand{GPUs: 1, Cores: 50}, models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 12_000}},
			{models.Demand{GPUs: 1, Cores: 50, GPUModel: "h100"}, models.Demand{GPUs: 1, Cores: 50, GPUModel: "h100", GPUMemoryMiB: 40_000}},
			{models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 7}, models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 7}},
			{models.Demand{Cores: 50, GPUMemoryMiB: 7, GPUModel: "x", CPUMilli: 9}, models.Demand{CPUMilli: 9}},
		} {
			if got, err := o.Pool.Complete(o.Store.Read(o.Ctx), c.in); err != nil || got != c.out {
				t.Errorf("%+v became %+v, %v; want %+v", c.in, got, err, c.out)
			}
		}
	})
}

func TestExclusiveAndMixedDevices(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(1))
		id := o.DevicesByUUID(t)["GPU-0"].ID
		set := func(in pool.DeviceInput) error { return pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, id, in)) }
		part := models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 100}
		outcome := func(m models.Member, want string) models.Workspace {
			t.Helper()
			w, a := o.Claim(t, m, part)
			if a.Outcome != want {
				t.Errorf("%s, want %s: %s", a.Outcome, want, a.Explanation)
			}
			o.KeepsDevices(t)
			return w
		}
		pooltest.WantError(t, set(pool.DeviceInput{Sharing: models.SharingExclusive, Mixed: true}), models.KindInvalid, "mixed")
		first := outcome(m, models.OutcomeGranted)
		outcome(other, models.OutcomeDelayed)
		if err := set(pool.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true}); err != nil {
			t.Fatal(err)
		}
		foreign := outcome(other, models.OutcomeGranted)
		pooltest.WantError(t, set(pool.DeviceInput{Sharing: models.SharingTimeSlicing}), models.KindConflict, "2 projects")
		pooltest.WantError(t, set(pool.DeviceInput{Sharing: models.SharingExclusive}), models.KindConflict, "2 workspaces")
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, foreign.ID) })
		if err := set(pool.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Fatal(err)
		}
		outcome(m, models.OutcomeDelayed)
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, first.ID) })
		held, a := o.Claim(t, m, part)
		if a.Outcome != models.OutcomeGranted || a.Grants[0].Enforcement != models.EnforcedExclusive {
			t.Errorf("%+v", a)
		}
		if shares, err := o.Store.Read(o.Ctx).SharesOf(held.ID); err != nil || len(shares) != 1 || shares[0].Enforcement != models.EnforcedExclusive {
			t.Errorf("%+v, %v", shares, err)
		}
		pooltest.WantError(t, set(pool.DeviceInput{Sharing: models.SharingTimeSlicing, Version: 1}), models.KindConflict)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, 99, pool.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Actor(t, o.NewPerson(t)), id, pool.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindForbidden)
	})
}

// Of many claims at the same moment, as many are granted as fit, no matter
// which.
func TestConcurrentClaimsFillThePoolExactly(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		o.Environment(t)
		answers := make([]string, 50)
		modelstest.Together(len(answers), func(i int) {
			_, a := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 20_000})
			answers[i] = a.Outcome
			o.KeepsDevices(t)
		})
		granted := slices.DeleteFunc(answers, func(a string) bool { return a != models.OutcomeGranted })
		if len(granted) != 6 {
			t.Errorf("%d claims were granted", len(granted))
		}
		if totals, err := o.totals(); err != nil || totals.HeldCores != 180 || totals.HeldMemoryMiB != 120_000 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

func TestTheViewHidesForeignNames(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		w, a := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1})
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Record(q, w, a) })
		w.State = models.StateQueued
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return q.Transition(&w, models.StateStarting, models.Text{}) })
		for _, c := range []struct {
			member    models.Member
			anonymous bool
		}{{m, false}, {other, true}} {
			u, err := o.Store.Read(o.Ctx).User(c.member.UserID)
			if err != nil {
				t.Fatal(err)
			}
			v, err := o.Pool.View(o.Ctx, o.Actor(t, u))
			if err != nil || len(v.Waiting) != 1 || len(v.Providers) != 1 {
				t.Fatalf("%+v, %v", v, err)
			}
			shown := fmt.Sprintf("%+v", v.Waiting) + fmt.Sprintf("%+v", v.Decisions)
			for _, d := range v.Providers[0].Devices {
				shown += fmt.Sprintf("%+v", d.Shares)
			}
			for _, secret := range []string{"vision", w.Name, "user1@"} {
				if got := strings.Contains(shown, secret); got == c.anonymous {
					t.Errorf("member of %d sees %q: %t", c.member.ProjectID, secret, got)
				}
			}
			_, history, err := o.Pool.Device(o.Ctx, o.Actor(t, u), v.Providers[0].Devices[0].ID)
			if err != nil || len(history) != 1 || history[0].Anonymous != c.anonymous {
				t.Errorf("%+v, %v", history, err)
			}
		}
		_, err := o.Pool.View(o.Ctx, policies.Actor{})
		pooltest.WantError(t, err, models.KindUnauthenticated)
	})
}

// What is remembered is what would be read: whatever changes the pool, and by
// whom, the next look sees it.
func TestRememberedStateIsTheTrueOne(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(4))
		random, env := rand.New(rand.NewPCG(1, 2)), o.Environment(t)
		var held []models.Workspace
		for range 60 {
			switch random.IntN(5) {
			case 0, 1:
				w, a := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10 + random.Int64N(90), GPUMemoryMiB: 1000})
				if a.Outcome == models.OutcomeGranted {
					held = append(held, w)
				}
			case 2:
				if len(held) > 0 {
					i := random.IntN(len(held))
					modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, held[i].ID) })
					held = slices.Delete(held, i, i+1)
				}
			case 3:
				o.Heartbeat(t, pool.Beat{Devices: pooltest.Machine(3 + random.IntN(2))})
			case 4:
				err := o.Store.InTx(o.Ctx, func(q *models.Queries) error { // a claim that is rolled back
					w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: env,
						Name: "undone", State: models.StateStarting, Demand: half, Version: 1, RequestedAt: q.Now()}
					if err := q.CreateWorkspace(&w, models.Say("Requested.")); err != nil {
						return err
					}
					_, err := o.Pool.Claim(q, w)
					return errors.Join(err, errUndone)
				})
				if !errors.Is(err, errUndone) {
					t.Fatal(err)
				}
			}
			o.KeepsDevices(t)
			fresh := pool.New(o.Store, access) // remembers nothing
			got, err := o.Pool.View(o.Ctx, o.Root)
			want, err2 := fresh.View(o.Ctx, o.Root)
			if err != nil || err2 != nil || got.Totals != want.Totals {
				t.Fatalf("%+v, %v; read anew %+v, %v", got.Totals, err, want.Totals, err2)
			}
		}
	})
}

var errUndone = errors.New("undone")
