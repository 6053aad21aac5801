package pool_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
	"weir/policies"
	"weir/pool"
	"weir/pool/placement"
	"weir/pool/pooltest"
)

var half = models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 40_000}

func (o *world) totals() (placement.Totals, error) {
	v, err := o.Pool.View(o.Ctx, o.Root)
	return v.Totals, err
}

// told are the lines of a workspace's history that say text.
func (o *world) told(t *testing.T, w models.Workspace, text string) (n int) {
	t.Helper()
	events, err := o.Store.Read(o.Ctx).WorkspaceEvents(w.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(e.Message.String(), text) {
			n++
		}
	}
	return n
}

func (o *world) sweep(t *testing.T) {
	t.Helper()
	if err := o.Pool.Sweep(o.Ctx); err != nil {
		t.Fatal(err)
	}
}

func (o *world) outcome(t *testing.T, m models.Member, d models.Demand, want string) models.Workspace {
	t.Helper()
	w, a := o.Claim(t, m, d)
	if a.Outcome != want {
		t.Errorf("%s, want %s: %s", a.Outcome, want, a.Explanation)
	}
	o.KeepsDevices(t)
	return w
}

func TestDrainAndRecall(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		id := o.Provider(t).ID
		held := o.outcome(t, m, half, models.OutcomeGranted)
		drained, err := o.Pool.Drain(o.Ctx, o.Root, id, 0)
		if err != nil || drained.State != models.ProviderDraining {
			t.Fatalf("%+v, %v", drained, err)
		}
		o.outcome(t, m, half, models.OutcomeDelayed)
		pooltest.WantError(t, pooltest.Error(o.Pool.Drain(o.Ctx, o.Root, id, drained.Version-1)), models.KindConflict)
		if resumed, err := o.Pool.Resume(o.Ctx, o.Root, id, drained.Version); err != nil || resumed.State != models.ProviderOnline {
			t.Fatalf("%+v, %v", resumed, err)
		}
		o.outcome(t, m, half, models.OutcomeGranted)

		pooltest.WantError(t, pooltest.Error(o.Pool.Recall(o.Ctx, o.Root, id, pool.RecallInput{NoticeMinutes: -1})), models.KindInvalid, "notice_minutes")
		recalled, err := o.Pool.Recall(o.Ctx, o.Root, id, pool.RecallInput{NoticeMinutes: 30, Reason: "maintenance"})
		if err != nil || recalled.State != models.ProviderRecalled || !recalled.RecallAt.Equal(o.Store.Now().Add(30*time.Minute)) {
			t.Fatalf("%+v, %v", recalled, err)
		}
		o.sweep(t)
		if n := o.told(t, held, "maintenance"); n != 1 {
			t.Errorf("the holder was told %d times", n)
		}
		o.outcome(t, m, half, models.OutcomeDelayed)
		overdue := func() int {
			list, err := o.Store.Read(o.Ctx).Overdue(o.Store.Now())
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if n := overdue(); n != 0 {
			t.Errorf("%d are overdue before the notice is over", n)
		}
		o.Clock.Pass(31 * time.Minute)
		if n := overdue(); n != 2 {
			t.Errorf("%d are overdue, of two", n)
		}
		if _, err := o.Pool.Resume(o.Ctx, o.Root, id, 0); err != nil {
			t.Fatal(err)
		}
		if n := overdue(); n != 2 || o.told(t, held, "not end early") != 0 {
			t.Errorf("%d are overdue: the recall was taken back when their end had come", n)
		}
	})
}

func TestRemove(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		home := o.Provider(t)
		pooltest.WantError(t, pooltest.Error(o.Pool.Remove(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "Drain")
		modelstest.InTx(t, o.Store, func(q *models.Queries) error {
			home.Agent = true // an agent speaks for the machine
			return q.UpdateProvider(&home)
		})
		held := o.outcome(t, m, half, models.OutcomeGranted)
		pooltest.WantError(t, pooltest.Error(o.Pool.Remove(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "1 shares")
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, held.ID) })
		removed, err := o.Pool.Remove(o.Ctx, o.Root, home.ID, 0)
		if err != nil || removed.State != models.ProviderOffline {
			t.Fatalf("%+v, %v", removed, err)
		}
		if o.DevicesByUUID(t)["GPU-0"].Present {
			t.Error("its GPU is still there")
		}
		pooltest.WantError(t, pooltest.Error(o.Pool.Drain(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "not in the pool")
	})
}

func TestOwnersManageTheirOwn(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, pooltest.Machine(2))
		p, mine, foreign := o.Provider(t), o.NewPerson(t), o.NewPerson(t)
		input := pool.ProviderInput{Name: "gpu-1", OwnerID: &mine.ID}
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateProvider(o.Ctx, o.Actor(t, mine), p.ID, input)), models.KindForbidden)
		p, err := o.Pool.UpdateProvider(o.Ctx, o.Root, p.ID, input)
		if err != nil || p.Name != "gpu-1" || *p.OwnerID != mine.ID {
			t.Fatalf("%+v, %v", p, err)
		}
		owner, other := o.Actor(t, mine), o.Actor(t, foreign)
		if _, err := o.Pool.Drain(o.Ctx, owner, p.ID, 0); err != nil {
			t.Error(err)
		}
		pooltest.WantError(t, pooltest.Error(o.Pool.Resume(o.Ctx, other, p.ID, 0)), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateProvider(o.Ctx, owner, p.ID, pool.ProviderInput{Name: "gpu-1", OwnerID: &foreign.ID})), models.KindForbidden)
		device := o.DevicesByUUID(t)["GPU-0"]
		if _, err := o.Pool.UpdateDevice(o.Ctx, owner, device.ID, pool.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Error(err)
		}
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, owner, device.ID, pool.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true})), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, other, device.ID, pool.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateProvider(o.Ctx, owner, p.ID, pool.ProviderInput{Name: "gpu-1", Terms: models.Terms{Devices: []int64{99}}})), models.KindInvalid, "devices")
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateProvider(o.Ctx, owner, p.ID, pool.ProviderInput{Name: "gpu-1", Terms: models.Terms{Projects: []int64{99}}})), models.KindInvalid, "projects")
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateProvider(o.Ctx, owner, p.ID, pool.ProviderInput{Name: "", Terms: models.Terms{Cores: 101}})), models.KindInvalid, "cores")
	})
}

func TestTermsBoundWhatIsPlaced(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		p, first := o.Provider(t), o.DevicesByUUID(t)["GPU-0"].ID
		terms := func(terms models.Terms) {
			t.Helper()
			if _, err := o.Pool.UpdateProvider(o.Ctx, o.Root, p.ID, pool.ProviderInput{Name: "node", Terms: terms}); err != nil {
				t.Fatal(err)
			}
		}
		terms(models.Terms{Cores: 50, Devices: []int64{first}, Projects: []int64{vision.ProjectID}})
		o.outcome(t, speech, half, models.OutcomeRefused)
		held := o.outcome(t, vision, half, models.OutcomeGranted)
		o.outcome(t, vision, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 10}, models.OutcomeDelayed) // 50 of each, and one device
		shares, err := o.Store.Read(o.Ctx).SharesOf(held.ID)
		if err != nil || shares[0].DeviceID != first {
			t.Errorf("%+v, %v", shares, err)
		}

		// Only in the next hour; its holder learns of the end a quarter before.
		now := o.Store.Now()
		until := now.Add(time.Hour)
		terms(models.Terms{NoticeMinutes: 15, Hours: []models.Window{{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: now.Format("15:04"), To: until.Format("15:04")}}})
		o.sweep(t)
		if n := o.told(t, held, "certain hours"); n != 0 {
			t.Errorf("told %d times, an hour before", n)
		}
		o.Clock.Pass(50 * time.Minute)
		o.Heartbeat(t, pool.Beat{Devices: pooltest.Machine(2)})
		o.sweep(t)
		o.sweep(t)
		if n := o.told(t, held, "certain hours"); n != 1 {
			t.Errorf("told %d times, ten minutes before", n)
		}
		o.Clock.Pass(15 * time.Minute)
		o.Heartbeat(t, pool.Beat{Devices: pooltest.Machine(2)})
		o.sweep(t)
		if list, err := o.Store.Read(o.Ctx).Overdue(o.Store.Now()); err != nil || len(list) != 1 || list[0].ID != held.ID {
			t.Errorf("overdue: %+v, %v", list, err)
		}
		o.outcome(t, vision, half, models.OutcomeDelayed)
	})
}

func TestLostAndBack(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		held := o.outcome(t, m, half, models.OutcomeGranted)
		o.Clock.Pass(15 * time.Second)
		o.sweep(t)
		if p := o.Provider(t); p.State != models.ProviderOnline {
			t.Fatalf("%s after 15 seconds", p.State)
		}
		o.Clock.Pass(15 * time.Second)
		o.sweep(t)
		o.sweep(t)
		if p := o.Provider(t); p.State != models.ProviderLost || p.Reason.Empty() {
			t.Fatalf("%+v", p)
		}
		if n := o.told(t, held, "is lost"); n != 1 {
			t.Errorf("the holder was told %d times", n)
		}
		o.outcome(t, m, half, models.OutcomeDelayed)
		drained, err := o.Pool.Drain(o.Ctx, o.Root, o.Provider(t).ID, 0)
		if err != nil || drained.State != models.ProviderLost {
			t.Errorf("drained while lost: %+v, %v", drained, err)
		}
		o.Heartbeat(t, pool.Beat{Devices: pooltest.Machine(1)})
		if p := o.Provider(t); p.State != models.ProviderDraining || o.told(t, held, "answers again") != 1 {
			t.Errorf("back: %+v", p)
		}
		if _, err := o.Pool.Resume(o.Ctx, o.Root, drained.ID, 0); err != nil {
			t.Fatal(err)
		}
		o.outcome(t, m, half, models.OutcomeGranted)
		o.outcome(t, m, half, models.OutcomeDelayed) // what was held was kept
	})
}

// A portal that was away for long finds everybody's last word old.
func TestNobodyIsLostBecauseThePortalWasAway(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, pooltest.Machine(1))
		o.Clock.Pass(time.Hour)
		access, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		restarted := pool.New(o.Store, access)
		if err := restarted.Sweep(o.Ctx); err != nil {
			t.Fatal(err)
		}
		if p := o.Provider(t); p.State != models.ProviderOnline {
			t.Errorf("%s at once", p.State)
		}
		o.Clock.Pass(time.Minute)
		if err := restarted.Sweep(o.Ctx); err != nil {
			t.Fatal(err)
		}
		if p := o.Provider(t); p.State != models.ProviderLost {
			t.Errorf("%s after a silent minute", p.State)
		}
	})
}

// The whole ring is checked by a machine that is cut, joined and cut again.
func TestMIGInstances(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		whole := pooltest.Machine(1)
		whole[0].MIGProfiles = []string{"3g.40gb", "4g.40gb"}
		o.Enlist(t, whole)
		gpu := o.DevicesByUUID(t)["GPU-0"]
		cut := pool.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"3g.40gb", "4g.40gb"}}
		held := o.outcome(t, m, half, models.OutcomeGranted)
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, cut)), models.KindConflict, "1 workspaces")
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, held.ID) })
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, pool.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"9g"}})), models.KindInvalid, "layout")
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, pool.DeviceInput{Sharing: models.SharingMIG})), models.KindInvalid, "layout")
		if _, err := o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, cut); err != nil {
			t.Fatal(err)
		}
		o.outcome(t, m, half, models.OutcomeDelayed) // until it is cut
		orders := o.Heartbeat(t, pool.Beat{Devices: whole})
		if len(orders.Devices) != 1 || orders.Devices[0].Sharing != models.SharingMIG || len(orders.Devices[0].Layout) != 2 {
			t.Fatalf("orders: %+v", orders)
		}
		whole[0].Sharing = models.SharingMIG
		instances := append(whole, pool.DeviceReport{UUID: "MIG-3", Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: whole[0].Model, MemoryMiB: 40_000, NUMA: -1},
			pool.DeviceReport{UUID: "MIG-4", Parent: "GPU-0", Profile: "4g.40gb", Cores: 57, Model: whole[0].Model, MemoryMiB: 40_000, NUMA: -1})
		o.Heartbeat(t, pool.Beat{Devices: instances})
		small := models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 10_000}
		first := o.outcome(t, m, small, models.OutcomeGranted)
		o.outcome(t, other, half, models.OutcomeGranted) // isolated from the first
		o.outcome(t, m, small, models.OutcomeDelayed)    // an instance has one holder
		shares, err := o.Store.Read(o.Ctx).SharesOf(first.ID)
		if err != nil || len(shares) != 1 || shares[0].Enforcement != models.EnforcedMIG {
			t.Errorf("%+v, %v", shares, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, pool.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindConflict, "2 workspaces")
		pooltest.WantError(t, pooltest.Error(o.Pool.UpdateDevice(o.Ctx, o.Root, o.DevicesByUUID(t)["MIG-3"].ID, pool.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindConflict, "instance")
		if totals, err := o.totals(); err != nil || totals.GPUs != 1 || totals.HeldCores != 80 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

func TestMPSIsClaimedOnlyWhenItIsThere(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		gpu := o.DevicesByUUID(t)["GPU-0"]
		if _, err := o.Pool.UpdateDevice(o.Ctx, o.Root, gpu.ID, pool.DeviceInput{Sharing: models.SharingMPS}); err != nil {
			t.Fatal(err)
		}
		o.outcome(t, m, half, models.OutcomeDelayed)
		running := pooltest.Machine(1)
		running[0].Sharing = models.SharingMPS
		o.Heartbeat(t, pool.Beat{Devices: running})
		w := o.outcome(t, m, half, models.OutcomeGranted)
		if shares, err := o.Store.Read(o.Ctx).SharesOf(w.ID); err != nil || shares[0].Enforcement != models.EnforcedMPS {
			t.Errorf("%+v, %v", shares, err)
		}
	})
}

// A GPU is in one provider at a time.
func TestGPUMovesOnlyWhenItWasTakenOut(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, pooltest.Machine(2))
		p := o.Provider(t)
		modelstest.InTx(t, o.Store, func(q *models.Queries) error {
			p.Agent = true
			return q.UpdateProvider(&p)
		})
		elsewhere := pool.Host{Name: "node", Digest: pool.MachineDigest("another")}
		if err := o.Pool.Enlist(o.Ctx, elsewhere, pooltest.Machine(1)); err != nil { // the portal starts without it
			t.Fatal(err)
		}
		q := o.Store.Read(o.Ctx)
		if other, err := q.ProviderOf(elsewhere.Digest); err != nil || !strings.Contains(other.Reason.String(), "GPU-0") {
			t.Errorf("%+v, %v", other, err)
		}
		if d, err := q.DeviceByUUID("GPU-0"); err != nil || d.ProviderID != p.ID {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := o.Pool.Remove(o.Ctx, o.Root, p.ID, 0); err != nil {
			t.Fatal(err)
		}
		if err := o.Pool.Enlist(o.Ctx, elsewhere, pooltest.Machine(1)); err != nil {
			t.Fatal(err)
		}
		moved, err := o.Store.Read(o.Ctx).DeviceByUUID("GPU-0")
		if err != nil || moved.ProviderID == p.ID || !moved.Present {
			t.Errorf("%+v, %v", moved, err)
		}
		if other, err := o.Store.Read(o.Ctx).Provider(moved.ProviderID); err != nil || other.Name != "node-2" {
			t.Errorf("%+v, %v", other, err)
		}
	})
}

func TestGPUCode(t *testing.T) {
	a := pool.GPUCode(pool.MachineDigest("m"), []string{"GPU-1", "GPU-2"})
	if b := pool.GPUCode(pool.MachineDigest("m\n"), []string{"GPU-2", "GPU-1"}); a != b || len(a) != 19 {
		t.Errorf("%s, then %s", a, b)
	}
	for _, other := range []string{
		pool.GPUCode(pool.MachineDigest("n"), []string{"GPU-1", "GPU-2"}), pool.GPUCode(pool.MachineDigest("m"), []string{"GPU-1"}),
		pool.GPUCode(pool.MachineDigest("m"), []string{"GPU-1", "GPU-2", "GPU-3"}), pool.GPUCode(pool.MachineDigest("m"), nil),
	} {
		if other == a {
			t.Errorf("%s twice", a)
		}
	}
	for text, want := range map[string]string{
		a: a, strings.ToLower(a): a, " " + strings.ReplaceAll(a, "-", "") + "\n": a, "0oil-0000-0000-0000": "0011-0000-0000-0000",
	} {
		if code, ok := pool.ParseGPUCode(text); !ok || code != want {
			t.Errorf("%q is %q, %v", text, code, ok)
		}
	}
	for _, text := range []string{"", "0000-0000-0000-000", "0000-0000-0000-0000-0", "UUUU-0000-0000-0000", "É000-0000-0000-0000"} {
		if code, ok := pool.ParseGPUCode(text); ok {
			t.Errorf("%q is %q", text, code)
		}
	}
}

// Instances that come back under other names are not lent beside the shares
// that are held on the old ones.
func TestInstancesThatChangeTheirName(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles, gpu[0].Sharing = []string{"7g.80gb"}, models.SharingMIG
		instance := func(uuid string) []pool.DeviceReport {
			return append(gpu[:1:1], pool.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "7g.80gb", Cores: 100, Model: gpu[0].Model, MemoryMiB: 80_000, NUMA: -1})
		}
		o.Enlist(t, pooltest.Devices(instance("MIG-old")))
		held := o.outcome(t, m, half, models.OutcomeGranted)
		o.Heartbeat(t, pool.Beat{Devices: instance("MIG-new")}) // the machine was started anew
		o.outcome(t, other, half, models.OutcomeDelayed)
		modelstest.InTx(t, o.Store, func(q *models.Queries) error { return o.Pool.Release(q, held.ID) })
		o.outcome(t, other, half, models.OutcomeGranted)
	})
}

// An owner's limit holds for all instances of a GPU together.
func TestTermsBoundInstancesTogether(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles, gpu[0].Sharing = []string{"3g.40gb"}, models.SharingMIG
		for _, uuid := range []string{"MIG-1", "MIG-2"} {
			gpu = append(gpu, pool.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: gpu[0].Model, MemoryMiB: 40_000, NUMA: -1})
		}
		o.Enlist(t, gpu)
		if _, err := o.Pool.UpdateProvider(o.Ctx, o.Root, o.Provider(t).ID, pool.ProviderInput{Name: "node", Terms: models.Terms{Cores: 50}}); err != nil {
			t.Fatal(err)
		}
		part := models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 1000}
		o.outcome(t, m, part, models.OutcomeGranted)
		o.outcome(t, m, part, models.OutcomePartial) // 50 less the 42 of the instance that is held
	})
}

// A change of sharing that is taken back while the machine is at it must not
// lend what is being cut.
func TestChangeTakenBackInFlight(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles = []string{"7g.80gb"}
		o.Enlist(t, gpu)
		id := o.DevicesByUUID(t)["GPU-0"].ID
		set := func(in pool.DeviceInput) {
			t.Helper()
			if _, err := o.Pool.UpdateDevice(o.Ctx, o.Root, id, in); err != nil {
				t.Fatal(err)
			}
		}
		set(pool.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"7g.80gb"}})
		o.Heartbeat(t, pool.Beat{Devices: gpu}) // the answer has the order
		set(pool.DeviceInput{Sharing: models.SharingTimeSlicing})
		o.outcome(t, m, half, models.OutcomeDelayed)
		o.Heartbeat(t, pool.Beat{Devices: gpu})
		o.outcome(t, m, half, models.OutcomeGranted)
	})
}
