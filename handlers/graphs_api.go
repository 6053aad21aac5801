package handlers

import (
	"context"
	"net/http"

	"weir/models"
	"weir/workspaces"
)

func (a rest) graphsOperations(s section) {
	register(a, s, route{http.MethodPost, "/graphs/plan", 200, "plan-graph",
		models.Say("Plan a task graph on shares of CPUs")}, a.planGraph)
}

// ModelGraphQuery names a model in ONNX format and the machine that it is planned for.
type ModelGraphQuery struct {
	ByPath
	models.GraphMachine
}

func (a rest) planModelGraph(ctx context.Context, in *ModelGraphQuery) (*Response[models.ModelGraph], error) {
	v, err := a.Deployments.PlanGraph(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.GraphMachine)
	return &Response[models.ModelGraph]{v}, err
}

func (a rest) planGraph(ctx context.Context, in *Create[workspaces.GraphInput]) (*Response[models.GraphPlan], error) {
	v, err := a.Workspaces.PlanGraph(ctx, actorOf(ctx), in.Body)
	return &Response[models.GraphPlan]{v}, err
}

func (a rest) getRunGraph(ctx context.Context, in *ByID) (*Response[models.GraphProgress], error) {
	v, err := a.Workspaces.RunGraph(ctx, actorOf(ctx), in.ID)
	return &Response[models.GraphProgress]{v}, err
}
