package handlers

import (
	"cmp"
	"context"
	"net/http"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/workspaces"
)

func (a rest) servingOperations(s section) {
	register(a, s, route{http.MethodGet, "/deployments", 200, "list-deployments", models.Say("List deployments, newest first")},
		a.listDeployments)
	register(a, s, route{http.MethodPost, "/deployments", 201, "deploy-model",
		models.Say("Serve a model on GPUs, one for each part")}, a.deployModel, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/deployments/{id}", 200, "get-deployment", models.Say("Get a deployment")}, a.getDeployment)
	register(a, s, route{http.MethodPost, "/deployments/{id}/stop", 202, "stop-deployment",
		models.Say("Stop a deployment; stopping is asynchronous, see its state")}, a.stopDeployment)
	register(a, s, route{http.MethodPost, "/deployments/{id}/update", 201, "update-deployment",
		models.Say("Deploy the present files of a deployment's model, and replace the deployment when they serve")}, a.updateDeployment,
		http.StatusNotFound, http.StatusConflict)
	a.deploymentMetricsOperations(s)
	register(a, s, route{http.MethodGet, "/deployments/{id}/v1/models", 200, "list-served-models",
		models.Say("List the model of a deployment, as OpenAI's API does")}, a.listServedModels)
	register(a, s, route{http.MethodPost, completionsPath, 200, "create-completion",
		models.Say("Continue a prompt, as OpenAI's API does")}, a.createCompletion, http.StatusTooManyRequests,
		http.StatusServiceUnavailable)
	register(a, s, route{http.MethodPost, chatPath, 200, "create-chat-completion",
		models.Say("Continue a conversation, as OpenAI's API does")}, a.createChatCompletion, http.StatusTooManyRequests,
		http.StatusServiceUnavailable)
	describeCompletions(s)
	register(a, s, route{http.MethodPost, embeddingsPath, 200, "create-embeddings",
		models.Say("Embed texts, as OpenAI's API does")}, a.createEmbeddings, http.StatusTooManyRequests,
		http.StatusServiceUnavailable)
	a.inferHealthOperations(s)
	register(a, s, route{http.MethodGet, inferModelPath, 200, "get-inference-model",
		models.Say("Get the model of a deployment, as the Open Inference Protocol does")}, a.getInferModel, http.StatusConflict,
		http.StatusServiceUnavailable)
	register(a, s, route{http.MethodPost, inferPath, 200, "classify-images",
		models.Say("Classify images, as the Open Inference Protocol does")}, a.infer, http.StatusTooManyRequests,
		http.StatusServiceUnavailable)
}

// The paths of requests to deployments.
const (
	completionsPath = "/deployments/{id}/v1/completions"
	chatPath        = "/deployments/{id}/v1/chat/completions"
)

// describeCompletions documents the two forms of the responses, which are written by functions.
func describeCompletions(s section) {
	api := s.api.OpenAPI()
	responses := map[string]reflect.Type{completionsPath: reflect.TypeFor[Completion](), chatPath: reflect.TypeFor[ChatCompletion]()}
	for path, response := range responses {
		api.Paths[path].Post.Responses["200"].Content = map[string]*huma.MediaType{
			"application/json":  {Schema: api.Components.Schemas.Schema(response, true, "")},
			"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
		}
	}
}

// Deployment is a model that is served.
type Deployment struct {
	ID             int64                  `json:"id"`
	Name           string                 `json:"name" doc:"name"`
	ProjectID      int64                  `json:"project_id"`
	Project        string                 `json:"project"`
	UserID         int64                  `json:"user_id"`
	User           string                 `json:"user"`
	Path           models.FilePath        `json:"path" doc:"percent-encoded path of the model's directory"`
	ServiceType    string                 `json:"service_type" doc:"service type whose split is used"`
	Task           models.ModelTask       `json:"task" enum:"text-generation,image-classification,text-embedding" doc:"what the model does"`
	State          models.DeploymentState `json:"state" enum:"deploying,serving,idle,stopping,stopped,failed"`
	Reason         string                 `json:"reason,omitempty" doc:"reason for which the deployment stops or has ended"`
	FirstID        int64                  `json:"first_id" doc:"first deployment of the model; the address of any of them leads to the one that serves"`
	CurrentID      int64                  `json:"current_id,omitempty" doc:"deployment that has taken its place; absent if none has, and in lists"`
	ManualUpdates  bool                   `json:"manual_updates" doc:"files of the model that change are deployed on request only"`
	IdleMinutes    int64                  `json:"idle_minutes" doc:"minutes without requests after which it is idle, without GPUs, until the next request; 0: never"`
	ReservationID  int64                  `json:"reservation_id,omitempty" doc:"reservation in which it is deployed; absent: none"`
	Batch          int64                  `json:"batch" doc:"requests at once"`
	Context        int64                  `json:"context" doc:"tokens of a request and its completion"`
	Demand         models.Demand          `json:"demand" doc:"resource demand, none while it is idle; GPU amounts are per GPU"`
	GPUMemoryBytes int64                  `json:"gpu_memory_bytes" doc:"memory of the virtual GPU: the sum of the parts' shares"`
	Parts          []DeploymentPart       `json:"parts" doc:"in the order in which data passes them"`
	PlanReasons    []string               `json:"plan_reasons,omitempty" doc:"why the model is split and placed like this; absent in lists"`
	RequestedAt    time.Time              `json:"requested_at"`
	StartedAt      *time.Time             `json:"started_at,omitempty" doc:"when it first served"`
	EndedAt        *time.Time             `json:"ended_at,omitempty"`
	UpdateStrategy models.UpdateStrategy  `json:"update_strategy" enum:"rolling,recreate" doc:"whether an update is deployed beside the deployment, or after it is stopped"`
	Updating       bool                   `json:"updating" doc:"it stops for its update, or, if it has failed, for the version before it, which is deployed then"`
	MayStop        bool                   `json:"may_stop"`
	Events         []DeploymentEvent      `json:"events,omitempty" doc:"history, oldest first; absent in lists"`
}

// DeploymentPart is a part of a deployment's model.
type DeploymentPart struct {
	Number      int64            `json:"number" doc:"from 1, in the order in which data passes the parts"`
	State       models.PartState `json:"state" enum:"waiting,loading,ready,ended"`
	Progress    int64            `json:"progress" doc:"of loading, percent"`
	First       string           `json:"first" doc:"first layer of the part"`
	Last        string           `json:"last" doc:"last layer of the part"`
	MemoryBytes int64            `json:"memory_bytes" doc:"memory that the part needs by its plan"`
	MaxMemory   int64            `json:"max_memory_bytes,omitempty" doc:"most memory that PyTorch has reserved on its GPU or, on CPUs, that its process has used, since its start; recorded when it grows by 2%; absent if unknown"`
	File        string           `json:"file,omitempty" doc:"name of its file, by its content; absent until it is written"`
	SizeBytes   int64            `json:"size_bytes" doc:"size of its file"`
	Library     string           `json:"library,omitempty" doc:"what computes: numpy or torch"`
	DeviceType  string           `json:"device_type,omitempty" doc:"on what it computes: cuda, or cpu where GPUs are simulated"`
	Restarts    int64            `json:"restarts" doc:"how often its process was started again"`
	Device      string           `json:"device,omitempty" doc:"provider and number of its GPU; absent without a share, and in lists"`
}

// DeploymentEvent is one line of a deployment's history.
type DeploymentEvent struct {
	At      time.Time              `json:"at"`
	State   models.DeploymentState `json:"state" enum:"deploying,serving,idle,stopping,stopped,failed"`
	Message string                 `json:"message"`
}

func deploymentOf(d workspaces.DeploymentSummary) Deployment {
	v := Deployment{ID: d.ID, Name: d.Name, ProjectID: d.ProjectID, Project: d.ProjectName, UserID: d.UserID, User: d.UserName, Path: d.Path,
		ServiceType: d.ServiceType, Task: d.Task, State: d.State, Reason: d.Reason.String(), FirstID: d.First(), CurrentID: d.CurrentID,
		ManualUpdates: d.ManualUpdates, UpdateStrategy: d.UpdateStrategy, Updating: d.Updating, IdleMinutes: d.Request.IdleMinutes,
		ReservationID: *cmp.Or(d.ReservationID, new(int64(0))), Batch: d.Batch, Context: d.Context, Demand: d.Demand,
		GPUMemoryBytes: d.Demand.GPUs * d.Demand.GPUMemoryMiB << 20, Parts: []DeploymentPart{}, RequestedAt: d.RequestedAt.UTC(),
		StartedAt: utc(d.StartedAt), EndedAt: utc(d.EndedAt), MayStop: d.CanStop}
	for i, p := range d.Parts {
		plan := d.Plan.Parts[i]
		part := DeploymentPart{p.Number + 1, p.State, p.Progress, plan.First, plan.Last, plan.Total, p.MaxMemory, p.File, p.Size, p.Library,
			p.DeviceType, p.Restarts, ""}
		if i < len(d.Devices) {
			part.Device = d.Devices[i]
		}
		v.Parts = append(v.Parts, part)
	}
	if len(d.Events) > 0 { // it is one deployment
		v.PlanReasons = models.Map(d.Plan.Reasons, models.Text.String)
	}
	for _, e := range d.Events {
		v.Events = append(v.Events, DeploymentEvent{e.At.UTC(), e.State, e.Message.String()})
	}
	return v
}

// DeploymentsQuery narrows a list of deployments.
type DeploymentsQuery struct {
	Paging
	State     string `query:"state" enum:"live,ended,all" default:"all" doc:"live: not yet ended"`
	ProjectID int64  `query:"project_id" minimum:"1" doc:"project ID"`
	UserID    int64  `query:"user_id" minimum:"1" doc:"user ID of the owner"`
}

// deploymentStates are the states that a list named live, ended or all shows.
func deploymentStates(list string) []models.DeploymentState {
	return map[string][]models.DeploymentState{"live": models.LiveDeployments, "ended": models.EndedDeployments}[list]
}

func (a rest) listDeployments(ctx context.Context, in *DeploymentsQuery) (*Response[List[Deployment]], error) {
	f := store.DeploymentFilter{ProjectID: in.ProjectID, UserID: in.UserID, States: deploymentStates(in.State)}
	return listed(in.Paging, func(d workspaces.DeploymentSummary) int64 { return d.ID },
		func(p store.Page) ([]workspaces.DeploymentSummary, error) {
			return a.Workspaces.ListDeployments(ctx, actorOf(ctx), f, p)
		}, deploymentOf)
}

func (a rest) getDeployment(ctx context.Context, in *ByID) (*Found[Deployment], error) {
	d, err := a.Workspaces.ViewDeployment(ctx, actorOf(ctx), in.ID)
	return found(d.Version, deploymentOf(d), err)
}

func (a rest) deployModel(ctx context.Context, in *Create[workspaces.DeployInput]) (*Created[Deployment], error) {
	d, err := a.Workspaces.Deploy(ctx, actorOf(ctx), in.Body)
	return a.deployed(ctx, d, err)
}

// DeploymentUpdate selects a deployment, and how it is updated.
type DeploymentUpdate struct {
	ByID
	UpdateStrategy models.UpdateStrategy `query:"update_strategy" enum:"rolling,recreate" doc:"how this update takes the place of the deployment; absent: as the deployment has it"`
}

func (a rest) updateDeployment(ctx context.Context, in *DeploymentUpdate) (*Created[Deployment], error) {
	d, err := a.Workspaces.UpdateDeployment(ctx, actorOf(ctx), in.ID, in.UpdateStrategy)
	return a.deployed(ctx, d, err)
}

// deployed is the response to a request that has started a deployment.
func (a rest) deployed(ctx context.Context, d models.Deployment, err error) (*Created[Deployment], error) {
	if err != nil {
		return nil, err
	}
	v := deploymentOf(workspaces.DeploymentSummary{DeploymentView: models.DeploymentView{Deployment: d}})
	if read, err := a.getDeployment(ctx, &ByID{d.ID}); err == nil {
		v = read.Body
	} else { // it is started: on an error the client would start another
		a.Logger.WarnContext(ctx, "a started deployment cannot be read", "deployment", d.ID, "err", err)
	}
	return &Created[Deployment]{ETag: etag(d.Version), Location: apiPrefix + path("deployments", d.ID), Body: v}, nil
}

func (a rest) stopDeployment(ctx context.Context, in *ByID) (*Found[Deployment], error) {
	d, err := a.Workspaces.StopDeployment(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return a.getDeployment(ctx, &ByID{d.ID}) // which serves at the address now
}
