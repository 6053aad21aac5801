package handlers

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool"
	"weir/storage/rules"
	"weir/workspaces"
)

func (a rest) workspacesOperations(s section) {
	register(a, s, route{http.MethodGet, "/workspaces", 200, "list-workspaces", models.Say("List workspaces, newest first")}, a.listWorkspaces)
	register(a, s, route{http.MethodGet, "/workspaces/{id}", 200, "get-workspace", models.Say("Get a workspace")}, a.getWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/stop", 202, "stop-workspace",
		models.Say("Stop a workspace; stopping is asynchronous, see its state")}, a.stopWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/stop", 202, "stop-workspaces",
		models.Say("Stop workspaces, and tell their owners why")}, a.stopWorkspaces, http.StatusNotFound)
	register(a, s, route{http.MethodPut, "/workspaces/{id}", 200, "rename-workspace",
		models.Say("Rename a workspace; what runs in it is not affected")}, a.renameWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/restart", 202, "restart-workspace",
		models.Say("Restart your running workspace, which keeps its GPU shares; see its state")}, a.restartWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/keep", 200, "keep-workspace",
		models.Say("Keep an idle workspace running for another whole limit")}, a.keepWorkspace)
	register(a, s, route{http.MethodPost, "/workspaces/{id}/open", 200, "open-workspace",
		models.Say("Create a single-use URL that opens your running workspace")}, a.openWorkspace)
	register(a, s, route{http.MethodGet, "/workspaces/{id}/log", 200, "get-workspace-log",
		models.Say("Get the end of the output of your workspace")}, a.getWorkspaceLog)
	register(a, s, route{http.MethodGet, "/workspaces/{id}/telemetry", 200, "get-workspace-telemetry",
		models.Say("Get what a workspace used in the last hour")}, a.getWorkspaceTelemetry)
	register(a, s, route{http.MethodGet, "/workspaces/{id}/directories", 200, "list-directories",
		models.Say("List the shared directories of a workspace")}, a.listDirectories)
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
	Reason        string                `json:"reason,omitempty" doc:"reason for the state"`
	Progress      int64                 `json:"progress" doc:"startup progress, percent"`
	Position      int                   `json:"position,omitempty" doc:"position in the queue, from 1"`
	Demand        models.Demand         `json:"demand" doc:"resource demand; GPU amounts are per GPU"`
	Shares        []WorkspaceShare      `json:"shares" doc:"current GPU shares"`
	Simulated     bool                  `json:"simulated" doc:"uses a simulated GPU"`
	URL           string                `json:"url" doc:"origin of the workspace; see open-workspace"`
	RequestedAt   time.Time             `json:"requested_at"`
	StartedAt     *time.Time            `json:"started_at,omitempty"`
	EndedAt       *time.Time            `json:"ended_at,omitempty"`
	ActiveAt      *time.Time            `json:"active_at,omitempty" doc:"time of the last request through the portal, also of an open tab; see idleness"`
	Idleness      *Idleness             `json:"idleness,omitempty" doc:"of a running workspace"`
}

// Idleness is how idle a running workspace is.
type Idleness struct {
	LimitMinutes int64      `json:"limit_minutes" doc:"minutes without work after which the workspace is stopped; 0: never"`
	Known        bool       `json:"known" doc:"it is known whether the workspace works; otherwise it is not stopped"`
	WorkedAt     *time.Time `json:"worked_at,omitempty" doc:"when the workspace last worked"`
	Signal       string     `json:"signal,omitempty" enum:"code,terminal,processes,gpu,run,kept" doc:"code: a kernel executed; terminal: somebody typed; processes: they computed, read or wrote; gpu: a GPU computed; run: a run in its environment worked; kept: see keep-workspace; absent: its start"`
	Reminded     bool       `json:"reminded" doc:"the workspace is idle and its user was told that it will be stopped"`
	StopsAt      *time.Time `json:"stops_at,omitempty" doc:"when the workspace is stopped if nothing works in it until then"`
}

func idlenessOf(i *workspaces.Idleness) *Idleness {
	if i == nil {
		return nil
	}
	v := &Idleness{LimitMinutes: int64(time.Duration(i.Limit) / time.Minute), Known: i.Known, Signal: string(i.Signal), Reminded: i.Reminded,
		StopsAt: utc(i.StopsAt)}
	if i.Known {
		v.WorkedAt = utc(&i.WorkedAt)
	}
	return v
}

// WorkspaceShare is a workspace's share of a device.
type WorkspaceShare struct {
	DeviceID    int64  `json:"device_id"`
	Provider    string `json:"provider"`
	Number      int64  `json:"number" doc:"device index on the machine, from 0"`
	Model       string `json:"model"`
	Cores       int64  `json:"cores" doc:"GPU cores"`
	MemoryMiB   int64  `json:"memory_mib"`
	Enforcement string `json:"enforcement" enum:"exclusive,mig,mps,advisory,lapsed" doc:"exclusive: the whole device; mig: a hardware-isolated instance; mps: limits enforced by NVIDIA MPS; advisory: limits not enforced; lapsed: not enforced until the MPS daemon restarts"`
	Simulated   bool   `json:"simulated" doc:"simulated device"`

	ProviderState string     `json:"provider_state,omitempty" enum:"pending,online,draining,offline,lost,recalled" doc:"state of the provider; lost: the machine is unreachable and the share is kept"`
	EndsAt        *time.Time `json:"ends_at,omitempty" doc:"end set by the provider's owner"`
	EndReason     string     `json:"end_reason,omitempty"`
}

// WorkspaceDetail is a workspace with its limits, parameters and history.
type WorkspaceDetail struct {
	Workspace
	Limits  []Limit            `json:"limits" doc:"enforcement of each resource"`
	Target  []models.Parameter `json:"target" doc:"launch parameters and their sources"`
	Events  []WorkspaceEvent   `json:"events" doc:"events, oldest first"`
	LogTail string             `json:"log_tail,omitempty" doc:"last log lines of a failed workspace"`
	MayOpen bool               `json:"may_open" doc:"you can open the workspace while it runs"`
	MayStop bool               `json:"may_stop"`
	Apps    []models.App       `json:"apps" doc:"programs with pages in the workspace, as far as is known of its environment"`

	StopsAt      *time.Time `json:"stops_at,omitempty" doc:"end of the member's membership or the project's period; absent if open-ended"`
	StopsBecause string     `json:"stops_because,omitempty"`
}

// Limit is how a resource of a workspace is enforced.
type Limit struct {
	Resource string `json:"resource"`
	Enforced bool   `json:"enforced"`
	How      string `json:"enforcement"`
}

func limitOf(l models.Limit) Limit { return Limit{l.Resource, l.Enforced, l.How.String()} }

// WorkspaceEvent is one line of a workspace's history.
type WorkspaceEvent struct {
	At      time.Time             `json:"at"`
	State   models.WorkspaceState `json:"state"`
	Message string                `json:"message"`
}

// workspaceOf is a workspace with its shares.
func (a rest) workspaceOf(ctx context.Context, w workspaces.Summary, position int, shares []WorkspaceShare) Workspace {
	v := Workspace{ID: w.ID, Name: w.Name, ProjectID: w.ProjectID, Project: w.ProjectName, UserID: w.UserID, User: w.UserName,
		EnvironmentID: w.EnvironmentID, Environment: w.EnvironmentName, State: w.State, Reason: w.Reason.String(), Progress: w.Progress,
		Position: position, Demand: w.Demand, Shares: append([]WorkspaceShare{}, shares...), URL: a.Proxy.Origin(httpRequestOf(ctx), w.ID),
		RequestedAt: w.RequestedAt.UTC(), StartedAt: utc(w.StartedAt), EndedAt: utc(w.EndedAt), ActiveAt: utc(w.ActiveAt),
		Idleness: idlenessOf(w.Idleness)}
	for _, s := range shares {
		v.Simulated = v.Simulated || s.Simulated
	}
	return v
}

// inPool reads what has shares, or waits for them, and the view of the pool that has its
// holders, from one state of the database: what has ended has no shares.
func inPool[T any](ctx context.Context, a *App, read func(context.Context) (T, error), holders func(T) []int64) (
	v T, view pool.View, err error) {
	err = a.Store.InSnapshot(ctx, func(ctx context.Context) error {
		if v, err = read(ctx); err == nil {
			view, err = a.Pool.ViewOf(ctx, actorOf(ctx), holders(v)...)
		}
		return err
	})
	return v, view, err
}

// workspaceInPool is one workspace with the view of the pool.
func (a *App) workspaceInPool(ctx context.Context, id int64) (workspaces.View, pool.View, error) {
	return inPool(ctx, a, func(ctx context.Context) (workspaces.View, error) { return a.Workspaces.View(ctx, actorOf(ctx), id) },
		func(w workspaces.View) []int64 { return []int64{w.HolderID} })
}

// WorkspaceLog is what a workspace has printed.
type WorkspaceLog struct {
	Text string `json:"text" doc:"last lines of the notebook server, at most 64 KiB; secrets are masked"`
}

func (a rest) getWorkspaceLog(ctx context.Context, in *ByID) (*Response[WorkspaceLog], error) {
	_, log, err := a.Workspaces.ReadLog(ctx, actorOf(ctx), in.ID)
	return &Response[WorkspaceLog]{WorkspaceLog{log}}, err
}

// WorkspaceTelemetry is what a workspace used in the last hour.
type WorkspaceTelemetry struct {
	Items []WorkspaceMeasurement `json:"items" doc:"measurements, oldest first, about four a minute; none while the notebook server does not answer"`
}

// WorkspaceMeasurement is what a workspace used on average since the measurement before.
type WorkspaceMeasurement struct {
	At         time.Time `json:"at"`
	CPUMilli   int64     `json:"cpu_milli" doc:"CPU used by all processes but the notebook server"`
	MemoryMiB  int64     `json:"memory_mib" doc:"memory used by all processes; what they share is counted once"`
	GPUPercent *int64    `json:"gpu_percent,omitempty" doc:"utilization of the GPUs, made up of the CPU used if they are simulated; absent if it is not known, or others use these real GPUs too"`

	Kernels     int64 `json:"kernels" doc:"kernels that ran"`
	BusyKernels int64 `json:"busy_kernels" doc:"kernels that computed"`
}

func (a rest) getWorkspaceTelemetry(ctx context.Context, in *ByID) (*Response[WorkspaceTelemetry], error) {
	list, err := a.Workspaces.Telemetry(ctx, actorOf(ctx), in.ID)
	return &Response[WorkspaceTelemetry]{WorkspaceTelemetry{models.Map(list, func(m models.WorkspaceTelemetry) WorkspaceMeasurement {
		return WorkspaceMeasurement{m.At.UTC(), m.CPUMilli, m.MemoryMiB, m.GPUPercent, m.Kernels, m.BusyKernels}
	})}}, err
}

// workspacesInPool are workspaces of a list with the view of the pool.
func (a *App) workspacesInPool(ctx context.Context, f store.WorkspaceFilter, p store.Page) ([]workspaces.Summary, pool.View, error) {
	return inPool(ctx, a, func(ctx context.Context) ([]workspaces.Summary, error) {
		return a.Workspaces.List(ctx, actorOf(ctx), f, p)
	}, func(list []workspaces.Summary) []int64 {
		return models.Map(list, func(w workspaces.Summary) int64 { return w.HolderID })
	})
}

// sharesIn are the shares in a view of the pool, by holder.
func sharesIn(view pool.View) map[int64][]WorkspaceShare {
	shares := map[int64][]WorkspaceShare{}
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			for _, s := range d.Shares {
				if !s.Anonymous {
					shares[s.HolderID] = append(shares[s.HolderID], workspaceShare(d, s))
				}
			}
		}
	}
	return shares
}

func workspaceShare(d pool.DeviceView, s pool.ShareView) WorkspaceShare {
	return WorkspaceShare{DeviceID: d.ID, Provider: d.ProviderName, Number: d.Number, Model: d.Model, Cores: s.Cores, MemoryMiB: s.MemoryMiB,
		Enforcement: s.Enforcement, Simulated: d.Simulated, ProviderState: d.ProviderState, EndsAt: utc(s.EndsAt),
		EndReason: s.EndReason.String()}
}

// WorkspacesQuery narrows a list of workspaces.
type WorkspacesQuery struct {
	Paging
	State      string `query:"state" enum:"active,ended,all,queued,starting,running,stopping" default:"active" doc:"active: not yet ended; ended: stopped or failed"`
	ProjectID  int64  `query:"project_id" minimum:"1" doc:"project ID"`
	UserID     int64  `query:"user_id" minimum:"1" doc:"user ID of the owner"`
	ProviderID int64  `query:"provider_id" minimum:"1" doc:"provider ID: it uses GPUs of this machine"`
	Search     string `query:"q" doc:"part of the name of the workspace, its owner, its project or a machine whose GPUs it uses"`
	IdleHours  int64  `query:"idle_hours" minimum:"1" maximum:"8760" doc:"running, and known not to have worked for this many hours"`
}

func (q WorkspacesQuery) filter(now time.Time) (f store.WorkspaceFilter) {
	f.ProjectID, f.UserID, f.ProviderID, f.Search = q.ProjectID, q.UserID, q.ProviderID, q.Search
	switch q.State {
	case "all":
	case "active":
		f.States = models.ActiveStates
	case "ended":
		f.States = []models.WorkspaceState{models.StateStopped, models.StateFailed}
	default:
		f.States = []models.WorkspaceState{models.WorkspaceState(q.State)}
	}
	if q.IdleHours > 0 {
		f.IdleSince = new(now.Add(-time.Duration(q.IdleHours) * time.Hour))
	}
	return f
}

// activeWorkspaces are those of a project and a user that have not ended; 0: of all.
func activeWorkspaces(project, user int64) store.WorkspaceFilter {
	return WorkspacesQuery{ProjectID: project, UserID: user, State: "active"}.filter(time.Time{})
}

func (a rest) listWorkspaces(ctx context.Context, in *WorkspacesQuery) (*Response[List[Workspace]], error) {
	var shares map[int64][]WorkspaceShare
	var view pool.View
	f := in.filter(a.Store.Now())
	return listed(in.Paging, func(w workspaces.Summary) int64 { return w.ID }, func(p store.Page) (list []workspaces.Summary, err error) {
		if shares != nil { // the second call only finds out whether there are more
			return a.Workspaces.List(ctx, actorOf(ctx), f, p)
		}
		list, view, err = a.workspacesInPool(ctx, f, p)
		shares = sharesIn(view)
		return list, err
	}, func(w workspaces.Summary) Workspace {
		return a.workspaceOf(ctx, w, view.Position(w.HolderID), shares[w.HolderID])
	})
}

func (a rest) getWorkspace(ctx context.Context, in *ByID) (*Found[WorkspaceDetail], error) {
	w, view, err := a.workspaceInPool(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	v := WorkspaceDetail{Workspace: a.workspaceOf(ctx, w.Summary, view.Position(w.HolderID), sharesIn(view)[w.HolderID]),
		Limits: models.Map(w.Limits, limitOf),
		Target: append([]models.Parameter{}, w.Target...), Events: models.Map(w.Events, eventOf), MayOpen: w.CanOpen, MayStop: w.CanStop,
		Apps: w.Apps}
	if w.State == models.StateFailed {
		v.LogTail = w.LogTail
	}
	if w.ScheduledStop != nil {
		v.StopsAt, v.StopsBecause = utc(&w.ScheduledStop.At), w.ScheduledStop.Reason().String()
	}
	return found(w.Version, v, nil)
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

func (a rest) restartWorkspace(ctx context.Context, in *ByID) (*Found[WorkspaceDetail], error) {
	if _, err := a.Workspaces.Restart(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return a.getWorkspace(ctx, in)
}

// WorkspacesStop names workspaces to stop.
type WorkspacesStop struct {
	IDs    []int64 `json:"ids" doc:"workspaces to stop, at most 200"`
	Reason string  `json:"reason,omitempty" doc:"told to their owners; at most 500 characters"`
}

// WorkspacesStopped are the workspaces that a call has stopped, and those that it could not.
type WorkspacesStopped struct {
	Stopped []int64       `json:"stopped" doc:"those that this call stops; what is in neither list had ended or was stopping"`
	Failed  []StopFailure `json:"failed" doc:"those that could not be stopped"`
}

// StopFailure is a workspace that could not be stopped.
type StopFailure struct {
	ID     int64  `json:"id"`
	Reason string `json:"reason"`
}

func stopFailure(f workspaces.StopFailure) StopFailure { return StopFailure{f.ID, f.Reason.String()} }

func (a rest) stopWorkspaces(ctx context.Context, in *Create[WorkspacesStop]) (*Response[WorkspacesStopped], error) {
	stopped, err := a.Workspaces.StopAll(ctx, actorOf(ctx), workspaces.StopInput{IDs: in.Body.IDs, Reason: in.Body.Reason})
	ids := models.Map(stopped.Workspaces, func(w models.Workspace) int64 { return w.ID })
	return &Response[WorkspacesStopped]{WorkspacesStopped{ids, models.Map(stopped.Failed, stopFailure)}}, err
}

func (a rest) renameWorkspace(ctx context.Context, in *Update[workspaces.RenameInput]) (*Found[WorkspaceDetail], error) {
	in.Body.Version = in.version
	if _, err := a.Workspaces.Rename(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getWorkspace(ctx, &in.ByID)
}

func (a rest) keepWorkspace(ctx context.Context, in *ByID) (*Found[WorkspaceDetail], error) {
	if _, err := a.Workspaces.Keep(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return a.getWorkspace(ctx, in)
}

// Opening is an address that lets one browser into a workspace.
type Opening struct {
	URL              string `json:"url" doc:"single-use URL"`
	ExpiresInSeconds int64  `json:"expires_in_seconds"`
}

// OpenIn is a page of a workspace to open.
type OpenIn struct {
	ByID
	workspaces.OpenInput
}

func (a rest) openWorkspace(ctx context.Context, in *OpenIn) (*Response[Opening], error) {
	secret, err := a.Workspaces.Open(ctx, actorOf(ctx), in.ID, in.OpenInput)
	return &Response[Opening]{Opening{a.openURL(httpRequestOf(ctx), in.ID, secret, in.Path), openURLSeconds}}, err
}

// openURLSeconds is how long openURL is valid.
const openURLSeconds = 30

// openURL is the address at which a browser enters a workspace with the
// single-use secret, at a path or, if that is empty, at its start page.
func (a *App) openURL(r *http.Request, workspace int64, secret, path string) string {
	at := a.Proxy.Origin(r, workspace) + "/.weir/open?token=" + url.QueryEscape(secret)
	if path != "" {
		at += "&path=" + url.QueryEscape(path)
	}
	return at
}

// Directory is a shared directory as a workspace sees it.
type Directory struct {
	Path     string `json:"path"`
	Writable bool   `json:"writable"`
}

// Directories are the shared directories as a workspace sees them.
type Directories struct {
	List[Directory]
	Limitations []rules.Limitation `json:"limitations" doc:"paths at which the mounts cannot express the rules"`
	Outdated    bool               `json:"outdated" doc:"the workspace has other directories mounted; if that lasts, restart it to get these"`
}

func (a rest) listDirectories(ctx context.Context, in *ByID) (*Response[Directories], error) {
	w, err := a.Workspaces.View(ctx, actorOf(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	plan, err := a.Directories.MountPlan(ctx, w.DirectoryUser)
	return &Response[Directories]{Directories{
		List[Directory]{Items: models.Map(plan.Mounts, func(m models.Mount) Directory { return Directory{m.Target, !m.ReadOnly} })},
		models.Map(plan.Limitations, unchanged), w.Outdated(plan.Mounts)}}, err
}
