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

func (a rest) planGraph(ctx context.Context, in *Create[workspaces.GraphInput]) (*Response[models.GraphPlan], error) {
	v, err := a.Workspaces.PlanGraph(actorOf(ctx), in.Body)
	return &Response[models.GraphPlan]{v}, err
}
