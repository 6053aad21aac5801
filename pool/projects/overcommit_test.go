package projects_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// A quota that is left open is filled from what may be allocated, which needs no confirmation.
func TestOpenQuotaBelowTheRatio(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(4))
		w.SetOvercommit(t, 80, projects.Stated{CPUMilli: 10_000})
		v, err := w.Start(w.Ctx, w.Root, projects.StartInput{Name: "vision"})
		if err != nil || v.Project.Quota.GPUCores != 320 || v.Project.Quota.CPUMilli != 8000 {
			t.Errorf("%+v, %v", v.Project.Quota, err)
		}
	})
}

// Whatever allocates more than the pool's capacity needs a confirmation with a reason, which the
// audit log keeps; without them nothing changes, and what allocates no more needs neither.
func TestAllocationsBeyondTheCapacity(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(4))
		over := w.Store.Now().Add(time.Hour)
		p, ended := w.NewProject(t, "vision", pooltest.Cores(300)), w.NewProject(t, "ended", pooltest.Cores(100))
		w.EndProject(t, ended, &over)
		w.Clock.Advance(2 * time.Hour)
		update := func(p models.Project, cores int64) func(projects.Confirmation) error {
			return func(c projects.Confirmation) error {
				in := projects.ProjectInput{Name: p.Name, Quota: pooltest.Cores(cores).Input(), Confirmation: c}
				return pooltest.Error(w.UpdateProject(w.Ctx, w.Root, p.ID, in))
			}
		}
		for _, c := range []struct {
			name, action string
			allocated    int64 // with it
			change       func(projects.Confirmation) error
		}{
			{"a new project", "create", 500, func(c projects.Confirmation) error {
				in := projects.ProjectInput{Name: "speech", Quota: pooltest.Cores(200).Input(), Confirmation: c}
				return pooltest.Error(w.CreateProject(w.Ctx, w.Root, in))
			}},
			{"a started one", "create", 700, func(c projects.Confirmation) error {
				quota := models.Resources{GPUCores: 200, GPUMemoryMiB: 1000, CPUMilli: 4000, MemoryMiB: 4096}
				in := projects.StartInput{Name: "audio", Quota: quota.Input(), Confirmation: c}
				return pooltest.Error(w.Start(w.Ctx, w.Root, in))
			}},
			{"a larger quota", "update", 850, update(p, 450)},
			{"a project that goes on", "update", 950, update(ended, 100)},
		} {
			before := w.CapacityOf(t, "gpu_cores").Value
			says := fmt.Sprintf("%d would be allocated, %d more than the maximum of 400", c.allocated, c.allocated-400)
			for _, given := range []projects.Confirmation{{}, {Confirm: true}, {Reason: "they are good"}, {Confirm: true, Reason: " "}} {
				pooltest.WantError(t, c.change(given), models.KindNoCapacity, "confirm", says)
			}
			if after := w.CapacityOf(t, "gpu_cores").Value; after != before {
				t.Errorf("%s: %d allocated after refusals, %d before", c.name, after, before)
			}
			reason := "more machines come for " + c.name
			pooltest.NoError(t, c.change(projects.Confirmation{Confirm: true, Reason: reason}))
			entries, err := w.Store.Read(w.Ctx).Audit(store.AuditFilter{Object: "project", Action: c.action}, store.Page{Limit: 1})
			if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, reason) || !strings.Contains(entries[0].After, says) {
				t.Errorf("%s: audited %+v, %v", c.name, entries, err)
			}
		}
		again := func(end *time.Time) []models.Text {
			v, err := w.Preview(w.Ctx, w.Root, p.ID, projects.PreviewInput{Quota: new(pooltest.Cores(450).Input()), Period: &projects.PeriodPreview{EndsAt: end}})
			pooltest.NoError(t, err)
			return v.Beyond
		}
		w.EndProject(t, p, new(w.Store.Now().Add(time.Hour)))
		w.Clock.Advance(2 * time.Hour)
		if soon := w.Store.Now(); len(again(nil)) != 1 || len(again(&soon)) != 0 {
			t.Errorf("previewed: %v to go on, %v to stay ended", again(nil), again(&soon))
		}
		pooltest.NoError(t, update(p, 450)(pooltest.Confirmed))
		pooltest.NoError(t, update(p, 440)(projects.Confirmation{}))
		pooltest.NoError(t, update(p, 440)(projects.Confirmation{Reason: "nothing to confirm"}))
	})
}
