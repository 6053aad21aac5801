package handlers

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"weir/models"
	"weir/pool/quota"
	"weir/workspaces"
)

func (a rest) launchOperations(s section) {
	register(a, s, route{http.MethodPost, "/launch/preview", 200, "preview-launch", models.Say("Preview a launch")}, a.previewLaunch,
		http.StatusNotFound)
	register(a, s, route{http.MethodPost, "/workspaces", 201, "launch-workspace",
		models.Say("Launch a workspace; with insufficient GPU capacity, the error includes an offer")}, a.launchWorkspace, http.StatusNotFound)
}

// LaunchPreview is the preview of a launch.
type LaunchPreview struct {
	Headroom    LaunchHeadroom       `json:"resources" doc:"resources available to you in the project"`
	Matches     []MatchedEnvironment `json:"matches" doc:"matching environments, best match first"`
	Mismatches  []MatchedEnvironment `json:"mismatches" doc:"mismatched environments and reasons"`
	Model       *ModelEnvironment    `json:"model,omitempty" doc:"requested model and what it needs"`
	Environment *Environment         `json:"environment,omitempty" doc:"selected environment; absent if none matches"`
	Target      *LaunchTarget        `json:"target,omitempty" doc:"resulting launch parameters"`
	Decision    *PoolDecision        `json:"decision,omitempty" doc:"expected scheduling decision"`
	Offer       *Offer               `json:"offer,omitempty" doc:"alternatives, if the pool has insufficient capacity"`
	Message     string               `json:"message,omitempty"`
	Problems    []ProblemField       `json:"problems" doc:"validation errors; empty if the launch is valid"`
}

// LaunchHeadroom is the resources available to a member, with the limit and quota.
type LaunchHeadroom struct {
	quota.Use
	Remaining models.Resources `json:"remaining"`
}

// LaunchTarget is the target launch parameters.
type LaunchTarget struct {
	Demand     models.Demand      `json:"demand" doc:"resource demand; GPU amounts are per GPU"`
	Parameters []models.Parameter `json:"parameters" doc:"launch parameters and their sources"`
}

// PoolDecision is the pool's decision on a demand.
type PoolDecision struct {
	Outcome     string           `json:"outcome" enum:"granted,partial,delayed,refused"`
	Explanation string           `json:"explanation"`
	Reasons     []string         `json:"reasons,omitempty" doc:"reasons for excluded devices"`
	Grants      []WorkspaceShare `json:"grants" doc:"shares that would be granted now"`
	Waiting     int              `json:"waiting" doc:"number of queued requests"`
}

func (a rest) previewLaunch(ctx context.Context, in *Create[workspaces.LaunchInput]) (*Response[LaunchPreview], error) {
	p, err := a.Workspaces.Preview(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	return a.launchPreviewOf(ctx, p)
}

func (a rest) launchPreviewOf(ctx context.Context, p workspaces.Plan) (*Response[LaunchPreview], error) {
	v := LaunchPreview{Headroom: LaunchHeadroom{p.Use, p.Use.Remaining()}, Matches: models.Map(p.Matches, matchOf),
		Mismatches: models.Map(p.Mismatches, mismatchOf),
		Problems:   []ProblemField{}}
	if p.Model.Path != "" {
		v.Model = &ModelEnvironment{p.Model.Path, p.Model.Needs}
	}
	if p.Rejection != nil {
		refusal := publicError(p.Rejection)
		v.Message, v.Problems = refusal.Message.String(), models.Map(refusal.Fields, launchProblem)
	}
	if p.Environment.ID != 0 {
		e := environmentOf(p.Environment)
		v.Environment = &e
		v.Target = &LaunchTarget{p.Target.Demand, append([]models.Parameter{}, p.Target.Parameters...)}
	}
	if p.Decision.Outcome != "" {
		v.Decision = poolDecisionOf(p.Decision)
		if p.Decision.Outcome != models.OutcomeGranted {
			view, err := a.launchView(ctx, p)
			if err != nil {
				return nil, err
			}
			estimate := estimateOf(view.Estimate)
			v.Offer = offerOf(p.Decision)
			v.Offer.Estimate = &estimate
		}
	}
	return &Response[LaunchPreview]{v}, nil
}

// launchProblem renames a refused launch parameter to its path in the body.
func launchProblem(f models.Field) ProblemField {
	number := func(n models.LaunchNumber) bool { return n.Name == f.Name }
	if slices.ContainsFunc(new(models.LaunchParameters).Numbers(), number) ||
		slices.Contains([]string{"gpu_model", "storage_mib", "path", "env"}, f.Name) {
		f.Name = "request." + f.Name
	}
	return ProblemField{f.Name, f.Reason.String()}
}

// launchRefusal is a refused launch with its fields named so.
func launchRefusal(err error) error {
	var e *models.Error
	if !errors.As(err, &e) || len(e.Fields) == 0 {
		return err
	}
	p := problemOf(err)
	p.Errors = models.Map(e.Fields, launchProblem)
	return p
}

func poolDecisionOf(d models.Decision) *PoolDecision {
	return &PoolDecision{Outcome: d.Outcome, Explanation: d.Explanation.String(), Reasons: models.Map(d.Reasons, models.Text.String),
		Waiting: d.Waiting,
		Grants: models.Map(d.Grants, func(g models.Grant) WorkspaceShare {
			return WorkspaceShare{DeviceID: g.Device.ID, Provider: d.Provider.Name, Number: g.Device.Number, Model: g.Device.Model, Cores: g.Cores,
				MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, Simulated: g.Device.Simulated}
		})}
}

func (a rest) launchWorkspace(ctx context.Context, in *Create[workspaces.LaunchInput]) (*Created[WorkspaceDetail], error) {
	w, err := a.Workspaces.Launch(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, launchRefusal(err)
	}
	v, err := a.getWorkspace(ctx, &ByID{w.ID})
	if err != nil { // it is launched: on an error the client would launch another
		a.Logger.WarnContext(ctx, "a launched workspace cannot be read", "workspace", w.ID, "err", err)
		unread := workspaces.Summary{WorkspaceView: models.WorkspaceView{Workspace: w}}
		v = &Found[WorkspaceDetail]{ETag: etag(w.Version), Body: WorkspaceDetail{Workspace: a.workspaceOf(ctx, unread, 0, nil),
			Limits: []Limit{}, Target: append([]models.Parameter{}, w.Target...), Events: []WorkspaceEvent{}}}
	}
	return &Created[WorkspaceDetail]{ETag: v.ETag, Location: apiPrefix + path("workspaces", w.ID), Body: v.Body}, nil
}
