package requests_test

import (
	"testing"

	"weir/models"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// An approval leaves no amount lower that was raised while the request waited,
// although another of its amounts is still an increase; its preview says so too.
// What the request itself lowers is lowered.
func TestApprovalKeepsWhatWasRaisedMeanwhile(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		asked := models.Resources{GPUCores: 300, GPUMemoryMiB: 100_000, CPUMilli: 4000}
		raised := models.Resources{GPUCores: 400, GPUMemoryMiB: 200_000, CPUMilli: 4000}
		quota := func(r models.Resources) models.Requested {
			return models.Requested{Quota: &models.QuotaSpec{ProjectID: h.Vision.ID, Quota: r.Input()}}
		}
		set := func(r models.Resources) {
			t.Helper()
			_, err := h.UpdateProject(h.Ctx, h.Root, h.Vision.ID, projects.ProjectInput{Name: "vision", Quota: r.Input()})
			pooltest.NoError(t, err)
		}
		set(models.Resources{GPUCores: 200, GPUMemoryMiB: 200_000, CPUMilli: 2000})
		v := h.ask(t, h.Ann, quota(asked))
		set(models.Resources{GPUCores: 400, GPUMemoryMiB: 200_000, CPUMilli: 2000})
		says := []string{"quota.quota.gpu_cores", "from 200 to 400", "at least 400"}
		_, err := h.approve(t, h.Root, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindConflict, says...)
		_, err = h.approve(t, h.Root, v.ID, quota(models.Resources{GPUCores: 399, GPUMemoryMiB: 200_000, CPUMilli: 4000}))
		pooltest.WantError(t, err, models.KindConflict, says...)
		view, err := h.Get(h.Ctx, h.Root, v.ID)
		pooltest.NoError(t, err)
		look, err := h.PreviewDecision(h.Ctx, h.Root, view, projects.PreviewInput{Quota: new(asked.Input())})
		pooltest.NoError(t, err)
		pooltest.WantError(t, look.Refused, models.KindConflict, "quota.gpu_cores", "from 200 to 400")
		if p, err := h.Project(h.Ctx, h.Root, h.Vision.ID); err != nil || p.Quota.CPUMilli != 2000 || view.State != models.RequestPending {
			t.Errorf("%+v, %+v, %v", p.Quota, view, err)
		}
		raised.GPUMemoryMiB = asked.GPUMemoryMiB // as was requested
		if _, err = h.approve(t, h.Root, v.ID, quota(raised)); err != nil {
			t.Fatal(err)
		}
		if p, err := h.Project(h.Ctx, h.Root, h.Vision.ID); err != nil || p.Quota != raised {
			t.Errorf("%+v, %v", p.Quota, err)
		}
	})
}

// What a request did not ask to change stays as it has become since.
func TestApprovalLeavesWhatWasNotAsked(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		set := func(r models.Resources) {
			t.Helper()
			_, err := h.UpdateProject(h.Ctx, h.Root, h.Vision.ID, projects.ProjectInput{Name: "vision", Quota: r.Input()})
			pooltest.NoError(t, err)
		}
		set(models.Resources{GPUCores: 200, GPUMemoryMiB: 200_000, CPUMilli: 4000})
		v := h.ask(t, h.Ann, models.Requested{Quota: &models.QuotaSpec{ProjectID: h.Vision.ID,
			Quota: models.Resources{GPUCores: 300, GPUMemoryMiB: 200_000, CPUMilli: 4000}.Input()}})
		set(models.Resources{GPUCores: 200, GPUMemoryMiB: 300_000, CPUMilli: 3000})
		_, err := h.approve(t, h.Root, v.ID, models.Requested{})
		pooltest.NoError(t, err)
		want := models.Resources{GPUCores: 300, GPUMemoryMiB: 300_000, CPUMilli: 3000}
		if p, err := h.Project(h.Ctx, h.Root, h.Vision.ID); err != nil || p.Quota != want {
			t.Errorf("%+v, %v", p.Quota, err)
		}

		// What the decision gives is given, though the project had it when the request was submitted.
		asked := func(cores int64) models.Requested {
			return models.Requested{Quota: &models.QuotaSpec{ProjectID: h.Vision.ID,
				Quota: models.Resources{GPUCores: cores, GPUMemoryMiB: 300_000, CPUMilli: 3000}.Input()}}
		}
		v = h.ask(t, h.Ann, asked(400))
		set(models.Resources{GPUCores: 250, GPUMemoryMiB: 300_000, CPUMilli: 3000})
		_, err = h.approve(t, h.Root, v.ID, asked(300))
		pooltest.NoError(t, err)
		if p, err := h.Project(h.Ctx, h.Root, h.Vision.ID); err != nil || p.Quota != want {
			t.Errorf("%+v, %v", p.Quota, err)
		}
	})
}

// The same of a role's limit, by its manager.
func TestApprovalKeepsALimitRaisedMeanwhile(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		v := h.ask(t, h.Ann, h.limit(60))
		in := projects.RoleInputOf(h.Engineer)
		in.Limit = models.Resources{GPUCores: 70}.Input()
		_, err := h.UpdateRole(h.Ctx, h.Root, h.Vision.ID, h.Engineer.ID, in)
		pooltest.NoError(t, err)
		boss := h.Actor(t, h.Boss)
		_, err = h.approve(t, boss, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindConflict, "limit.limit.gpu_cores", "from 50 to 70", "at least 70")
		view, err := h.Get(h.Ctx, boss, v.ID)
		pooltest.NoError(t, err)
		in60 := projects.PreviewInput{Role: &projects.RolePreview{Limit: h.limit(60).Limit.Limit}}
		look, err := h.PreviewDecision(h.Ctx, boss, view, in60)
		pooltest.NoError(t, err)
		pooltest.WantError(t, look.Refused, models.KindConflict, "limit.gpu_cores", "from 50 to 70")
		_, err = h.approve(t, boss, v.ID, h.limit(70))
		pooltest.NoError(t, err)
	})
}
