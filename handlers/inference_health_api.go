package handlers

import (
	"context"
	"net/http"

	"weir/models"
)

// inferServerPath is a deployment as a server of the Open Inference Protocol, which serves one model.
const inferServerPath = "/deployments/{id}/v2"

// InferServer describes the server.
type InferServer struct {
	Name       string   `json:"name" enum:"weir" doc:"always weir"`
	Version    string   `json:"version" doc:"version of Weir"`
	Extensions []string `json:"extensions" doc:"extensions of the protocol"`
}

// InferLive says that the deployment has not ended.
type InferLive struct {
	Live bool `json:"live" doc:"always true"`
}

// InferReady says that the deployment takes requests.
type InferReady struct {
	Ready bool `json:"ready" doc:"always true"`
}

// InferModelReady says that the model of the deployment takes requests.
type InferModelReady struct {
	Name  string `json:"name" doc:"name of the deployment"`
	Ready bool   `json:"ready" doc:"always true"`
}

func (a rest) inferHealthOperations(s section) {
	register(a, s, route{http.MethodGet, inferServerPath, 200, "get-inference-server",
		models.Say("Get the server of a deployment's model, as the Open Inference Protocol does")}, a.getInferServer)
	register(a, s, route{http.MethodGet, inferServerPath + "/health/live", 200, "check-inference-server-is-live",
		models.Say("Check that a deployment has not ended")}, a.checkInferLive, http.StatusServiceUnavailable)
	register(a, s, route{http.MethodGet, inferServerPath + "/health/ready", 200, "check-inference-server-is-ready",
		models.Say("Check that a deployment takes requests: it serves, or is idle until the next one")}, a.checkInferReady,
		http.StatusServiceUnavailable)
	register(a, s, route{http.MethodGet, inferModelPath + "/ready", 200, "check-inference-model-is-ready",
		models.Say("Check that the model of a deployment takes requests")}, a.checkInferModelReady, http.StatusServiceUnavailable)
}

func (a rest) getInferServer(ctx context.Context, in *ByID) (*Response[InferServer], error) {
	_, err := a.Workspaces.CheckDeployment(ctx, actorOf(ctx), in.ID, func(models.DeploymentState) bool { return true })
	return &Response[InferServer]{InferServer{"weir", a.Version, []string{"binary_tensor_data"}}}, err
}

func (a rest) checkInferLive(ctx context.Context, in *ByID) (*Response[InferLive], error) {
	_, err := a.Workspaces.CheckDeployment(ctx, actorOf(ctx), in.ID, func(s models.DeploymentState) bool { return !s.Ended() })
	return &Response[InferLive]{InferLive{true}}, err
}

func (a rest) checkInferReady(ctx context.Context, in *ByID) (*Response[InferReady], error) {
	_, err := a.Workspaces.CheckDeployment(ctx, actorOf(ctx), in.ID, models.DeploymentState.Answers)
	return &Response[InferReady]{InferReady{true}}, err
}

func (a rest) checkInferModelReady(ctx context.Context, in *ModelByName) (*Response[InferModelReady], error) {
	d, err := a.Workspaces.CheckDeployment(ctx, actorOf(ctx), in.ID, models.DeploymentState.Answers)
	return &Response[InferModelReady]{InferModelReady{d.Name, true}}, err
}
