package web

import (
	"slices"
	"testing"
	"time"

	"weir/models"
)

// A list of requests says what a pending request would change, from what to what, and of
// others what was requested; a reader who may not know the present amounts gets none.
func TestRequestChanges(t *testing.T) {
	present := models.Resources{GPUCores: 100, CPUMilli: 4000, MemoryMiB: 8192}
	requested := present
	requested.GPUCores = 300
	end, later := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC)
	request := func(a models.Requested, state models.RequestState, withheld bool) models.RequestView {
		return models.RequestView{QuotaRequest: models.QuotaRequest{Kind: a.Kind(), Requested: a, State: state, RoleID: ptr(int64(1))},
			Present: present, PresentEndsAt: &end, PresentWithheld: withheld}
	}
	since := func(r models.RequestView) models.RequestView {
		r.Baseline = &present
		return r
	}
	quota := models.Requested{Quota: &models.QuotaSpec{Quota: requested.Input()}}
	limit := models.Requested{Limit: &models.LimitSpec{Limit: requested.Input()}}
	period := models.Requested{Period: &models.PeriodSpec{EndsAt: &later}}
	all := []string{"GPU cores: 300", "CPU: 4", "Memory: 8\u00a0GiB"}
	for name, c := range map[string]struct {
		r    models.RequestView
		want []string
	}{
		"a quota":            {request(quota, models.RequestPending, false), []string{"GPU cores: 100 → 300"}},
		"a limit":            {request(limit, models.RequestPending, false), []string{"GPU cores: 100 → 300"}},
		"one approved":       {since(request(quota, models.RequestApproved, false)), []string{"GPU cores: 100 → 300"}},
		"one without before": {request(quota, models.RequestApproved, false), all},
		"withheld, approved": {since(request(quota, models.RequestApproved, true)), all},
		"for who has left":   {request(quota, models.RequestPending, true), all},
		"a new role":         {request(models.Requested{Role: &models.RoleSpec{Limit: requested.Input()}}, models.RequestPending, false), all},
		"a period":           {request(period, models.RequestPending, false), []string{"End date: 2026-03-01 → 2026-05-02"}},
		"one without end":    {request(models.Requested{Deadline: &models.DeadlineSpec{}}, models.RequestPending, false), []string{"End date: no end date"}},
		"an approved one":    {request(period, models.RequestApproved, false), nil},
		"a membership":       {request(models.Requested{Join: &models.JoinSpec{}}, models.RequestPending, false), nil},
		"a period, withheld": {request(period, models.RequestPending, true), nil},
	} {
		if got := requestChanges(t.Context(), c.r); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	adjusted := request(quota, models.RequestAdjusted, false)
	less := requested
	less.GPUCores = 200
	adjusted.Decided = &models.Requested{Quota: &models.QuotaSpec{Quota: less.Input()}}
	if got := requestChanges(t.Context(), since(adjusted)); !slices.Equal(got, []string{"GPU cores: 100 → 200"}) {
		t.Errorf("approved with less: %q", got)
	}
	facts := RequestPageView{RequestView: request(quota, models.RequestPending, false)}.facts(t.Context())
	if len(facts) != 1 || facts[0].Requested != "100 → 300" || facts[0].Decided != facts[0].Requested {
		t.Errorf("%+v", facts)
	}
}
