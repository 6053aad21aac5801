package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/pool"
	"weir/storage"
)

func (a rest) workspacesOperations(s section) {
	register(a, s, route{http.MethodGet, "/workspaces", 200, "list-workspaces", "List workspaces, newest first"}, a.listWorkspaces)
	register(a, s, route{http.MethodGet, "/workspaces/{id}", 200, "get-workspace", "Show a workspace"}, a.getWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/stop", 202, "stop-workspace", "Stop a workspace; it has ended when its state says so"}, a.stopWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/open", 200, "open-workspace", "Get an address that lets one browser into your running workspace, once"}, a.openWorkspace)
	register(a, s, route{http.MethodGet, "/workspaces/{id}/directories", 200, "list-directories", "List the shared directories that a workspace sees"}, a.listDirectories)
}

// Workspace is a launched environment.
type Workspace struct {
	ID            int64                 `json:"id"`
	Name          string                `json:"name"`
	ProjectID     int64                 `json:"project_id"`
	Project       string                `json:"project"`
	UserID        int64                 `json:"user_id"`
	User          string                `json:"user"`
	EnvironmentID int64                 `json:"environment_id"`
	Environment   string                `json:"environment"`
	State         models.WorkspaceState `json:"state" enum:"requested,queued,starting,running,stopping,stopped,failed"`
	Reason        string                `json:"reason,omitempty" doc:"why it waits, failed or stopped"`
	Progress      int64                 `json:"progress" doc:"percent of the start"`
	Place         int                   `json:"position,omitempty" doc:"in the queue, from 1"`
	Demand        models.Demand         `json:"demand" doc:"GPU amounts are per GPU"`
	Shares        []WorkspaceShare      `json:"shares" doc:"of GPUs, in use now"`
	Simulated     bool                  `json:"simulated" doc:"a share is of a GPU that does not exist"`
	URL           string                `json:"url" doc:"its own origin; see open"`
	RequestedAt   time.Time             `json:"requested_at"`
	StartedAt     *time.Time            `json:"started_at,omitempty"`
	EndedAt       *time.Time            `json:"ended_at,omitempty"`
	ActiveAt      *time.Time            `json:"active_at,omitempty" doc:"last seen use"`
}

// WorkspaceShare is a workspace's share of a device.
type WorkspaceShare struct {
	DeviceID    int64  `json:"device_id"`
	Provider    string `json:"provider"`
	Number      int64  `json:"number" doc:"of the device on its machine, from 0"`
	Model       string `json:"model"`
	Cores       int64  `json:"cores" doc:"of 100"`
	MemoryMiB   int64  `json:"memory_mib"`
	Enforcement string `json:"enforcement" enum:"exclusive,mig,mps,advisory,lapsed" doc:"exclusive: the whole device; mig: an instance that the hardware keeps apart; mps: limits kept by NVIDIA's Multi-Process Service; advisory: stated to the holder, not limited by anything; lapsed: advisory until the daemon of the Multi-Process Service is back"`
	Simulated   bool   `json:"simulated" doc:"no such GPU exists"`

	ProviderState string     `json:"provider_state,omitempty" enum:"pending,online,draining,offline,lost,recalled" doc:"lost: the machine is silent, and the share is kept for when it comes back"`
	EndsAt        *time.Time `json:"ends_at,omitempty" doc:"the end that the provider's owner has set"`
	EndReason     string     `json:"end_reason,omitempty"`
}

// WorkspaceDetail is a workspace with its limits, parameters and history.
type WorkspaceDetail struct {
	Workspace
	Limits  []Limit            `json:"limits" doc:"how each resource is enforced"`
	Target  []models.Parameter `json:"target" doc:"launch parameters and the layer each came from"`
	Events  []WorkspaceEvent   `json:"events" doc:"its history, oldest first"`
	LogTail string             `json:"log_tail,omitempty" doc:"last lines of the log of a workspace that failed"`
	MayOpen bool               `json:"may_open" doc:"you may open it once it runs"`
	MayStop bool               `json:"may_stop"`

	StopsAt      *time.Time `json:"stops_at,omitempty" doc:"when its member's participation or its project's period ends; absent: nobody has said so"`
	StopsBecause string     `json:"stops_because,omitempty"`
}

// Limit says how one resource of a workspace is enforced.
type Limit struct {
	Resource string `json:"resource"`
	Enforced bool   `json:"enforced"`
	How      string `json:"how"`
}

func limitOf(l models.Limit) Limit { return Limit{l.Resource, l.Enforced, l.How.String()} }

// WorkspaceEvent is one line of a workspace's history.
type WorkspaceEvent struct {
	At      time.Time             `json:"at"`
	State   models.WorkspaceState `json:"state"`
	Message string                `json:"message"`
}

// workspaceOf shows one workspace beside the pool that it holds shares of.
func (a rest) workspaceOf(ctx context.Context, w models.WorkspaceView, place int, shares []WorkspaceShare) Workspace {
	v := Workspace{ID: w.ID, Name: w.Name, ProjectID: w.ProjectID, Project: w.ProjectName, UserID: w.UserID, User: w.UserName,
		EnvironmentID: w.EnvironmentID, Environment: w.EnvironmentName, State: w.State, Reason: w.Reason.String(), Progress: w.Progress,
		Place: place, Demand: w.Demand, Shares: append([]WorkspaceShare{}, shares...), URL: a.Proxy.Origin(httpRequestOf(ctx), w.ID),
		RequestedAt: w.RequestedAt.UTC(), StartedAt: utc(w.StartedAt), EndedAt: utc(w.EndedAt), ActiveAt: utc(w.ActiveAt)}
	for _, s := range shares {
		v.Simulated = v.Simulated || s.Simulated
	}
	return v
}

// heldShares sorts what workspaces hold of the pool, and tells where they wait.
func (a rest) heldShares(ctx context.Context, workspaces ...int64) (map[int64][]WorkspaceShare, map[int64]int, error) {
	view, err := a.Pool.ViewOf(ctx, actorOf(ctx), workspaces...)
	shares, places := map[int64][]WorkspaceShare{}, map[int64]int{}
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			for _, s := range d.Shares {
				if !s.Anonymous {
					shares[s.WorkspaceID] = append(shares[s.WorkspaceID], workspaceShare(d, s))
				}
			}
		}
	}
	for _, w := range view.Waiting {
		places[w.ID] = w.Place
	}
	return shares, places, err
}

func workspaceShare(d pool.DeviceView, s pool.ShareView) WorkspaceShare {
	return WorkspaceShare{DeviceID: d.ID, Provider: d.ProviderName, Number: d.Number, Model: d.Model, Cores: s.Cores, MemoryMiB: s.MemoryMiB,
		Enforcement: s.Enforcement, Simulated: d.Simulated, ProviderState: d.ProviderState, EndsAt: utc(s.EndsAt), EndReason: s.EndReason.String()}
}

// WorkspacesQuery narrows a list of workspaces.
type WorkspacesQuery struct {
	Paging
	State     string `query:"state" enum:"live,ended,all" default:"live"`
	ProjectID int64  `query:"project_id" minimum:"1" doc:"of this project alone"`
	Mine      bool   `query:"mine" doc:"your own alone"`
}

func (q WorkspacesQuery) filter(user int64) models.WorkspaceFilter {
	f := models.WorkspaceFilter{ProjectID: q.ProjectID}
	if q.Mine {
		f.UserID = user
	}
	switch q.State {
	case "live":
		f.States = models.LiveStates
	case "ended":
		f.States = []models.WorkspaceState{models.StateStopped, models.StateFailed}
	}
	return f
}

func (a rest) listWorkspaces(ctx context.Context, in *WorkspacesQuery) (*Response[List[Workspace]], error) {
	actor := actorOf(ctx)
	var shares map[int64][]WorkspaceShare
	var places map[int64]int
	return listed(in.Paging, func(w models.WorkspaceView) int64 { return w.ID }, func(p models.Page) ([]models.WorkspaceView, error) {
		list, err := a.Workspaces.List(ctx, actor, in.filter(actor.User.ID), p)
		if err != nil || shares != nil { // only whether there are more is asked
			return list, err
		}
		ids := make([]int64, len(list))
		for i, w := range list {
			ids[i] = w.ID
		}
		shares, places, err = a.heldShares(ctx, ids...)
		return list, err
	}, func(w models.WorkspaceView) Workspace { return a.workspaceOf(ctx, w, places[w.ID], shares[w.ID]) })
}

func (a rest) getWorkspace(ctx context.Context, in *ByID) (*Found[WorkspaceDetail], error) {
	w, err := a.Workspaces.View(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	shares, _, err := a.heldShares(ctx, in.ID)
	v := WorkspaceDetail{Workspace: a.workspaceOf(ctx, w.WorkspaceView, w.Place, shares[w.ID]), Limits: shown(w.Limits, limitOf),
		Target: append([]models.Parameter{}, w.Target...), Events: shown(w.Events, eventOf), MayOpen: w.MayOpen, MayStop: w.MayStop}
	if w.State == models.StateFailed {
		v.LogTail = w.LogTail
	}
	if w.Ending != nil {
		v.StopsAt, v.StopsBecause = utc(&w.Ending.At), w.Ending.Why().String()
	}
	return found(w.Version, v, err)
}

func eventOf(e models.WorkspaceEvent) WorkspaceEvent {
	return WorkspaceEvent{e.At.UTC(), e.State, e.Message.String()}
}

func (a rest) stopWorkspace(ctx context.Context, in *ByID) (*Found[WorkspaceDetail], error) {
	if _, err := a.Workspaces.Stop(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return a.getWorkspace(ctx, in)
}

// Opening is an address that lets one browser into a workspace.
type Opening struct {
	URL              string `json:"url" doc:"good for one use"`
	ExpiresInSeconds int64  `json:"expires_in_seconds"`
}

func (a rest) openWorkspace(ctx context.Context, in *ByID) (*Response[Opening], error) {
	secret, err := a.Workspaces.Open(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &Response[Opening]{Opening{a.openingURL(httpRequestOf(ctx), in.ID, secret), openingSeconds}}, nil
}

// Directory is a shared directory as a workspace sees it.
type Directory struct {
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
}

func (a rest) listDirectories(ctx context.Context, in *ByID) (*Response[List[Directory]], error) {
	w, err := a.Workspaces.View(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	layout := a.Directories.Layout(w.Holder)
	return &Response[List[Directory]]{List[Directory]{Items: shown(layout, func(m storage.Mount) Directory { return Directory{m.Target, !m.ReadOnly} })}}, nil
}
