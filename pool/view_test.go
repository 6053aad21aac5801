package pool_test

import (
	"fmt"
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

// as is a member, looking.
func (o *world) as(t *testing.T, m models.Member) policies.Actor {
	t.Helper()
	u, err := o.Store.Read(o.Ctx).User(m.UserID)
	if err != nil {
		t.Fatal(err)
	}
	return o.Actor(t, u)
}

// seen is what an actor may see of a device.
func (o *world) seen(t *testing.T, a policies.Actor, uuid string) pool.DeviceView {
	t.Helper()
	v, _, err := o.Pool.Device(o.Ctx, a, o.DevicesByUUID(t)[uuid].ID)
	if err != nil || v.Measured == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	return v
}

// measured lets this machine say that a program runs on each of its GPUs.
func (o *world) measured(t *testing.T, d pooltest.Devices) {
	t.Helper()
	o.Clock.Advance(time.Second)
	b := providers.Heartbeat{Devices: providers.DeviceReports(d)}
	for _, r := range d {
		b.Samples = append(b.Samples, providers.Sample{UUID: r.UUID, Utilisation: 50, Processes: []providers.Process{{PID: 7, Name: "train.py", MemoryMiB: 10}}})
	}
	o.Heartbeat(t, b)
}

// Names of programs are told to who may manage the machine, and to those who
// see whose all of them are; never to a stranger.
func TestWhoReadsProcesses(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		stranger := o.Actor(t, o.NewPerson(t))
		reads := func(what string, want bool, a policies.Actor, uuid string) {
			t.Helper()
			if v := o.seen(t, a, uuid); len(v.Measured.Processes) > 0 != want || v.Measured.Utilisation != 50 {
				t.Errorf("%s: %+v, want processes: %v", what, v.Measured, want)
			}
		}
		o.measured(t, pooltest.Machine(2))
		reads("an administrator", true, o.Root, "GPU-1")
		reads("a member, of a GPU that nobody holds", false, o.as(t, vision), "GPU-1")

		first := o.WantClaim(t, vision, pooltest.Half, models.OutcomeGranted)
		shares, err := o.Store.Read(o.Ctx).SharesOf(first.HolderID)
		if err != nil {
			t.Fatal(err)
		}
		uuid, elsewhere := "GPU-0", "GPU-1"
		if gpu := o.DevicesByUUID(t)[elsewhere]; shares[0].DeviceID == gpu.ID {
			uuid, elsewhere = elsewhere, uuid
		}
		reads("a holder, of what ran before", false, o.as(t, vision), uuid)
		o.measured(t, pooltest.Machine(2))
		reads("the only holder", true, o.as(t, vision), uuid)
		reads("the holder of another GPU", false, o.as(t, vision), elsewhere)
		reads("another project", false, o.as(t, speech), uuid)
		reads("a stranger", false, stranger, uuid)

		gpu := o.DevicesByUUID(t)[uuid]
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, providers.DeviceInput{Sharing: models.SharingTimeSlicing, Mixed: true}); err != nil {
			t.Fatal(err)
		}
		storetest.InTx(t, o.Store, func(q *store.Queries) error { // beside it, whatever placement would choose
			return q.CreateShare(&models.Share{DeviceID: gpu.ID, HolderID: first.HolderID, ProjectID: speech.ProjectID, UserID: speech.UserID, Cores: 10, MemoryMiB: 10,
				Enforcement: models.EnforcedAdvisory, From: q.Now()})
		})
		o.measured(t, pooltest.Machine(2))
		reads("one of two projects", false, o.as(t, vision), uuid)
		reads("the other", false, o.as(t, speech), uuid)
		reads("an administrator, of both", true, o.Root, uuid)
	})
}

// What runs on a GPU that is cut is of the holders of all its instances.
func TestWhoReadsProcessesOfInstances(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		cut := pooltest.Machine(1)
		cut[0].MIGProfiles = []string{"3g.40gb"}
		o.Enlist(t, cut)
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, o.DevicesByUUID(t)["GPU-0"].ID, providers.DeviceInput{Sharing: models.SharingMIG, Layout: []string{"3g.40gb", "3g.40gb"}}); err != nil {
			t.Fatal(err)
		}
		cut[0].Sharing = models.SharingMIG
		for _, uuid := range []string{"MIG-1", "MIG-2"} {
			cut = append(cut, providers.DeviceReport{UUID: uuid, Parent: "GPU-0", Profile: "3g.40gb", Cores: 42, Model: cut[0].Model, MemoryMiB: 40_000, NUMA: -1})
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(cut)})
		small := models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 10_000}
		w := o.WantClaim(t, vision, small, models.OutcomeGranted)
		shares, err := o.Store.Read(o.Ctx).SharesOf(w.HolderID)
		if err != nil {
			t.Fatal(err)
		}
		mine := "MIG-1"
		if shares[0].DeviceID != o.DevicesByUUID(t)[mine].ID {
			mine = "MIG-2"
		}
		o.measured(t, cut)
		told := func(uuid string) bool { return len(o.seen(t, o.as(t, vision), uuid).Measured.Processes) > 0 }
		if !told(mine) || !told("GPU-0") {
			t.Error("the only holder is not told what runs")
		}
		o.WantClaim(t, speech, small, models.OutcomeGranted)
		o.measured(t, cut)
		if !told(mine) || told("GPU-0") {
			t.Errorf("of its own instance: %v, of the whole GPU: %v", told(mine), told("GPU-0"))
		}
	})
}

// By what an agent is told apart, and to whom its owner lends, is not
// everybody's to read.
func TestProviderIsGuarded(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		vision, speech := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(1))
		p := o.Provider(t)
		keeper := o.NewPerson(t)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			p.Address, p.GPUCode, p.ReportedCode, p.OwnerID = "192.0.2.7", "AAAA", "BBBB", &keeper.ID
			p.Terms.Projects = []int64{vision.ProjectID, speech.ProjectID}
			return q.UpdateProvider(&p)
		})
		look := func(a policies.Actor) (v pool.ProviderView) {
			t.Helper()
			v, err := o.Pool.Provider(o.Ctx, a, p.ID)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		for name, a := range map[string]policies.Actor{"its owner": o.Actor(t, keeper), "an administrator": o.Root} {
			if v := look(a); v.Address == "" || v.GPUCode == "" || v.ReportedCode == "" || v.Machine == "" || len(v.Terms.Projects) != 2 || !v.Chosen {
				t.Errorf("%s reads %+v", name, v)
			}
		}
		for name, c := range map[string]struct {
			actor policies.Actor
			knows int
		}{"a member": {o.as(t, vision), 1}, "a stranger": {o.Actor(t, o.NewPerson(t)), 0}} {
			if v := look(c.actor); v.Address+v.GPUCode+v.ReportedCode+v.Machine != "" || len(v.Terms.Projects) != c.knows || !v.Chosen {
				t.Errorf("%s reads %+v", name, v)
			}
		}
	})
}

// While the daemon of MPS is gone nothing limits a share that it limited.
func TestLapsedEnforcement(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, o.DevicesByUUID(t)["GPU-0"].ID, providers.DeviceInput{Sharing: models.SharingMPS}); err != nil {
			t.Fatal(err)
		}
		running := pooltest.Machine(1)
		running[0].Sharing = models.SharingMPS
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(running)})
		w := o.WantClaim(t, m, pooltest.Half, models.OutcomeGranted)
		for _, step := range []struct {
			d    pooltest.Devices
			want string
		}{{running, models.EnforcedMPS}, {pooltest.Machine(1), models.EnforcementLapsed}, {running, models.EnforcedMPS}} {
			o.measured(t, step.d)
			for name, a := range map[string]policies.Actor{"its holder": o.as(t, m), "a stranger": o.Actor(t, o.NewPerson(t))} {
				if got := o.seen(t, a, "GPU-0").Shares[0].Enforcement; got != step.want {
					t.Errorf("%s reads %q, want %q", name, got, step.want)
				}
			}
		}
		o.measured(t, pooltest.Machine(1))
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, w.HolderID) })
		_, history, err := o.Pool.Device(o.Ctx, o.Root, o.DevicesByUUID(t)["GPU-0"].ID)
		if err != nil || len(history) != 1 || history[0].Enforcement != models.EnforcedMPS {
			t.Errorf("what has ended was under MPS: %+v, %v", history, err)
		}
	})
}

func TestTheViewHidesForeignNames(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		o.Enlist(t, pooltest.Machine(2))
		w, decision := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10, GPUMemoryMiB: 1})
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Record(q, w.Claim(), decision) })
		w.State = models.StateQueued
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.Transition(&w, models.StateStarting, models.Text{}) })
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
