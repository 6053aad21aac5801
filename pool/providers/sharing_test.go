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

func TestExclusiveAndMixedDevices(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(1))
		id := o.DevicesByUUID(t)["GPU-0"].ID
		set := func(in providers.DeviceInput) error {
			return pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, id, in))
		}
		part := models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 100}
		outcome := func(m models.Member, want string) models.Workspace {
			t.Helper()
			w, d := o.Claim(t, m, part)
			if d.Outcome != want {
				t.Errorf("%s, want %s: %s", d.Outcome, want, d.Explanation)
			}
			o.CheckDevices(t)
			return w
		}
		pooltest.WantError(t, set(providers.DeviceInput{Sharing: models.SharingExclusive, Mixed: true}), models.KindInvalid, "mixed")
		first := outcome(m, models.OutcomeGranted)
		outcome(other, models.OutcomeDelayed)
		if err := set(providers.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true}); err != nil {
			t.Fatal(err)
		}
		foreign := outcome(other, models.OutcomeGranted)
		pooltest.WantError(t, set(providers.DeviceInput{Sharing: models.SharingTimeSlicing}), models.KindConflict, "2 projects")
		pooltest.WantError(t, set(providers.DeviceInput{Sharing: models.SharingExclusive}), models.KindConflict, "2 workspaces")
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, foreign.HolderID) })
		if err := set(providers.DeviceInput{Sharing: models.SharingExclusive}); err != nil {
			t.Fatal(err)
		}
		outcome(m, models.OutcomeDelayed)
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, first.HolderID) })
		inUse, d := o.Claim(t, m, part)
		if d.Outcome != models.OutcomeGranted || d.Grants[0].Enforcement != models.EnforcedExclusive {
			t.Errorf("%+v", d)
		}
		if shares, err := o.Store.Read(o.Ctx).SharesOf(inUse.HolderID); err != nil || len(shares) != 1 || shares[0].Enforcement != models.EnforcedExclusive {
			t.Errorf("%+v, %v", shares, err)
		}
		pooltest.WantError(t, set(providers.DeviceInput{Sharing: models.SharingTimeSlicing, Version: 1}), models.KindConflict)
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, 99, providers.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Actor(t, o.NewPerson(t)), id, providers.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindForbidden)
	})
}

// Why a mode is not in effect is told to administrators, until it is.
func TestSharingThatIsNotApplied(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		machine := pooltest.Machine(1)
		o.Enlist(t, machine)
		for _, why := range []string{"the compute mode may be set by root only", ""} {
			reports := providers.DeviceReports(machine)
			reports[0].SharingError = why
			o.Heartbeat(t, providers.Heartbeat{Devices: reports})
			view, err := o.Pool.View(o.Ctx, o.Root)
			if err != nil || len(view.Providers) != 1 || view.Providers[0].Devices[0].SharingError != why {
				t.Errorf("%+v, %v; want the reason %q", view.Providers, err, why)
			}
		}
	})
}

// wantOrderedLoad checks the load that a machine with one simulated GPU is to show.
func wantOrderedLoad(t *testing.T, o *pooltest.World, devices []providers.DeviceReport, cores int64) {
	t.Helper()
	orders := o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(devices)})
	if len(orders.Devices) != 1 || orders.Devices[0].Busy != cores {
		t.Errorf("orders: %+v, want %d busy cores", orders.Devices, cores)
	}
}

// uses records that a workspace uses cores of its simulated GPU now.
func uses(t *testing.T, o *pooltest.World, w models.Workspace, cores int64) {
	t.Helper()
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		_, err := q.SaveUtilisation([]models.HolderUtilisation{{HolderID: w.HolderID, At: q.Now(), Percent: cores}})
		return err
	})
}

// The whole ring is checked by a machine that is cut, joined and cut again.
func TestMIGInstances(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		whole := pooltest.Machine(1)
		whole[0].MIGProfiles, whole[0].Simulated = []string{"3g.40gb", "4g.40gb"}, true
		o.Enlist(t, whole)
		gpu := o.DevicesByUUID(t)["GPU-0"]
		cut := providers.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"3g.40gb", "4g.40gb"}}
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		wantOrderedLoad(t, o, whole, 0) // it is not known
		uses(t, o, inUse, 50)
		wantOrderedLoad(t, o, whole, 50)
		uses(t, o, inUse, 20)
		wantOrderedLoad(t, o, whole, 20)
		o.Clock.Advance(2 * time.Minute)
		wantOrderedLoad(t, o, whole, 0) // it is not known any more
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, cut)), models.KindConflict, "1 workspace, run or deployment uses this device")
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, inUse.HolderID) })
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"9g"}})), models.KindInvalid, "layout")
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingMIG})), models.KindInvalid, "layout")
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, cut); err != nil {
			t.Fatal(err)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed) // until it is cut
		orders := o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(whole)})
		if len(orders.Devices) != 1 || orders.Devices[0].Sharing != models.SharingMIG || len(orders.Devices[0].Layout) != 2 {
			t.Fatalf("orders: %+v", orders)
		}
		whole[0].Sharing = models.SharingMIG
		instances := append(whole, providers.DeviceReport{UUID: "MIG-3", Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: whole[0].Model, MemoryMiB: 40_000, NUMA: -1, Simulated: true},
			providers.DeviceReport{UUID: "MIG-4", Parent: "GPU-0", Profile: "4g.40gb", Cores: 57, Model: whole[0].Model, MemoryMiB: 40_000, NUMA: -1, Simulated: true})
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(instances)})
		small := models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 10_000}
		first := o.WantClaim(t, m, small, models.OutcomeGranted)
		second := o.WantClaim(t, other, pooltest.Half, models.OutcomeGranted) // isolated from the first
		o.WantClaim(t, m, small, models.OutcomeDelayed)                       // an instance has one holder
		uses(t, o, first, 30)
		uses(t, o, second, 50)
		wantOrderedLoad(t, o, instances, 80) // of both instances
		shares, err := o.Store.Read(o.Ctx).SharesOf(first.HolderID)
		if err != nil || len(shares) != 1 || shares[0].Enforcement != models.EnforcedMIG {
			t.Errorf("%+v, %v", shares, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindConflict, "2 workspaces")
		pooltest.WantError(t, pooltest.Error(o.Providers.SetSharing(o.Ctx, o.Root, o.DevicesByUUID(t)["MIG-3"].ID, providers.DeviceInput{Sharing: models.SharingTimeSlicing})), models.KindConflict, "instance")
		if totals, err := o.Totals(); err != nil || totals.GPUs != 1 || totals.CoresInUse != 80 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}

// Instances that were never used and are gone are not offered any more.
func TestDeletedInstancesAreNotOffered(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles, gpu[0].Sharing = []string{"3g.40gb"}, models.SharingMIG
		cut := append(gpu, providers.DeviceReport{UUID: "MIG-3", Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: gpu[0].Model, MemoryMiB: 40_000, NUMA: -1, Simulated: true})
		o.Enlist(t, cut)
		if v, err := o.Pool.Provider(o.Ctx, o.Root, o.Provider(t).ID); err != nil || len(v.Devices) != 2 {
			t.Fatalf("%+v, %v", v, err)
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(gpu)})
		if v, err := o.Pool.Provider(o.Ctx, o.Root, o.Provider(t).ID); err != nil || len(v.Devices) != 1 {
			t.Errorf("%+v, %v", v, err)
		}
		o.WantClaim(t, m, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1000}, models.OutcomeRefused)
	})
}

func TestMPSIsClaimedOnlyWhenItIsThere(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		gpu := o.DevicesByUUID(t)["GPU-0"]
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingMPS}); err != nil {
			t.Fatal(err)
		}
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed)
		running := pooltest.Machine(1)
		running[0].Sharing = models.SharingMPS
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(running)})
		w := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		if shares, err := o.Store.Read(o.Ctx).SharesOf(w.HolderID); err != nil || shares[0].Enforcement != models.EnforcedMPS {
			t.Errorf("%+v, %v", shares, err)
		}
	})
}

// Instances that come back under other names are not lent beside the shares
// that are held on the old ones.
func TestInstancesThatChangeTheirName(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles, gpu[0].Sharing = []string{"7g.80gb"}, models.SharingMIG
		instance := func(uuid string) []providers.DeviceReport {
			return append(gpu[:1:1], providers.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "7g.80gb", Cores: 100, Model: gpu[0].Model, MemoryMiB: 80_000, NUMA: -1})
		}
		o.Enlist(t, pooltest.Devices(instance("MIG-old")))
		inUse := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		o.Heartbeat(t, providers.Heartbeat{Devices: instance("MIG-new")}) // the machine was started anew
		o.WantClaim(t, other, pooltest.Half, models.OutcomeDelayed)
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, inUse.HolderID) })
		o.WantClaim(t, other, pooltest.Half, models.OutcomeGranted)
	})
}

// A change of sharing that is taken back while the machine is at it must not
// lend what is being cut.
func TestChangeTakenBackInFlight(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, o *pooltest.World) {
		m := o.NewTeam(t, "vision")
		gpu := pooltest.Machine(1)
		gpu[0].MIGProfiles = []string{"7g.80gb"}
		o.Enlist(t, gpu)
		id := o.DevicesByUUID(t)["GPU-0"].ID
		set := func(in providers.DeviceInput) {
			t.Helper()
			if _, err := o.Providers.SetSharing(o.Ctx, o.Root, id, in); err != nil {
				t.Fatal(err)
			}
		}
		set(providers.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"7g.80gb"}})
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(gpu)}) // the answer has the order
		set(providers.DeviceInput{Sharing: models.SharingTimeSlicing})
		o.WantClaim(t, m, pooltest.Half, models.OutcomeDelayed)
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(gpu)})
		o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
	})
}
