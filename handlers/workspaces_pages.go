package handlers

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/web"
	"weir/workspaces"
)

func (a *App) workspacesRoutes(p *echo.Group) {
	p.GET("/workspaces", a.page(a.workspacesPage))
	p.GET("/workspaces/:id", a.page(a.workspacePage))
	p.GET("/workspaces/:id/open", a.openWorkspacePage)
	p.POST("/workspaces/:id/stop", a.submit(nil, a.stopWorkspacePage))
	p.POST("/workspaces/:id/keep", a.submit(nil, a.keepWorkspacePage))
}

// workspaceRows lists workspaces for people.
func (a *App) workspaceRows(ctx context.Context, f store.WorkspaceFilter, page store.Page) ([]web.WorkspaceRow, error) {
	actor := actorOf(ctx)
	list, view, err := a.workspacesInPool(ctx, f, page)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	rows := make([]web.WorkspaceRow, len(list))
	for i, w := range list {
		devices := devicesOf(view, w.HolderID, actor.User.ID)
		rows[i] = web.WorkspaceRow{ID: w.ID, Name: w.Name, State: w.State, ProjectID: w.ProjectID, Project: w.ProjectName,
			Environment: w.EnvironmentName, Owner: w.UserName, Demand: w.Demand, Devices: devices, Reason: w.Reason,
			Progress: w.Progress, Position: view.Position(w.HolderID), Simulated: anySimulated(devices),
			CanOpen: w.State == models.StateRunning && w.CanOpen, CanStop: w.CanStop, Idleness: idlenessView(w.Idleness),
			RequestedAt: w.RequestedAt, EndedAt: w.EndedAt}
	}
	return rows, nil
}

func (a *App) workspacesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	f := store.WorkspaceFilter{UserID: actor.User.ID}
	state := c.QueryParam("state")
	switch state {
	case "all":
	case "ended":
		f.States = []models.WorkspaceState{models.StateStopped, models.StateFailed}
	default:
		state, f.States = "active", models.ActiveStates
	}
	rows, err := a.workspaceRows(ctx, f, pageAfter(c, pageSize))
	if err != nil {
		return nil, err
	}
	v := web.WorkspacesView{Rows: rows, State: state}
	if n := len(rows); n > 0 {
		v.Next = nextPage(c, n, pageSize, rows[n-1].ID)
	}
	return web.WorkspacesPage(v), nil
}

func (a *App) workspacePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	w, view, err := a.workspaceInPool(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.WorkspaceView{Workspace: w.WorkspaceView, Position: view.Position(w.HolderID), Events: w.Events, CanOpen: w.CanOpen && w.State == models.StateRunning,
		CanStop: w.CanStop, Idleness: idlenessView(w.Idleness), Devices: devicesOf(view, w.HolderID, actor.User.ID)}
	v.CanRun = a.Workspaces.Runs != nil && w.CanLaunchAgain && !w.State.Ended()
	if v.Runs, err = a.runsOfWorkspace(ctx, w.Workspace); err != nil {
		return nil, err
	}
	v.Simulated = anySimulated(v.Devices)
	if v.Directories, v.Outdated, err = a.directoriesOf(ctx, w); err != nil {
		return nil, err
	}
	if v.ScheduledStop, err = a.scheduledStopOf(ctx, w); err != nil {
		return nil, err
	}
	if w.CanLaunchAgain {
		v.LaunchAgain = launchAgain(w.Workspace)
	}
	return web.WorkspacePage(v), nil
}

func (a *App) openWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	id := number(c, "id")
	secret, err := a.Workspaces.Open(ctx, actorOf(ctx), id)
	if err != nil {
		if models.KindOf(err) == models.KindConflict { // its page shows why it does not open
			return c.Redirect(http.StatusSeeOther, path("workspaces", id))
		}
		return err
	}
	return c.Redirect(http.StatusSeeOther, a.openURL(c.Request(), id, secret))
}

// openURLSeconds is how long openURL is valid.
const openURLSeconds = 30

// openURL is the address at which a browser enters a workspace with the
// single-use secret.
func (a *App) openURL(r *http.Request, workspace int64, secret string) string {
	return a.Proxy.Origin(r, workspace) + "/.weir/open?token=" + queryEscape(secret)
}

func (a *App) stopWorkspacePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	w, err := a.Workspaces.Stop(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("workspaces", w.ID), models.Say("Workspace %s is stopping.", w.Name)}, err
}

func (a *App) keepWorkspacePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	w, err := a.Workspaces.Keep(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("workspaces", w.ID), models.Say("Workspace %s keeps running.", w.Name)}, err
}

func idlenessView(i *workspaces.Idleness) *web.Idleness {
	if i == nil {
		return nil
	}
	return &web.Idleness{Limit: time.Duration(i.Limit), Known: i.Known, WorkedAt: i.WorkedAt, Signal: string(i.Signal), Reminded: i.Reminded, StopsAt: i.StopsAt}
}

// scheduledStopOf is when and why a workspace stops, with the extension that its owner can
// request.
func (a *App) scheduledStopOf(ctx context.Context, w workspaces.View) (*web.ScheduledStop, error) {
	if w.ScheduledStop == nil {
		return nil, nil
	}
	s := &web.ScheduledStop{At: w.ScheduledStop.At, Reason: w.ScheduledStop.Reason()}
	if w.UserID != actorOf(ctx).User.ID {
		return s, nil
	}
	list, err := a.Requests.Extensions(ctx, actorOf(ctx), []int64{w.ProjectID})
	for _, e := range list {
		if e.EndsAt.Equal(w.ScheduledStop.At) && (e.Kind == models.RequestDeadline) == w.ScheduledStop.Deadline {
			s.Extension = &e
		}
	}
	return s, err
}

// directoriesOf are the shared directories as a workspace that starts now sees
// them, and whether it has others.
func (a *App) directoriesOf(ctx context.Context, w workspaces.View) (list []web.Directory, outdated bool, err error) {
	inherited := map[string]bool{}
	for _, id := range w.DirectoryUser.Inherits {
		inherited[projects.DirectoryOf(w.ProjectID, id)] = true
	}
	plan, err := a.Directories.MountPlan(ctx, w.DirectoryUser)
	for _, m := range plan.Mounts {
		d := web.Directory{Path: m.Target, Writable: !m.ReadOnly}
		if inherited[m.Target] {
			d.Note = models.Say("Handed over from a former member. To get write access, restart workspaces that are already running.")
		}
		list = append(list, d)
	}
	return list, w.Outdated(plan.Mounts), err
}

// ServeWorkspaceError responds at a workspace's origin when a request is refused. The page
// discloses no more than the error and loads nothing.
func (a *App) ServeWorkspaceError(w http.ResponseWriter, r *http.Request, status int, err *models.Error, portal string) {
	v := web.WorkspaceErrorView{Portal: portal}
	// Only admitted users get these kinds of errors.
	if id, ok := a.Proxy.Host(r.Host); ok && err != nil && (err.Kind == models.KindConflict || err.Kind == models.KindUnavailable) {
		if w, err := a.Store.Read(r.Context()).Workspace(store.AllProjects, id); err == nil {
			v.State, v.Name, v.Link = w.State, w.Name, path("workspaces", id)
		}
	}
	var body bytes.Buffer
	ctx := web.With(r.Context(), web.Page{Lang: a.language(r), Now: a.Store.Now()})
	if err := web.WorkspaceErrorPage(v).Render(ctx, &body); err != nil {
		a.Logger.ErrorContext(ctx, "page not rendered", "err", err)
		http.Error(w, http.StatusText(status), status)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, writeErr := w.Write(body.Bytes())
	a.logged(r, writeErr)
}
