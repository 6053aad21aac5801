package providers_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

func TestNameOfAnotherProvider(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(1))
		p := o.Provider(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			return q.CreateProvider(&models.Provider{Name: "other", State: models.ProviderOffline, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()})
		})
		err := pooltest.Error(o.Providers.Update(o.Ctx, o.Root, p.ID, providers.ProviderInput{Name: "other", Terms: p.Terms, Version: p.Version}))
		pooltest.WantError(t, err, models.KindConflict, "name")
	})
}

func TestDrainAndRecall(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(2))
		id := o.Provider(t).ID
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		drained, err := o.Providers.Drain(o.Ctx, o.Root, id, 0)
		if err != nil || drained.State != models.ProviderDraining {
			t.Fatalf("%+v, %v", drained, err)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed)
		pooltest.WantError(t, pooltest.Error(o.Providers.Drain(o.Ctx, o.Root, id, drained.Version-1)), models.KindConflict)
		if resumed, err := o.Providers.Resume(o.Ctx, o.Root, id, drained.Version); err != nil || resumed.State != models.ProviderOnline {
			t.Fatalf("%+v, %v", resumed, err)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)

		pooltest.WantError(t, pooltest.Error(o.Providers.Recall(o.Ctx, o.Root, id, providers.RecallInput{GraceMinutes: -1})), models.KindInvalid, "grace_minutes")
		recalled, err := o.Providers.Recall(o.Ctx, o.Root, id, providers.RecallInput{GraceMinutes: 30, Reason: "maintenance"})
		if err != nil || recalled.State != models.ProviderRecalled || !recalled.RecallAt.Equal(o.Store.Now().Add(30*time.Minute)) {
			t.Fatalf("%+v, %v", recalled, err)
		}
		o.Sweep(t)
		if n := o.CountEvents(t, inUse, "maintenance"); n != 1 {
			t.Errorf("the holder was told %d times", n)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed)
		overdue := func() int {
			list, err := o.Store.Read(o.Ctx).OverdueHolders(o.Store.Now())
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		if n := overdue(); n != 0 {
			t.Errorf("%d are overdue before the notification is over", n)
		}
		o.Clock.Advance(31 * time.Minute)
		if n := overdue(); n != 2 {
			t.Errorf("%d are overdue, of two", n)
		}
		if _, err := o.Providers.Resume(o.Ctx, o.Root, id, 0); err != nil {
			t.Fatal(err)
		}
		if n := overdue(); n != 2 || o.CountEvents(t, inUse, "no longer ends early") != 0 {
			t.Errorf("%d are overdue: the recall was taken back when their end had come", n)
		}
	})
}

func TestRemove(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		home := o.Provider(t)
		refused := func() {
			t.Helper()
			pooltest.WantError(t, pooltest.Error(o.Providers.Remove(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "Drain")
		}
		refused()
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			home.Agent = true // an agent speaks for the machine
			return q.UpdateProvider(&home)
		})
		refused()
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		elsewhere := providers.Host{Name: "other", Digest: providers.MachineDigest("other")}
		if err := o.Providers.Enlist(o.Ctx, elsewhere, pooltest.Machine(0)); err != nil { // the portal
			t.Fatal(err)
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.Remove(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "1 share of this provider is still in use")
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, inUse.HolderID) })
		removed, err := o.Providers.Remove(o.Ctx, o.Root, home.ID, 0)
		if err != nil || removed.State != models.ProviderOffline {
			t.Fatalf("%+v, %v", removed, err)
		}
		if devices, err := o.Store.Read(o.Ctx).DevicesOf(home.ID); err != nil || len(devices) != 1 || devices[0].Present {
			t.Errorf("its GPU is still there: %+v, %v", devices, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.Drain(o.Ctx, o.Root, home.ID, 0)), models.KindConflict, "no longer in the pool")
	})
}

func TestOwnersManageTheirOwn(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		o.Enlist(t, pooltest.Machine(2))
		p, mine, foreign := o.Provider(t), o.NewPerson(t), o.NewPerson(t)
		input := providers.ProviderInput{Name: "gpu-1", OwnerID: &mine.ID}
		pooltest.WantError(t, pooltest.Error(o.Providers.Update(o.Ctx, o.Actor(t, mine), p.ID, input)), models.KindForbidden)
		p, err := o.Providers.Update(o.Ctx, o.Root, p.ID, input)
		if err != nil || p.Name != "gpu-1" || *p.OwnerID != mine.ID {
			t.Fatalf("%+v, %v", p, err)
		}
		owner, other := o.Actor(t, mine), o.Actor(t, foreign)
		if _, err := o.Providers.Drain(o.Ctx, owner, p.ID, 0); err != nil {
			t.Error(err)
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.Resume(o.Ctx, other, p.ID, 0)), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Providers.Update(o.Ctx, owner, p.ID, providers.ProviderInput{Name: "gpu-1", OwnerID: &foreign.ID})), models.KindForbidden)
		device := o.DevicesByUUID(t)["GPU-0"]
		if _, err := o.Providers.SetSharing(o.Ctx, owner, device.ID, providers.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Error(err)
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, owner, device.ID, providers.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true})), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, other, device.ID, providers.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindForbidden)
		pooltest.WantError(t, pooltest.Error(o.Providers.Update(o.Ctx, owner, p.ID, providers.ProviderInput{Name: "gpu-1", Terms: models.Terms{Devices: []int64{99}}})), models.KindInvalid, "devices")
		pooltest.WantError(t, pooltest.Error(o.Providers.Update(o.Ctx, owner, p.ID, providers.ProviderInput{Name: "gpu-1", Terms: models.Terms{Projects: []int64{99}}})), models.KindInvalid, "projects")
		pooltest.WantError(t, pooltest.Error(o.Providers.Update(o.Ctx, owner, p.ID, providers.ProviderInput{Name: "", Terms: models.Terms{Cores: 101}})), models.KindInvalid, "cores")
	})
}

func TestTermsBoundWhatIsPlaced(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		p, first := o.Provider(t), o.DevicesByUUID(t)["GPU-0"].ID
		terms := func(terms models.Terms) {
			t.Helper()
			if _, err := o.Providers.Update(o.Ctx, o.Root, p.ID, providers.ProviderInput{Name: "node", Terms: terms}); err != nil {
				t.Fatal(err)
			}
		}
		terms(models.Terms{Cores: 50, Devices: []int64{first}, Projects: []int64{vision.ProjectID}})
		o.WantClaim(t, speech, pooltest.Half, models.OutcomeRefused)
		inUse := o.WantClaim(t, vision, pooltest.Half, models.OutcomeGranted)
		o.WantClaim(t, vision, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 10}, models.OutcomeDelayed) // 50 of each, and one device
		shares, err := o.Store.Read(o.Ctx).SharesOf(inUse.HolderID)
		if err != nil || shares[0].DeviceID != first {
			t.Errorf("%+v, %v", shares, err)
		}

		// Only in the next hour; its holder learns of the end a quarter before.
		now := o.Store.Now()
		until := now.Add(time.Hour)
		terms(models.Terms{GraceMinutes: 15, Hours: []models.Window{{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: now.Format("15:04"), To: until.Format("15:04")}}})
		o.Sweep(t)
		if n := o.CountEvents(t, inUse, "certain hours"); n != 0 {
			t.Errorf("told %d times, an hour before", n)
		}
		o.Clock.Advance(50 * time.Minute)
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(2))})
		o.Sweep(t)
		o.Sweep(t)
		if n := o.CountEvents(t, inUse, "certain hours"); n != 1 {
			t.Errorf("told %d times, ten minutes before", n)
		}
		o.Clock.Advance(15 * time.Minute)
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(pooltest.Machine(2))})
		o.Sweep(t)
		if list, err := o.Store.Read(o.Ctx).OverdueHolders(o.Store.Now()); err != nil || len(list) != 1 || list[0].ID != inUse.HolderID {
			t.Errorf("overdue: %+v, %v", list, err)
		}
		o.WantClaim(t, vision, pooltest.Half, models.OutcomeDelayed)
	})
}

// An owner's limit holds for all instances of a GPU together.
func TestTermsBoundInstancesTogether(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles, gpu[0].Sharing = []string{"3g.40gb"}, models.SharingMIG
		for _, uuid := range []string{"MIG-1", "MIG-2"} {
			gpu = append(gpu, providers.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: gpu[0].Model, MemoryMiB: 40_000, NUMA: -1})
		}
		o.Enlist(t, gpu)
		if _, err := o.Providers.Update(o.Ctx, o.Root, o.Provider(t).ID, providers.ProviderInput{Name: "node", Terms: models.Terms{Cores: 50}}); err != nil {
			t.Fatal(err)
		}
		part := models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 1000}
		o.WantClaim(t, m, part, models.OutcomeGranted)
		o.WantClaim(t, m, part, models.OutcomeDelayed) // 50 less the 42 of the instance in use are no whole instance
		if _, err := o.Providers.Update(o.Ctx, o.Root, o.Provider(t).ID, providers.ProviderInput{Name: "node", Terms: models.Terms{Cores: 41}}); err != nil {
			t.Fatal(err)
		}
		o.WantClaim(t, m, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1000}, models.OutcomeRefused)
	})
}

// An end that has not come yet can be taken back; see TestDrainAndRecall for
// one that has.
func TestRecallIsTakenBackInTime(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		id := o.Provider(t).ID
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		if _, err := o.Providers.Recall(o.Ctx, o.Root, id, providers.RecallInput{GraceMinutes: 30}); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(29 * time.Minute)
		if _, err := o.Providers.Resume(o.Ctx, o.Root, id, 0); err != nil {
			t.Fatal(err)
		}
		o.Clock.Advance(31 * time.Minute)
		list, err := o.Store.Read(o.Ctx).OverdueHolders(o.Store.Now())
		if err != nil || len(list) != 0 || o.CountEvents(t, inUse, "no longer ends early") != 1 {
			t.Errorf("overdue: %+v, %v", list, err)
		}
	})
}
