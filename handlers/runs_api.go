package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/pool"
	"weir/workspaces"
)

func (a rest) runsOperations(s section) {
	register(a, s, route{http.MethodGet, "/runs", 200, "list-runs", models.Say("List runs, newest first")},
		a.listRuns)
	register(a, s, route{http.MethodPost, "/runs", 201, "start-run",
		models.Say("Run a command that uses a GPU share while it lasts")}, a.startRun, http.StatusNotFound)
	register(a, s, route{http.MethodPost, "/runs/preview", 200, "preview-run",
		models.Say("Preview a run: when it would start, and with what")}, a.previewRun, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/runs/{id}", 200, "get-run", models.Say("Get a run")},
		a.getRun)
	register(a, s, route{http.MethodGet, "/runs/{id}/log", 200, "read-run-log",
		models.Say("Read the output of your run, from a byte offset on")}, a.readRunLog)
	register(a, s, route{http.MethodGet, "/runs/{id}/graph", 200, "get-run-graph",
		models.Say("Get the progress of the task graph that your run executes")}, a.getRunGraph)
	register(a, s, route{http.MethodPost, "/runs/{id}/signal", 204, "signal-run", models.Say("Send a signal to the program of a run")},
		a.signalRun)
	register(a, s, route{http.MethodPost, "/runs/{id}/renew", 200, "renew-run", models.Say("Renew the lease of a run")}, a.renewRun)
	register(a, s, route{http.MethodPost, "/runs/{id}/stop", 202, "stop-run",
		models.Say("Stop a run; stopping is asynchronous, see its state")}, a.stopRun)
	register(a, s, route{http.MethodDelete, "/runs/{id}", 204, "delete-run", models.Say("Delete a run that has ended, with its output")},
		a.deleteRun)
	binary := &huma.Schema{Type: huma.TypeString, Format: "binary"}
	s.api.OpenAPI().Paths["/runs/{id}/log"].Get.Responses["200"].Content = map[string]*huma.MediaType{octetStream: {Schema: binary}}
}

// Run is a command that holds a GPU share while it lasts.
type Run struct {
	ID               int64            `json:"id"`
	Name             string           `json:"name" doc:"name that it was given; otherwise its program"`
	Command          []string         `json:"command" doc:"program and its arguments; the program alone if the run is another user's"`
	Directory        string           `json:"directory,omitempty" doc:"in which the command begins; absent: the home directory, or the run is another user's"`
	ProjectID        int64            `json:"project_id"`
	Project          string           `json:"project"`
	UserID           int64            `json:"user_id"`
	User             string           `json:"user"`
	WorkspaceID      *int64           `json:"workspace_id,omitempty" doc:"workspace whose environment it has"`
	EnvironmentID    int64            `json:"environment_id"`
	Environment      string           `json:"environment"`
	State            models.RunState  `json:"state" enum:"queued,starting,running,stopping,ended"`
	ExitCode         *int64           `json:"exit_code,omitempty" doc:"exit code; 128 + n if signal n ended the program, 127 if there is no such program; absent if it has not ended, or if the exit code is not known"`
	CPUSeconds       *float64         `json:"cpu_seconds,omitempty" doc:"CPU time that the processes of a run that has ended have used; absent if it is not known, as in a cluster"`
	Reason           string           `json:"reason,omitempty" doc:"reason for which the run waits, or has ended otherwise than by itself"`
	Position         int              `json:"position,omitempty" doc:"position in the queue, from 1"`
	Estimate         *Estimate        `json:"estimate,omitempty" doc:"estimated start of a queued run"`
	Demand           models.Demand    `json:"demand" doc:"resource demand; GPU amounts are per GPU"`
	Shares           []WorkspaceShare `json:"shares" doc:"current GPU shares"`
	Simulated        bool             `json:"simulated" doc:"uses a simulated GPU"`
	Limits           []Limit          `json:"limits" doc:"enforcement of each resource, of a run that has ended"`
	TimeLimitSeconds int64            `json:"time_limit_seconds,omitempty" doc:"seconds from its start after which the run is ended; absent: no limit"`
	LeaseSeconds     int64            `json:"lease_seconds,omitempty" doc:"seconds without a renewal after which it ends; absent: none"`
	Attached         bool             `json:"attached" doc:"a client waits for its end and renews its lease"`
	IdleEndsAt       *time.Time       `json:"idle_ends_at,omitempty" doc:"when it is ended unless its program works before; absent: never"`
	Reminded         bool             `json:"reminded" doc:"its user was told that it will be ended as idle, and can keep it"`
	RequestedAt      time.Time        `json:"requested_at"`
	StartedAt        *time.Time       `json:"started_at,omitempty"`
	EndsAt           *time.Time       `json:"ends_at,omitempty" doc:"when the time limit or the reservation ends the run"`
	ReservationID    int64            `json:"reservation_id,omitempty" doc:"reservation in which it runs; absent: none, and in lists"`
	EndedAt          *time.Time       `json:"ended_at,omitempty"`
	Address          string           `json:"address,omitempty" doc:"host and port at which programs in its workspace reach the run, in a cluster; absent for everybody else"`
	MayStop          bool             `json:"may_stop"`
	MayRead          bool             `json:"may_read" doc:"you can read the output"`
	MayDelete        bool             `json:"may_delete" doc:"you can delete the run"`
	Events           []RunEvent       `json:"events,omitempty" doc:"history, oldest first; absent in lists"`
}

// RunEvent is one line of a run's history.
type RunEvent struct {
	At      time.Time       `json:"at"`
	State   models.RunState `json:"state" enum:"queued,starting,running,stopping,ended"`
	Message string          `json:"message"`
}

func runEventOf(e models.RunEvent) RunEvent { return RunEvent{e.At.UTC(), e.State, e.Message.String()} }

func runOf(r workspaces.RunSummary, view pool.View, shares []WorkspaceShare) Run {
	v := Run{ID: r.ID, Name: r.Name, Command: r.Command, Directory: r.Directory, ProjectID: r.ProjectID, Project: r.ProjectName,
		UserID: r.UserID, User: r.UserName, WorkspaceID: r.WorkspaceID,
		EnvironmentID: r.EnvironmentID, Environment: r.EnvironmentName, State: r.State, ExitCode: r.ExitCode, Reason: r.Reason.String(),
		Position: view.Position(r.HolderID), Demand: r.Demand, Shares: append([]WorkspaceShare{}, shares...),
		Limits:       models.Map(r.Limits, limitOf),
		LeaseSeconds: r.LeaseSeconds, Attached: r.Attached, IdleEndsAt: utc(r.IdleEndsAt), Reminded: r.RemindedAt != nil,
		TimeLimitSeconds: r.TimeLimitSeconds, RequestedAt: r.RequestedAt.UTC(), StartedAt: utc(r.StartedAt), EndsAt: utc(r.EndsAt()),
		EndedAt: utc(r.EndedAt), Address: r.Address,
		MayStop: r.CanStop, MayRead: r.CanRead, MayDelete: r.CanDelete}
	if r.Reservation != nil {
		v.ReservationID = r.Reservation.ReservationID
	}
	if r.CPUTimeMs != nil {
		v.CPUSeconds = new(float64(*r.CPUTimeMs) / 1000)
	}
	for _, s := range shares {
		v.Simulated = v.Simulated || s.Simulated
	}
	return v
}

// RunsQuery narrows a list of runs.
type RunsQuery struct {
	Paging
	State       string `query:"state" enum:"live,ended,all" default:"all" doc:"live: not yet ended"`
	ProjectID   int64  `query:"project_id" minimum:"1" doc:"project ID"`
	UserID      int64  `query:"user_id" minimum:"1" doc:"user ID of the owner"`
	WorkspaceID int64  `query:"workspace_id" minimum:"1" doc:"workspace ID: only runs in its environment"`
}

// runStates are the states that a list named live, ended or all shows.
func runStates(list string) []models.RunState {
	switch list {
	case "live":
		return models.LiveRuns
	case "ended":
		return []models.RunState{models.RunEnded}
	default:
		return nil
	}
}

func (q RunsQuery) filter() store.RunFilter {
	return store.RunFilter{WorkspaceID: q.WorkspaceID,
		OwnedFilter: store.OwnedFilter[models.RunState]{ProjectID: q.ProjectID, UserID: q.UserID, States: runStates(q.State)}}
}

// runInPool is one run with the view of the pool.
func (a *App) runInPool(ctx context.Context, id int64) (workspaces.RunSummary, pool.View, error) {
	return inPool(ctx, a, func(ctx context.Context) (workspaces.RunSummary, error) {
		return a.Workspaces.ViewRun(ctx, actorOf(ctx), id)
	}, func(r workspaces.RunSummary) []int64 { return []int64{r.HolderID} })
}

func (a rest) listRuns(ctx context.Context, in *RunsQuery) (*Response[List[Run]], error) {
	var shares map[int64][]WorkspaceShare
	var view pool.View
	return listed(in.Paging, func(r workspaces.RunSummary) int64 { return r.ID },
		func(p store.Page) (list []workspaces.RunSummary, err error) {
			read := func(ctx context.Context) ([]workspaces.RunSummary, error) {
				return a.Workspaces.ListRuns(ctx, actorOf(ctx), in.filter(), p)
			}
			if shares != nil { // the second call only finds out whether there are more
				return read(ctx)
			}
			list, view, err = inPool(ctx, a.App, read, func(list []workspaces.RunSummary) []int64 {
				return models.Map(list, func(r workspaces.RunSummary) int64 { return r.HolderID })
			})
			shares = sharesIn(view)
			return list, err
		}, func(r workspaces.RunSummary) Run { return runOf(r, view, shares[r.HolderID]) })
}

func (a rest) getRun(ctx context.Context, in *ByID) (*Found[Run], error) {
	r, view, err := a.runInPool(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	v := runOf(r, view, sharesIn(view)[r.HolderID])
	v.Events = models.Map(r.Events, runEventOf)
	if r.State == models.RunQueued {
		var start *pool.Estimate
		if start, err = a.startEstimate(ctx, r.HolderID); start != nil {
			v.Estimate = new(estimateOf(*start))
		}
	}
	return found(r.Version, v, err)
}

// startEstimate is when a queued holder can probably start; nil if it has left the queue.
func (a *App) startEstimate(ctx context.Context, holder int64) (*pool.Estimate, error) {
	view, err := a.Pool.View(ctx, actorOf(ctx))
	for _, w := range view.Waiting {
		if w.ID == holder {
			return &w.Estimate, err
		}
	}
	return nil, err
}

func (a rest) previewRun(ctx context.Context, in *Create[workspaces.RunInput]) (*Response[LaunchPreview], error) {
	p, err := a.Workspaces.PreviewRun(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	return a.launchPreviewOf(ctx, p)
}

func (a rest) startRun(ctx context.Context, in *Create[workspaces.RunInput]) (*Created[Run], error) {
	r, err := a.Workspaces.StartRun(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, launchRefusal(err)
	}
	v, err := a.getRun(ctx, &ByID{r.ID})
	if err != nil { // it is started: on an error the client would start another
		a.Logger.WarnContext(ctx, "a started run cannot be read", "run", r.ID, "err", err)
		unread := workspaces.RunSummary{RunView: models.RunView{Run: r}}
		v = &Found[Run]{ETag: etag(r.Version), Body: runOf(unread, pool.View{}, nil)}
	}
	return &Created[Run]{ETag: v.ETag, Location: apiPrefix + path("runs", r.ID), Body: v.Body}, nil
}

// RunLogQuery names a piece of a run's output.
type RunLogQuery struct {
	ByID
	Offset      int64 `query:"offset" minimum:"0" doc:"offset of the first byte to read"`
	WaitSeconds int64 `query:"wait_seconds" minimum:"0" maximum:"25" doc:"how long to wait if there is no output from the offset on yet"`
}

// RunLog is a piece of a run's output.
type RunLog struct {
	ContentType string `header:"Content-Type"`
	Offset      int64  `header:"Log-Offset" doc:"offset of the first byte; larger than requested if what was there is not kept any more"`
	Next        int64  `header:"Log-Next" doc:"offset after the last byte, from which to read on"`
	Ended       bool   `header:"Log-Ended" doc:"the run has ended, and this is the rest of its output"`
	Body        []byte
}

func (a rest) readRunLog(ctx context.Context, in *RunLogQuery) (*RunLog, error) {
	actor := actorOf(ctx)
	l, err := a.Workspaces.ReadRunLog(ctx, actor, in.ID, in.Offset, time.Duration(in.WaitSeconds)*time.Second)
	if err == nil && in.WaitSeconds > 0 { // rights may have ended meanwhile
		if actor, err = a.Accounts.RefreshActor(ctx, actor); err == nil {
			l, err = a.Workspaces.ReadRunLog(ctx, actor, in.ID, in.Offset, 0)
		}
	}
	if err != nil {
		return nil, err
	}
	return &RunLog{octetStream, l.Offset, l.Offset + int64(len(l.Data)), l.Ended, l.Data}, nil
}

// RunSignal is a signal for a run.
type RunSignal struct {
	Signal string `json:"signal" enum:"INT,TERM,HUP,QUIT,USR1,USR2" doc:"signal for the program"`
}

func (a rest) signalRun(ctx context.Context, in *CreateIn[RunSignal]) (*Nothing, error) {
	return nil, a.Workspaces.SignalRun(ctx, actorOf(ctx), in.ID, in.Body.Signal)
}

func (a rest) renewRun(ctx context.Context, in *CreateIn[workspaces.RunRenewal]) (*Found[Run], error) {
	if _, err := a.Workspaces.RenewRun(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getRun(ctx, &in.ByID)
}

func (a rest) stopRun(ctx context.Context, in *ByID) (*Found[Run], error) {
	if _, err := a.Workspaces.StopRun(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return a.getRun(ctx, in)
}

func (a rest) deleteRun(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Workspaces.DeleteRun(ctx, actorOf(ctx), in.ID)
}
