package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/requests"
)

func (a rest) requestsOperations(s section) {
	register(a, s, route{http.MethodGet, "/requests", 200, "list-requests", models.Say("List requests")}, a.listRequests)
	register(a, s, route{http.MethodPost, "/requests", 201, "create-request",
		models.Say("Create a request for a project, quota, role, limit, period, end date or membership")}, a.createRequest, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/requests/{id}", 200, "get-request",
		models.Say("Get a request; reviewers also get capacity, allocations and usage")}, a.getRequest)
	register(a, s, route{http.MethodPost, "/requests/{id}/decision", 200, "decide-request",
		models.Say("Approve a request, optionally with changes, or refuse it")}, a.decideRequest)
	register(a, s, route{http.MethodPost, "/requests/{id}/withdraw", 200, "withdraw-request", models.Say("Withdraw your pending request")},
		a.withdrawRequest)
	register(a, s, route{http.MethodPut, "/projects/{id}/join-requests", 204, "set-join-requests",
		models.Say("Enable or disable join requests for a project")}, a.setJoinRequests)
}

// Request is a request of a user with its decision.
type Request struct {
	ID             int64               `json:"id"`
	Kind           string              `json:"kind" enum:"project,quota,role,limit,period,deadline,join"`
	State          models.RequestState `json:"state" enum:"pending,approved,adjusted,refused,withdrawn"`
	Summary        string              `json:"summary"`
	ProjectID      *int64              `json:"project_id,omitempty" doc:"project ID; for a new project, set on approval"`
	Project        string              `json:"project,omitempty"`
	Requester      string              `json:"requester"`
	RequesterID    int64               `json:"requester_id"`
	Confirmed      bool                `json:"requester_email_confirmed" doc:"the requester is known to have the email address"`
	Requested      models.Requested    `json:"requested" doc:"requested change, under the key of its type"`
	Present        *models.Resources   `json:"present,omitempty" doc:"quota or limit that it is about: the current one while it is pending, otherwise that when it was submitted"`
	PresentEnd     *time.Time          `json:"present_end,omitempty" doc:"current end of the period or membership, while a request to extend it is pending"`
	Reason         string              `json:"reason"`
	Decided        *models.Requested   `json:"decided,omitempty" doc:"approved change"`
	Decider        string              `json:"decider,omitempty"`
	DecisionReason string              `json:"decision_reason,omitempty"`
	MayDecide      bool                `json:"may_decide" doc:"you can decide the request"`
	MayWithdraw    bool                `json:"may_withdraw" doc:"you can withdraw the request"`
	CreatedAt      time.Time           `json:"created_at"`
	DecidedAt      *time.Time          `json:"decided_at,omitempty" doc:"time of the decision or withdrawal"`
	Facts          *RequestFacts       `json:"facts,omitempty" doc:"facts for reviewers; only in single-request responses"`
}

// RequestFacts are the facts for deciding a request.
type RequestFacts struct {
	Now             *models.Resources  `json:"now,omitempty" doc:"current quota or limit"`
	Quota           *models.Resources  `json:"quota,omitempty" doc:"quota of the project"`
	Left            *models.Resources  `json:"remaining,omitempty" doc:"remaining quota: quota minus allocated"`
	Until           *time.Time         `json:"until,omitempty" doc:"current end of the period or membership"`
	Members         int64              `json:"members,omitempty" doc:"number of members with the role"`
	Used            *models.Usage      `json:"used,omitempty" doc:"usage of the project in the last 30 days"`
	UsedByRequester *models.Usage      `json:"used_by_requester,omitempty"`
	Capacity        []ResourceCapacity `json:"capacity" doc:"pool capacity and allocated quotas"`
	Beyond          []string           `json:"beyond,omitempty" doc:"resources allocated above the limit, if approved"`
}

func requestOf(v requests.RequestView) Request {
	r := Request{ID: v.ID, Kind: v.Kind, State: v.State, Summary: v.What().String(), ProjectID: v.ProjectID, Project: v.ProjectName,
		Requester: v.RequesterEmail, RequesterID: v.RequesterID, Confirmed: !v.RequesterUnconfirmed,
		Requested: v.Requested, Present: v.Before(), Reason: v.Reason, Decided: v.Decided, Decider: v.DeciderName,
		DecisionReason: v.DecisionReason, MayDecide: v.CanDecide, MayWithdraw: v.CanWithdraw, CreatedAt: v.CreatedAt.UTC(),
		DecidedAt: utc(v.DecidedAt)}
	end, _ := v.EndsBefore()
	r.PresentEnd = utc(end)
	f := v.Facts
	if f == nil {
		return r
	}
	r.Facts = &RequestFacts{Now: f.Now, Until: utc(f.Until), Members: f.Members, Used: f.Used, UsedByRequester: f.UsedByOne,
		Capacity: models.Map(f.Capacity, resourceCapacityOf), Beyond: models.Map(f.Beyond, models.Text.String)}
	if f.Project != nil {
		left := f.Remaining()
		r.Facts.Quota, r.Facts.Left = &f.Project.Quota, &left
	}
	return r
}

// RequestsQuery filters a list of requests.
type RequestsQuery struct {
	Paging
	Filter string `query:"filter" enum:"mine,pending,decided" default:"mine" doc:"mine: created by you; pending: waiting for your decision; decided: decided requests in your scope"`
}

func (a rest) listRequests(ctx context.Context, in *RequestsQuery) (*Response[List[Request]], error) {
	return listed(in.Paging, func(v requests.RequestView) int64 { return v.ID }, func(page store.Page) ([]requests.RequestView, error) {
		return a.requestsIn(ctx, in.Filter, page)
	}, requestOf)
}

func (a rest) createRequest(ctx context.Context, in *Create[requests.RequestInput]) (*Created[Request], error) {
	v, err := a.Requests.Submit(ctx, actorOf(ctx), in.Body)
	return created(v.Version, requestOf(v), err, "requests", v.ID)
}

func (a rest) getRequest(ctx context.Context, in *ByID) (*Found[Request], error) {
	v, err := a.Requests.Get(ctx, actorOf(ctx), in.ID)
	return foundRequest(v, err)
}

func foundRequest(v requests.RequestView, err error) (*Found[Request], error) {
	return found(v.Version, requestOf(v), err)
}

func (a rest) decideRequest(ctx context.Context, in *Update[requests.DecisionInput]) (*Found[Request], error) {
	in.Body.Version = in.version
	return foundRequest(a.Requests.Decide(ctx, actorOf(ctx), in.ID, in.Body))
}

func (a rest) withdrawRequest(ctx context.Context, in *Versioned) (*Found[Request], error) {
	return foundRequest(a.Requests.Withdraw(ctx, actorOf(ctx), in.ID, in.version))
}

// JoinRequests enables or disables join requests.
type JoinRequests struct {
	On bool `json:"on"`
}

func (a rest) setJoinRequests(ctx context.Context, in *CreateIn[JoinRequests]) (*Nothing, error) {
	return nil, a.Requests.SetJoinRequests(ctx, actorOf(ctx), in.ID, in.Body.On)
}
