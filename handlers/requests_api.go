package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool/requests"
)

func (a rest) requestsOperations(s section) {
	register(a, s, route{http.MethodGet, "/requests", 200, "list-requests", "List requests: yours, those that wait for your decision, or those that are decided"}, a.listRequests)
	register(a, s, route{http.MethodPost, "/requests", 201, "ask", "Ask for a project, quota, a role, a larger limit, a longer period or participation, or a place in a project"}, a.ask, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/requests/{id}", 200, "get-request", "Show a request; to who may decide it, with what is free, allocated and used"}, a.getRequest)
	register(a, s, route{http.MethodPost, "/requests/{id}/decision", 200, "decide-request", "Approve a request, as it was asked or with other numbers, or refuse it"}, a.decideRequest)
	register(a, s, route{http.MethodPost, "/requests/{id}/withdraw", 200, "withdraw-request", "Withdraw a request of yours that is not decided yet"}, a.withdrawRequest)
	register(a, s, route{http.MethodPut, "/projects/{id}/join-requests", 204, "set-join-requests", "Set whether people may ask to join a project by its exact name or its link"}, a.letAsk)
}

// Request is what somebody asks for and somebody else decides.
type Request struct {
	ID             int64               `json:"id"`
	Kind           string              `json:"kind" enum:"project,quota,role,limit,period,deadline,join"`
	State          models.RequestState `json:"state" enum:"pending,approved,adjusted,refused,withdrawn"`
	Summary        string              `json:"summary"`
	ProjectID      *int64              `json:"project_id,omitempty" doc:"of a new project once it is approved"`
	Project        string              `json:"project,omitempty"`
	Requester      string              `json:"requester"`
	RequesterID    int64               `json:"requester_id"`
	Requested      models.Requested    `json:"requested" doc:"the member named as the kind"`
	Reason         string              `json:"reason"`
	Decided        *models.Requested   `json:"decided,omitempty" doc:"with what it was approved"`
	Decider        string              `json:"decider,omitempty"`
	DecisionReason string              `json:"decision_reason,omitempty"`
	MayDecide      bool                `json:"may_decide" doc:"by you"`
	MayWithdraw    bool                `json:"may_withdraw" doc:"by you"`
	CreatedAt      time.Time           `json:"created_at"`
	DecidedAt      *time.Time          `json:"decided_at,omitempty" doc:"or withdrawn"`
	Facts          *RequestFacts       `json:"facts,omitempty" doc:"for who may decide it; in the answer about one request"`
}

// RequestFacts are what who decides a request should know.
type RequestFacts struct {
	Now             *models.Resources `json:"now,omitempty" doc:"the quota or limit as it is"`
	Quota           *models.Resources `json:"quota,omitempty" doc:"of the project"`
	Left            *models.Resources `json:"remaining,omitempty" doc:"quota less what members are allocated"`
	Until           *time.Time        `json:"until,omitempty" doc:"the end that is asked to be later"`
	Members         int64             `json:"members,omitempty" doc:"who have the role whose limit is asked about"`
	Used            *models.Usage     `json:"used,omitempty" doc:"by the project in the last 30 days"`
	UsedByRequester *models.Usage     `json:"used_by_requester,omitempty"`
	Capacity        []Allocation      `json:"capacity" doc:"what the pool has, and what of it was allocated to projects"`
	Beyond          []string          `json:"beyond,omitempty" doc:"what would be allocated beyond what may be"`
}

func requestOf(v requests.RequestView) Request {
	r := Request{ID: v.ID, Kind: v.Kind, State: v.State, Summary: sentence(v.What()), ProjectID: v.ProjectID, Project: v.ProjectName,
		Requester: v.RequesterEmail, RequesterID: v.RequesterID, Requested: v.Requested, Reason: v.Reason, Decided: v.Decided, Decider: v.DeciderName,
		DecisionReason: v.DecisionReason, MayDecide: v.MayDecide, MayWithdraw: v.MayWithdraw, CreatedAt: v.CreatedAt.UTC(), DecidedAt: utc(v.DecidedAt)}
	f := v.Facts
	if f == nil {
		return r
	}
	r.Facts = &RequestFacts{Now: f.Now, Until: utc(f.Until), Members: f.Members, Used: f.Used, UsedByRequester: f.UsedByOne,
		Capacity: shown(f.Capacity, allocationOf), Beyond: shown(f.Beyond, sentence)}
	if f.Project != nil {
		left := f.Remaining()
		r.Facts.Quota, r.Facts.Left = &f.Project.Quota, &left
	}
	return r
}

// RequestBox chooses requests.
type RequestBox struct {
	Paging
	Box string `query:"box" enum:"mine,inbox,settled" default:"mine" doc:"mine: what you asked for; inbox: what waits for your decision; settled: what you may decide and is decided"`
}

func (a rest) listRequests(ctx context.Context, in *RequestBox) (*Response[List[Request]], error) {
	return listed(in.Paging, func(v requests.RequestView) int64 { return v.ID }, func(page models.Page) ([]requests.RequestView, error) {
		return a.requestsIn(ctx, in.Box, page)
	}, requestOf)
}

func (a rest) ask(ctx context.Context, in *Create[requests.RequestInput]) (*Created[Request], error) {
	v, err := a.Requests.Ask(ctx, actorOf(ctx), in.Body)
	return created(v.Version, requestOf(v), err, "requests", v.ID)
}

func (a rest) getRequest(ctx context.Context, in *ByID) (*Found[Request], error) {
	v, err := a.Requests.Get(ctx, actorOf(ctx), in.ID)
	return foundRequest(v, err)
}

func foundRequest(v requests.RequestView, err error) (*Found[Request], error) {
	if err != nil {
		return nil, err
	}
	return found(v.Version, requestOf(v), nil)
}

func (a rest) decideRequest(ctx context.Context, in *Update[requests.DecisionInput]) (*Found[Request], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	return foundRequest(a.decide(ctx, in.ID, in.Body))
}

// Withdrawal withdraws a request.
type Withdrawal struct {
	ByID
	IfMatch
}

func (a rest) withdrawRequest(ctx context.Context, in *Withdrawal) (*Found[Request], error) {
	version, err := in.version()
	if err != nil {
		return nil, err
	}
	return foundRequest(a.Requests.Withdraw(ctx, actorOf(ctx), in.ID, version))
}

// Asking says whether people may ask to join a project.
type Asking struct {
	On bool `json:"on"`
}

func (a rest) letAsk(ctx context.Context, in *CreateIn[Asking]) (*Nothing, error) {
	return nothing(a.Requests.LetAsk(ctx, actorOf(ctx), in.ID, in.Body.On))
}
