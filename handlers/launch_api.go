package handlers

import (
	"context"
	"errors"
	"net/http"

	"weir/models"
	"weir/pool/quota"
	"weir/workspaces"
)

func (a rest) launchOperations(s section) {
	register(a, s, route{http.MethodPost, "/launch/preview", 200, "preview-launch", "Think a launch through without changing anything"}, a.previewLaunch, http.StatusNotFound)
	register(a, s, route{http.MethodPost, "/workspaces", 201, "launch-workspace", "Launch a workspace; a refusal for lack of GPUs carries an offer"}, a.launchWorkspace, http.StatusNotFound)
}

// LaunchPreview is what a launch would be.
type LaunchPreview struct {
	Headroom    LaunchHeadroom       `json:"headroom" doc:"what you may still hold in the project"`
	Fitting     []MatchedEnvironment `json:"fitting" doc:"environments that fit, best first"`
	Refused     []MatchedEnvironment `json:"refused" doc:"environments that do not, and why"`
	Environment *Environment         `json:"environment,omitempty" doc:"the one that would be launched; absent when none fits"`
	Target      *LaunchTarget        `json:"target,omitempty" doc:"what it would be launched with"`
	Decision    *PoolDecision        `json:"answer,omitempty" doc:"what the pool would say"`
	Offer       *Offer               `json:"offer,omitempty" doc:"what it could do instead, when it cannot meet the demand now"`
	Message     string               `json:"message,omitempty"`
	Problems    []ProblemField       `json:"problems" doc:"what a launch would be refused for; empty when it would not be"`
}

// LaunchHeadroom is what a member may still hold, and what bounds it.
type LaunchHeadroom struct {
	quota.Use
	Left models.Resources `json:"remaining"`
}

// LaunchTarget is what a workspace would be launched with.
type LaunchTarget struct {
	Demand     models.Demand      `json:"demand" doc:"GPU amounts are per GPU"`
	Parameters []models.Parameter `json:"parameters" doc:"each with the layer it came from"`
}

// PoolDecision is what the pool says to a demand.
type PoolDecision struct {
	Outcome     string           `json:"outcome" enum:"granted,partial,delayed,refused"`
	Explanation string           `json:"explanation"`
	Reasons     []string         `json:"reasons,omitempty" doc:"what turned devices away"`
	Grants      []WorkspaceShare `json:"grants" doc:"shares that would be had now"`
	Waiting     int              `json:"waiting" doc:"requests that wait already"`
}

func (a rest) previewLaunch(ctx context.Context, in *Create[workspaces.LaunchInput]) (*Response[LaunchPreview], error) {
	p, err := a.Workspaces.Preview(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	v := LaunchPreview{Headroom: LaunchHeadroom{p.Use, p.Use.Remaining()}, Fitting: shown(p.Fitting, fitting), Refused: shown(p.Refused, unfitting),
		Message: p.Message.String(), Problems: shown(p.Problems, launchProblem)}
	if p.Chosen.ID != 0 {
		e := environmentOf(p.Chosen)
		v.Environment = &e
		v.Target = &LaunchTarget{p.Target.Demand, append([]models.Parameter{}, p.Target.Parameters...)}
	}
	if p.Decision.Outcome != "" {
		v.Decision = poolDecisionOf(p.Decision)
		if p.Decision.Outcome != models.OutcomeGranted {
			v.Offer = offerOf(p.Decision)
			if v.Offer.Estimate, err = a.estimateFor(ctx, p); err != nil {
				return nil, err
			}
		}
	}
	return &Response[LaunchPreview]{v}, nil
}

// launchProblem names a refused launch parameter by its place in the body: a
// service knows the parameters, not what they came in.
func launchProblem(f models.Field) ProblemField {
	switch f.Name {
	case "gpus", "cores", "gpu_memory_mib", "gpu_model", "cpu_milli", "memory_mib", "storage_mib", "shm_mib", "path", "env":
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
	p.Errors = shown(e.Fields, launchProblem)
	return p
}

func poolDecisionOf(a models.Decision) *PoolDecision {
	return &PoolDecision{Outcome: a.Outcome, Explanation: a.Explanation.String(), Reasons: shown(a.Reasons, sentence), Waiting: a.Waiting,
		Grants: shown(a.Grants, func(g models.Grant) WorkspaceShare {
			return WorkspaceShare{DeviceID: g.Device.ID, Provider: a.Provider.Name, Number: g.Device.Number, Model: g.Device.Model, Cores: g.Cores,
				MemoryMiB: g.MemoryMiB, Enforcement: g.Enforcement, Simulated: g.Device.Simulated}
		})}
}

// estimateFor tells when a launch that waits could start.
func (a rest) estimateFor(ctx context.Context, p workspaces.Preview) (*Estimate, error) {
	f, err := a.estimate(ctx, p)
	v := estimateOf(f)
	return &v, err
}

func (a rest) launchWorkspace(ctx context.Context, in *Create[workspaces.LaunchInput]) (*Created[WorkspaceDetail], error) {
	w, err := a.Workspaces.Launch(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, launchRefusal(err)
	}
	v, err := a.getWorkspace(ctx, &ByID{w.ID})
	if err != nil {
		return nil, err
	}
	return &Created[WorkspaceDetail]{ETag: v.ETag, Location: apiPrefix + path("workspaces", w.ID), Body: v.Body}, nil
}
