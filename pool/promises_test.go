package pool_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
	"weir/policies"
	"weir/pool"
	"weir/pool/pooltest"
)

func (h *hall) row(t *testing.T, resource string) pool.Promise {
	t.Helper()
	v, err := h.promises.View(h.Ctx, h.Root, models.Page{})
	pooltest.NoError(t, err)
	for _, r := range v.Rows {
		if r.Name == resource {
			return r
		}
	}
	t.Fatalf("no row for %s", resource)
	return pool.Promise{}
}

// ratio lets so many percent of each resource be promised.
func (h *hall) ratio(t *testing.T, percent int64, stated pool.Stated) {
	t.Helper()
	in := pool.OvercommitInput{Ratio: models.Resources{GPUCores: percent, GPUMemoryMiB: percent, CPUMilli: percent, MemoryMiB: percent, StorageMiB: percent}, Stated: stated}
	_, err := h.promises.Set(h.Ctx, h.Root, in)
	pooltest.NoError(t, err)
}

func TestPromisesBesideCapacity(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		h.NewProject(t, "speech", pooltest.Cores(350))
		over := h.Store.Now().Add(time.Hour)
		if _, err := h.CreateProject(h.Ctx, h.Root, pool.ProjectInput{Name: "over soon", Quota: pooltest.Cores(1000), EndsAt: &over}); err != nil {
			t.Fatal(err)
		}
		h.Clock.Pass(2 * time.Hour)
		if got := h.row(t, "gpu_cores"); got.Value != 550 || got.Capacity != 400 || got.Simulated != 400 || got.Limit != 400 || got.Excess != 150 || got.Missing != 150 {
			t.Errorf("%+v", got)
		}
		if got := h.row(t, "cpu_milli"); got.Known || got.Excess != 0 {
			t.Errorf("of CPU nothing is known: %+v", got)
		}
		h.ratio(t, 150, pool.Stated{CPUMilli: 4000})
		if got := h.row(t, "gpu_cores"); got.Limit != 600 || got.Excess != 0 || got.Missing != 150 {
			t.Errorf("%+v", got)
		}
		if got := h.row(t, "cpu_milli"); !got.Known || got.Limit != 6000 || got.Excess != 2000 || got.Missing != 4000 {
			t.Errorf("%+v", got)
		}
		// The machine leaves: what it lent is not there any more, and whom
		// that concerns stands beside it.
		providers, err := h.Store.Read(h.Ctx).Providers()
		pooltest.NoError(t, err)
		_, err = h.Providers.Drain(h.Ctx, h.Root, providers[0].ID, 0)
		pooltest.NoError(t, err)
		if got := h.row(t, "gpu_cores"); got.Capacity != 0 || got.Excess != 550 || got.Missing != 550 {
			t.Errorf("without its machine the pool has %+v", got)
		}
		v, err := h.promises.View(h.Ctx, h.Root, models.Page{})
		if err != nil || len(v.Projects) != 2 || v.Projects[0].Quota.GPUCores != 200 || v.Projects[0].Promised.GPUCores != 70 || v.Projects[1].Quota.GPUCores != 350 {
			t.Errorf("%+v, %v", v.Projects, err)
		}
	})
}

func TestWhoSetsTheRatios(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		_, err := h.promises.View(h.Ctx, h.Actor(t, h.Boss), models.Page{})
		pooltest.WantError(t, err, models.KindForbidden)
		_, err = h.promises.Set(h.Ctx, h.Actor(t, h.Boss), pool.OvercommitInput{})
		pooltest.WantError(t, err, models.KindForbidden)
		_, err = h.promises.Set(h.Ctx, h.Root, pool.OvercommitInput{Ratio: models.Resources{GPUCores: 10_001}, Stated: pool.Stated{CPUMilli: -1}})
		pooltest.WantError(t, err, models.KindInvalid, "ratio.gpu_cores", "ratio.memory_mib", "stated.cpu_milli")
		h.ratio(t, 120, pool.Stated{})
		in := pool.OvercommitInput{Ratio: models.Resources{GPUCores: 1, GPUMemoryMiB: 1, CPUMilli: 1, MemoryMiB: 1, StorageMiB: 1}, Version: 1}
		_, err = h.promises.Set(h.Ctx, h.Root, in)
		pooltest.WantError(t, err, models.KindConflict)
	})
}

// Beyond the limit an approval needs to be confirmed, with a reason, which
// the audit keeps.
func TestApprovalBeyondTheCapacity(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		v := h.ask(t, h.Ann, h.quota(450))
		for name, in := range map[string]pool.DecisionInput{"nothing": {}, "no reason": {Confirm: true}, "no confirmation": {Reason: "they are good"}} {
			in.Verdict = "approve"
			_, err := h.Decide(h.Ctx, h.Root, v.ID, in)
			t.Log(name)
			pooltest.WantError(t, err, models.KindNoCapacity, "confirm", "450", "50 more than 400")
		}
		if got, err := h.Get(h.Ctx, h.Root, v.ID); err != nil || got.State != models.RequestPending || h.row(t, "gpu_cores").Value != 200 {
			t.Errorf("%+v, %v", got, err)
		}
		_, err := h.Decide(h.Ctx, h.Root, v.ID, pool.DecisionInput{Verdict: "approve", Confirm: true, Reason: "more machines come in May"})
		pooltest.NoError(t, err)
		entries, err := h.Store.Read(h.Ctx).Audit(models.AuditFilter{Object: "request", Action: "approve"}, models.Page{Limit: 1})
		if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, "more machines come in May") || !strings.Contains(entries[0].After, "50 more than 400") {
			t.Errorf("%+v, %v", entries, err)
		}
		// What does not grow the promises needs no confirmation.
		less := h.ask(t, h.Ann, models.Asked{Quota: &models.AskQuota{ProjectID: h.Vision.ID, Quota: models.Resources{GPUCores: 440, GPUMemoryMiB: 210_000, CPUMilli: 8000}}})
		_, err = h.approve(t, h.Root, less.ID, models.Asked{})
		pooltest.NoError(t, err)
	})
}

// A project whose period is over takes nothing; what brings it back does.
func TestPeriodBringsAPromiseBack(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		end := h.Store.Now().Add(time.Hour)
		in := pool.ProjectInput{Name: "vision", Quota: h.Vision.Quota, EndsAt: &end}
		_, err := h.UpdateProject(h.Ctx, h.Root, h.Vision.ID, in)
		pooltest.NoError(t, err)
		v := h.ask(t, h.Ann, models.Asked{Period: &models.AskPeriod{ProjectID: h.Vision.ID}})
		h.Clock.Pass(2 * time.Hour)
		h.NewProject(t, "speech", pooltest.Cores(300))
		_, err = h.approve(t, h.Root, v.ID, models.Asked{})
		pooltest.WantError(t, err, models.KindNoCapacity, "confirm", "500", "100 more than 400")
	})
}

// Approvals at the same moment never count on the same room.
func TestConcurrentApprovalsKeepTheLimit(t *testing.T) {
	const size, asked = 60, 20
	eachHall(t, func(t *testing.T, h *hall) {
		for round := range int64(4) {
			h.ratio(t, 100*(round+1), pool.Stated{})
			somebody := h.NewPerson(t)
			var ids []int64
			for i := range asked {
				p := models.Asked{Project: &models.AskProject{Name: fmt.Sprint("p", round, " ", i), Quota: pooltest.Cores(size)}}
				ids = append(ids, h.ask(t, somebody, p).ID)
			}
			before := h.row(t, "gpu_cores")
			room := int((before.Limit - before.Value) / size)
			var kinds modelstest.Kinds
			modelstest.Together(asked, func(i int) {
				_, err := h.approve(t, h.Root, ids[i], models.Asked{})
				kinds.Add(err)
			})
			kinds.Want(t, room, models.KindNoCapacity, asked-room)
			if got := h.row(t, "gpu_cores"); got.Value != before.Value+int64(room)*size || got.Excess != 0 {
				t.Errorf("promised: %+v", got)
			}
		}
	})
}

// What was used is what the rows say, as far as it lies in the last 30 days.
func TestUsedInTheLastThirtyDays(t *testing.T) {
	eachHall(t, func(t *testing.T, h *hall) {
		hold := func(m models.Member, held time.Duration) {
			w, a := h.Claim(t, m, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 7200, CPUMilli: 720, MemoryMiB: 1440})
			if a.Outcome != models.OutcomeGranted {
				t.Fatalf("%+v", a)
			}
			w.State = models.StateRunning
			modelstest.InTx(t, h.Store, func(q *models.Queries) error {
				now := q.Now()
				w.StartedAt = &now
				return q.Transition(&w, models.StateStarting, models.Text{})
			})
			h.Clock.Pass(held)
			modelstest.InTx(t, h.Store, func(q *models.Queries) error {
				now := q.Now()
				w.State, w.EndedAt = models.StateStopped, &now
				if err := q.Transition(&w, models.StateRunning, models.Text{}); err != nil {
					return err
				}
				return h.Pool.Release(q, w.ID)
			})
		}
		hold(h.BossMember, 10*24*time.Hour) // half of it will be too long ago
		h.Clock.Pass(23 * 24 * time.Hour)
		hold(h.AnnMember, 36*time.Hour)
		h.Clock.Pass(12 * time.Hour)
		v, err := h.Get(h.Ctx, h.Actor(t, h.Boss), h.ask(t, h.Ann, h.peak(60)).ID)
		pooltest.NoError(t, err)
		if got := *v.Facts.UsedByOne; got.GPUCoreHours != 40*36 || got.Average != (models.Resources{GPUCores: 2, GPUMemoryMiB: 360, CPUMilli: 36, MemoryMiB: 72}) {
			t.Errorf("the member used %+v", got)
		}
		if got := *v.Facts.Used; got.GPUCoreHours != 40*(36+5*24) || got.Average.CPUMilli != 36+120 {
			t.Errorf("the project used %+v", got)
		}
		if v.Facts.Now.GPUCores != 50 || v.Facts.Left().GPUCores != 130 || v.Facts.Promises[0].Capacity != 400 {
			t.Errorf("facts: %+v", v.Facts)
		}
		_, err = h.promises.View(h.Ctx, policies.Actor{}, models.Page{})
		pooltest.WantError(t, err, models.KindUnauthenticated)
	})
}
