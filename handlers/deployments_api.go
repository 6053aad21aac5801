package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/workspaces/deployments"
)

func (a rest) deploymentsOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/files/model", 200, "get-model",
		models.Say("Describe the model in a directory, and plan it on devices")}, a.getModel, http.StatusConflict)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/graph", 200, "plan-model-graph",
		models.Say("Plan a model in ONNX format on shares of CPUs")}, a.planModelGraph, http.StatusConflict)
}

// ModelQuery names a model and what it is planned for.
type ModelQuery struct {
	ByPath
	deployments.ModelInput
}

// ModelReport is a model with what it needs and how it is placed.
type ModelReport struct {
	Path    models.FilePath      `json:"path" doc:"percent-encoded path of the directory"`
	Facts   models.ModelFacts    `json:"facts" doc:"what the model consists of"`
	Memory  models.ModelMemory   `json:"memory" doc:"memory that it needs on one device"`
	Devices []models.ModelDevice `json:"devices" doc:"devices that the plan chooses from"`
	Plan    ModelPlan            `json:"plan" doc:"how it is placed"`

	ServiceTypes []string `json:"service_types" doc:"by which it can be planned: those of the program, and of the project for its architecture"`

	NotServed string `json:"not_served,omitempty" doc:"why a deployment cannot serve it; absent if it can"`
}

// ModelPlan is a plan with its reasons in words.
type ModelPlan struct {
	models.ModelPlan
	Reasons []string `json:"reasons" doc:"why the model is placed like this, or cannot be placed"`
}

// ModelReportOf is a report for programs.
func ModelReportOf(v models.ModelReport) ModelReport {
	v.Plan.Parts = models.Map(v.Plan.Parts, unchanged) // never null
	v.Facts.Layers = models.Map(v.Facts.Layers, unchanged)
	plan := ModelPlan{v.Plan, models.Map(v.Plan.Reasons, models.Text.String)}
	return ModelReport{v.Path, v.Facts, v.Memory, models.Map(v.Devices, unchanged), plan, models.Map(v.ServiceTypes, unchanged),
		v.NotServed.String()}
}

func (a rest) getModel(ctx context.Context, in *ModelQuery) (*Response[ModelReport], error) {
	v, err := a.Deployments.Describe(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.ModelInput)
	return &Response[ModelReport]{ModelReportOf(v)}, err
}
