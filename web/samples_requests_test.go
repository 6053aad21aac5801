package web

import (
	"time"

	"weir/models"
)

func sampleRequest(a models.Requested, state models.RequestState) models.RequestView {
	r := models.RequestView{QuotaRequest: models.QuotaRequest{ID: 4, Kind: a.Kind(), RequesterID: li.ID, Requested: a, Reason: "Two runs at a time, until the paper is out.\nThen less again.",
		State: state, Version: 1, CreatedAt: ago(26 * time.Hour)}, RequesterName: "Li Wei", RequesterEmail: li.Email}
	if a.Project == nil {
		r.ProjectID, r.ProjectName, r.RoleName = ptr(int64(1)), "vision", "algorithm engineer"
		r.RoleID, r.Present, r.PresentEndsAt = ptr(int64(2)), limit, ptr(ago(24*time.Hour))
	}
	if state != models.RequestPending {
		r.DecidedAt, r.DeciderName, r.DecisionReason, r.Decided = ptr(ago(time.Hour)), "Anna Berg", "Half of it for now.", ptr(a.Clone())
	}
	return r
}

func sampleRequested() []models.Requested {
	return []models.Requested{
		{Project: &models.ProjectSpec{Name: "speech", Quota: quota.Input(), EndsAt: &later}},
		{Quota: &models.QuotaSpec{ProjectID: 1, Quota: quota.Times(2).Input()}},
		{Role: &models.RoleSpec{ProjectID: 1, Name: "expert", Permission: "manager", Limit: limit.Input(), AssignToRequester: true}},
		{Limit: &models.LimitSpec{ProjectID: 1, RoleID: 2, Limit: limit.Times(2).Input()}},
		{Period: &models.PeriodSpec{ProjectID: 1, EndsAt: &later}},
		{Deadline: &models.DeadlineSpec{ProjectID: 1}},
		{Join: &models.JoinSpec{ProjectID: 1, Name: "vision", Until: &later}},
	}
}

func sampleCapacity(missing int64) (rows []CapacityRow) {
	for i, a := range quota.Times(3).Amounts() {
		rows = append(rows, CapacityRow{Amount: a, Known: i < 3, Capacity: a.Value - missing, Ratio: 150, Allocatable: a.Value * 3 / 2, AboveCapacity: missing})
	}
	return rows
}

func sampleFacts() *RequestFacts {
	return &RequestFacts{Now: &limit, Quota: &quota, Left: quota.Sub(limit), Members: 3, Capacity: sampleCapacity(0),
		Used: &models.Usage{Average: inUse, GPUCoreHours: 26_640}, UsedByOne: &models.Usage{}, Roles: []RoleChoice{{2, "algorithm engineer", "member", limit}},
		Beyond: []models.Text{models.Say("GPU cores")}}
}

// requestSamples are the pages of requests and of the capacity.
func requestSamples() (list []sample) {
	list = periodSamples()
	choices := []RoleChoice{{1, "lead", "manager", limit.Times(2)}, {2, "algorithm engineer", "member", limit}}
	var rows []models.RequestView
	for _, a := range sampleRequested() {
		rows = append(rows, sampleRequest(a, models.RequestPending))
		kind := a.Kind()
		refused := Form{Version: 1, Values: map[string]string{"confirm": "1"}}.Refuse(models.InvalidFields(
			models.Field{Name: "confirm", Reason: models.Say("must not be empty")}, models.Field{Name: "reason", Reason: models.Say("must not be empty")}))
		list = append(list,
			sample{"request-" + kind, "/requests/4", &root, RequestPage(RequestPageView{RequestView: sampleRequest(a, models.RequestPending), Own: kind == "role", CanDecide: true, Facts: sampleFacts(), Form: refused})},
			sample{"request-own-" + kind, "/requests/4", &li, RequestPage(RequestPageView{RequestView: sampleRequest(a, models.RequestAdjusted), Own: true, CanWithdraw: true})},
			sample{"ask-" + kind, "/requests/new?kind=" + kind, &li, NewRequestPage(NewRequestView{Kind: kind, ProjectID: 1, Project: "vision", Roles: choices, Now: &limit, Remaining: &quota, Ends: ptr(ago(24 * time.Hour)),
				Form: Form{}.Refuse(models.Invalid("reason", "must not be empty"))})})
	}
	settled := sampleRequest(sampleRequested()[1], models.RequestRefused)
	return append(list,
		sample{"requests", "/requests", &root, RequestsPage(RequestsView{Filter: "pending", Rows: append(rows, settled), Decides: true, Waiting: 7, Next: "/requests?cursor=4"})},
		sample{"requests-mine", "/requests", &li, RequestsPage(RequestsView{Filter: "mine", Rows: rows})},
		sample{"requests-none", "/requests", &li, RequestsPage(RequestsView{Filter: "mine"})},
		sample{"requests-inbox-none", "/requests", &root, RequestsPage(RequestsView{Filter: "pending", Decides: true})},
		sample{"ask", "/requests/new", &li, NewRequestPage(NewRequestView{})},
		sample{"ask-which", "/requests/new?kind=quota", &li, NewRequestPage(NewRequestView{Kind: "quota", Projects: []Option{{"1", "vision"}}})},
		sample{"ask-nowhere", "/requests/new?kind=quota", &li, NewRequestPage(NewRequestView{Kind: "quota"})},
		sample{"ask-join-name", "/requests/new?kind=join", &li, NewRequestPage(NewRequestView{Kind: "join", Form: Form{}.Refuse(models.Invalid("join.name", "must not be empty"))})},
		sample{"capacity", "/capacity", &root, CapacityPage(CapacityView{Rows: sampleCapacity(7), Foreign: []models.Foreign{
			{Owner: "7f0c.1", Place: "/var/lib/weir/run", Workspaces: 2}, {Place: "/srv/old/run", Workspaces: 1}}, Projects: []AllocatedTo{{1, "vision", quota, limit, inUse}}, Next: "/capacity?cursor=1"})},
		sample{"promises-refused", "/capacity", &root, CapacityPage(CapacityView{Rows: sampleCapacity(0), Form: Form{Values: map[string]string{"ratio.gpu_cores": "x"}}.Refuse(models.Invalid("ratio.gpu_cores", "must not be empty"))})})
}
