package requests_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/requests"
)

// Beyond the limit an approval needs to be confirmed, with a reason, which
// the audit keeps.
func TestApprovalBeyondTheCapacity(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		v := h.ask(t, h.Ann, h.quota(450))
		view, err := h.Get(h.Ctx, h.Root, v.ID)
		pooltest.NoError(t, err)
		for cores, beyond := range map[int64]int{450: 1, 400: 0} {
			p, err := h.PreviewDecision(h.Ctx, h.Root, view, projects.PreviewInput{Quota: new(models.Resources{GPUCores: cores}.Input())})
			if err != nil || len(p.Beyond) != beyond {
				t.Errorf("a quota of %d: beyond the capacity %v, %v", cores, p.Beyond, err)
			}
		}
		for name, in := range map[string]requests.DecisionInput{"nothing": {}, "no reason": {Confirm: true}, "no confirmation": {Reason: "they are good"}} {
			in.Decision = "approve"
			_, err := h.Decide(h.Ctx, h.Root, v.ID, in)
			t.Log(name)
			pooltest.WantError(t, err, models.KindNoCapacity, "confirm", "450", "50 more than the maximum of 400")
		}
		if got, err := h.Get(h.Ctx, h.Root, v.ID); err != nil || got.State != models.RequestPending || h.CapacityOf(t, "gpu_cores").Value != 200 {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = h.Decide(h.Ctx, h.Root, v.ID, requests.DecisionInput{Decision: "approve", Confirm: true, Reason: "more machines come in May"})
		pooltest.NoError(t, err)
		entries, err := h.Store.Read(h.Ctx).Audit(store.AuditFilter{Object: "project", Action: "update"}, store.Page{Limit: 1})
		if err != nil || len(entries) != 1 || !strings.Contains(entries[0].After, "more machines come in May") || !strings.Contains(entries[0].After, "50 more than the maximum of 400") {
			t.Errorf("%+v, %v", entries, err)
		}
		// What does not grow the promises needs no confirmation.
		less := h.ask(t, h.Ann, models.Requested{Quota: &models.QuotaSpec{ProjectID: h.Vision.ID, Quota: models.Resources{GPUCores: 440, GPUMemoryMiB: 210_000, CPUMilli: 8000}.Input()}})
		_, err = h.approve(t, h.Root, less.ID, models.Requested{})
		pooltest.NoError(t, err)
	})
}

// A project whose period is over takes nothing; what brings it back does.
func TestPeriodBringsAPromiseBack(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		end := h.Store.Now().Add(time.Hour)
		in := projects.ProjectInput{Name: "vision", Quota: h.Vision.Quota.Input(), EndsAt: &end}
		_, err := h.UpdateProject(h.Ctx, h.Root, h.Vision.ID, in)
		pooltest.NoError(t, err)
		v := h.ask(t, h.Ann, models.Requested{Period: &models.PeriodSpec{ProjectID: h.Vision.ID}})
		h.Clock.Advance(2 * time.Hour)
		h.NewProject(t, "speech", pooltest.Cores(300))
		_, err = h.approve(t, h.Root, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindNoCapacity, "confirm", "500", "100 more than the maximum of 400")
	})
}

// Approvals at the same moment never count on the same room.
func TestConcurrentApprovalsKeepTheLimit(t *testing.T) {
	const size, asked = 60, 20
	eachExample(t, func(t *testing.T, h *example) {
		for round := range int64(4) {
			h.SetOvercommit(t, 100*(round+1), projects.Stated{})
			somebody := h.NewPerson(t)
			var ids []int64
			for i := range asked {
				p := models.Requested{Project: &models.ProjectSpec{Name: fmt.Sprint("p", round, " ", i), Quota: pooltest.Cores(size).Input()}}
				ids = append(ids, h.ask(t, somebody, p).ID)
			}
			before := h.CapacityOf(t, "gpu_cores")
			headroom := int((before.Allocatable - before.Value) / size)
			var kinds storetest.ErrorCounts
			storetest.Concurrently(asked, func(i int) {
				_, err := h.approve(t, h.Root, ids[i], models.Requested{})
				kinds.Add(err)
			})
			kinds.Want(t, headroom, models.KindNoCapacity, asked-headroom)
			if got := h.CapacityOf(t, "gpu_cores"); got.Value != before.Value+int64(headroom)*size || got.AboveAllocatable != 0 {
				t.Errorf("allocated: %+v", got)
			}
		}
	})
}

// uses has a member run a workspace for so long.
func (h *example) uses(t *testing.T, m models.Member, inUse time.Duration) {
	t.Helper()
	w, d := h.Claim(t, m, models.Demand{GPUs: 1, Cores: 40, GPUMemoryMiB: 7200, CPUMilli: 720, MemoryMiB: 1440})
	if d.Outcome != models.OutcomeGranted {
		t.Fatalf("%+v", d)
	}
	w.State = models.StateRunning
	storetest.InTx(t, h.Store, func(q *store.Queries) error {
		now := q.Now()
		w.StartedAt = &now
		return q.Transition(&w, models.StateStarting, models.Text{})
	})
	h.Clock.Advance(inUse)
	storetest.InTx(t, h.Store, func(q *store.Queries) error {
		now := q.Now()
		w.State, w.EndedAt = models.StateStopped, &now
		if err := q.Transition(&w, models.StateRunning, models.Text{}); err != nil {
			return err
		}
		return h.Pool.Release(q, w.HolderID)
	})
}

// The approver sees the average since a young project was created, not of a month before it.
func TestUsedByAYoungProject(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		h.uses(t, h.AnnMember, 2*time.Hour)
		v, err := h.Get(h.Ctx, h.Actor(t, h.Boss), h.ask(t, h.Ann, h.limit(60)).ID)
		pooltest.NoError(t, err)
		if got := *v.Facts.UsedByOne; got.GPUCoreHours != 80 || got.Average.GPUCores != 40 || *v.Facts.Used != got {
			t.Errorf("the member used %+v, the project %+v", got, *v.Facts.Used)
		}
	})
}

// What was used is what the rows say, as far as it lies in the last 30 days.
func TestUsedInTheLastThirtyDays(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		h.uses(t, h.BossMember, 10*24*time.Hour) // half of it will be too long ago
		h.Clock.Advance(23 * 24 * time.Hour)
		h.uses(t, h.AnnMember, 36*time.Hour)
		h.Clock.Advance(12 * time.Hour)
		v, err := h.Get(h.Ctx, h.Actor(t, h.Boss), h.ask(t, h.Ann, h.limit(60)).ID)
		pooltest.NoError(t, err)
		if got := *v.Facts.UsedByOne; got.GPUCoreHours != 40*36 || got.Average != (models.Resources{GPUCores: 2, GPUMemoryMiB: 360, CPUMilli: 36, MemoryMiB: 72}) {
			t.Errorf("the member used %+v", got)
		}
		if got := *v.Facts.Used; got.GPUCoreHours != 40*(36+5*24) || got.Average.CPUMilli != 36+120 {
			t.Errorf("the project used %+v", got)
		}
		if v.Facts.Now.GPUCores != 50 || v.Facts.Remaining().GPUCores != 130 || v.Facts.Capacity[0].Capacity != 400 {
			t.Errorf("facts: %+v", v.Facts)
		}
		_, err = h.Capacity.View(h.Ctx, policies.Actor{}, store.Page{})
		pooltest.WantError(t, err, models.KindUnauthenticated)
	})
}
