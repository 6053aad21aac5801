package projects_test

import (
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

func TestPromisesBesideCapacity(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		h.NewProject(t, "speech", pooltest.Cores(350))
		over := h.Store.Now().Add(time.Hour)
		if _, err := h.CreateProject(h.Ctx, h.Root, projects.ProjectInput{Name: "over soon", Quota: pooltest.Cores(1000).Input(), EndsAt: &over, Confirmation: pooltest.Confirmed}); err != nil {
			t.Fatal(err)
		}
		h.Clock.Advance(2 * time.Hour)
		if got := h.CapacityOf(t, "gpu_cores"); got.Value != 550 || got.Capacity != 400 || got.Simulated != 400 || got.Allocatable != 400 || got.AboveAllocatable != 150 || got.AboveCapacity != 150 {
			t.Errorf("%+v", got)
		}
		if got := h.CapacityOf(t, "cpu_milli"); got.Known || got.AboveAllocatable != 0 {
			t.Errorf("of CPU nothing is known: %+v", got)
		}
		h.SetOvercommit(t, 150, projects.Stated{CPUMilli: 4000})
		if got := h.CapacityOf(t, "gpu_cores"); got.Allocatable != 600 || got.AboveAllocatable != 0 || got.AboveCapacity != 150 {
			t.Errorf("%+v", got)
		}
		if got := h.CapacityOf(t, "cpu_milli"); !got.Known || got.Allocatable != 6000 || got.AboveAllocatable != 2000 || got.AboveCapacity != 4000 {
			t.Errorf("%+v", got)
		}
		// The machine leaves: what it lent is not there any more, and whom
		// that concerns stands beside it.
		providers, err := h.Store.Read(h.Ctx).Providers()
		pooltest.NoError(t, err)
		_, err = h.Providers.Drain(h.Ctx, h.Root, providers[0].ID, 0)
		pooltest.NoError(t, err)
		if got := h.CapacityOf(t, "gpu_cores"); got.Capacity != 0 || got.AboveAllocatable != 550 || got.AboveCapacity != 550 {
			t.Errorf("without its machine the pool has %+v", got)
		}
		v, err := h.Capacity.View(h.Ctx, h.Root, store.Page{})
		if err != nil || len(v.Projects) != 2 || v.Projects[0].Quota.GPUCores != 200 || v.Projects[0].Allocated.GPUCores != 70 || v.Projects[1].Quota.GPUCores != 350 {
			t.Errorf("%+v, %v", v.Projects, err)
		}
	})
}

// Where workspaces run on one machine only, its CPU and memory are the capacity, unless an
// administrator enters another, and are still what quotas are filled from.
func TestCapacityOfTheMachine(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		c := projects.NewCapacity(h.Store, h.Access, h.Pool, projects.Defaults{PerGPU: pooltest.PerGPU, Machine: models.Resources{CPUMilli: 6000, MemoryMiB: 1 << 20}})
		row := func(resource string) projects.CapacityRow {
			v, err := c.View(h.Ctx, h.Root, store.Page{})
			pooltest.NoError(t, err)
			return v.Rows[slices.IndexFunc(v.Rows, func(r projects.CapacityRow) bool { return r.Name == resource })]
		}
		if got := row("cpu_milli"); !got.Known || !got.Machine || got.Capacity != 6000 || got.AboveCapacity != got.Value-6000 {
			t.Errorf("CPU of the machine: %+v", got)
		}
		if got := row("memory_mib"); !got.Known || !got.Machine || got.AboveCapacity != 0 {
			t.Errorf("memory of the machine: %+v", got)
		}
		if got := row("storage_mib"); got.Known || got.Machine {
			t.Errorf("storage is not measured: %+v", got)
		}
		h.SetOvercommit(t, 100, projects.Stated{CPUMilli: 9000})
		if got := row("cpu_milli"); got.Machine || got.Capacity != 9000 {
			t.Errorf("CPU that was entered: %+v", got)
		}
	})
}

func TestWhoSetsTheRatios(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		_, err := h.Capacity.View(h.Ctx, h.Actor(t, h.Boss), store.Page{})
		pooltest.WantError(t, err, models.KindForbidden)
		_, err = h.Capacity.Set(h.Ctx, h.Actor(t, h.Boss), projects.OvercommitInput{})
		pooltest.WantError(t, err, models.KindForbidden)
		_, err = h.Capacity.Set(h.Ctx, h.Root, projects.OvercommitInput{Ratio: models.Resources{GPUCores: 10_001}, Stated: projects.Stated{CPUMilli: -1}})
		pooltest.WantError(t, err, models.KindInvalid, "ratio.gpu_cores", "ratio.memory_mib", "stated.cpu_milli")
		h.SetOvercommit(t, 120, projects.Stated{})
		in := projects.OvercommitInput{Ratio: models.Resources{GPUCores: 1, GPUMemoryMiB: 1, CPUMilli: 1, MemoryMiB: 1, StorageMiB: 1}, Version: 1}
		_, err = h.Capacity.Set(h.Ctx, h.Root, in)
		pooltest.WantError(t, err, models.KindConflict)
	})
}
