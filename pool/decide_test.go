package pool_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

func TestNothingIsPlacedOnAVanishedDevice(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(1))
		w, d := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 50})
		if d.Outcome != models.OutcomeGranted {
			t.Fatalf("%+v", d)
		}
		o.Enlist(t, pooltest.Machine(0))
		v, err := o.Pool.View(o.Ctx, o.Root)
		if err != nil || len(v.Providers) != 1 || len(v.Providers[0].Devices) != 1 || len(v.Providers[0].Devices[0].Shares) != 1 {
			t.Errorf("what is still in use is not shown: %+v, %v", v, err)
		}
		if _, d := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 10}); d.Outcome != models.OutcomeRefused {
			t.Errorf("%+v", d)
		}
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, w.HolderID) })
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
			d := o.Available(t).Decide(models.Project{ID: c.project}, c.demand, 0)
			if d.Outcome != c.outcome || d.Explanation.Empty() {
				t.Errorf("%s: %+v", c.name, d)
			}
			if (d.Fewer != nil) != (c.outcome == models.OutcomePartial) || d.Fewer != nil && *d.Fewer != c.fewer {
				t.Errorf("%s: fewer is %+v, want %+v", c.name, d.Fewer, c.fewer)
			}
			if shares, _ := o.Store.Read(o.Ctx).OpenSharesAmong(store.AllMachines); len(shares) != 2 {
				t.Errorf("%s: an answer has taken shares", c.name)
			}
		}
	})
}

// What is said of a demand that the pool can never meet has one number, also while a part is in use.
func TestRefusalHasOneNumber(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		o.Enlist(t, pooltest.Machine(8))
		o.WantClaim(t, m, models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000}, models.OutcomeGranted)
		d := o.Available(t).Decide(models.Project{ID: m.ProjectID}, models.Demand{GPUs: 9, Cores: 100, GPUMemoryMiB: 80_000}, 0)
		if d.Outcome != models.OutcomeRefused || len(d.Reasons) == 0 {
			t.Errorf("%+v", d)
		}
		for _, text := range append(d.Reasons, d.Explanation) {
			if !strings.Contains(text.String(), "9 GPUs requested on one machine; at most 8 available") {
				t.Errorf("it says %q", text)
			}
		}
	})
}

func TestMemoryInProportion(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Enlist(t, append(pooltest.Machine(1), providers.DeviceReport{UUID: "GPU-small", Model: "NVIDIA L4", MemoryMiB: 24_000}))
		for _, c := range []struct{ in, out models.Demand }{
			{models.Demand{GPUs: 1, Cores: 50}, models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 12_000}},
			{models.Demand{GPUs: 1, Cores: 50, GPUModel: "h100"}, models.Demand{GPUs: 1, Cores: 50, GPUModel: "h100", GPUMemoryMiB: 40_000}},
			{models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 7}, models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 7}},
			{models.Demand{Cores: 50, GPUMemoryMiB: 7, GPUModel: "x", CPUMilli: 9}, models.Demand{CPUMilli: 9}},
		} {
			if got := o.Available(t).WithGPUMemory(c.in); got != c.out {
				t.Errorf("%+v became %+v; want %+v", c.in, got, c.out)
			}
		}
	})
}

// The memory of one instance is that of the instance, which is less than its part of the cores of the GPU.
func TestMemoryOfAnInstance(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		cut := pooltest.Machine(1)
		cut[0].MIGProfiles = []string{"1g.10gb"}
		o.Enlist(t, cut)
		layout := slices.Repeat([]string{"1g.10gb"}, 7)
		if _, err := o.Providers.SetSharing(o.Ctx, o.Root, o.DevicesByUUID(t)["GPU-0"].ID, providers.DeviceInput{Sharing: models.SharingMIG, Layout: layout}); err != nil {
			t.Fatal(err)
		}
		cut[0].Sharing = models.SharingMIG
		for i := range layout {
			cut = append(cut, providers.DeviceReport{UUID: fmt.Sprint("MIG-", i), Parent: "GPU-0", Profile: "1g.10gb", Cores: 14, Model: cut[0].Model,
				MemoryMiB: 9500, NUMA: -1})
		}
		o.Heartbeat(t, providers.Heartbeat{Devices: providers.DeviceReports(cut)})
		d := o.Available(t).WithGPUMemory(models.Demand{GPUs: 1, Cores: 14})
		if d.GPUMemoryMiB != 9500 {
			t.Errorf("it has %d MiB", d.GPUMemoryMiB)
		}
		o.WantClaim(t, o.NewTeam(t, "vision"), d, models.OutcomeGranted)
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
		storetest.Concurrently(len(answers), func(i int) {
			_, d := o.Claim(t, m, models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 20_000})
			answers[i] = d.Outcome
			o.CheckDevices(t)
		})
		granted := slices.DeleteFunc(answers, func(a string) bool { return a != models.OutcomeGranted })
		if len(granted) != 6 {
			t.Errorf("%d claims were granted", len(granted))
		}
		if totals, err := o.Totals(); err != nil || totals.CoresInUse != 180 || totals.MemoryMiBInUse != 120_000 {
			t.Errorf("%+v, %v", totals, err)
		}
	})
}
