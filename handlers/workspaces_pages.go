package handlers

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/storage"
	"weir/web"
	"weir/workspaces"
)

func (a *App) workspacesRoutes(p *echo.Group) {
	p.GET("/workspaces", a.page(a.workspacesPage))
	p.GET("/workspaces/:id", a.page(a.workspacePage))
	p.GET("/workspaces/:id/rename", a.page(a.renameFormPage))
	p.POST("/workspaces/:id/rename", a.submit(a.renameFormPage, a.renameWorkspacePage))
	p.GET("/workspaces/:id/restart", a.page(a.confirmRestartPage))
	p.POST("/workspaces/:id/restart", a.submit(a.confirmRestartPage, a.restartWorkspacePage))
	p.GET("/workspaces/:id/log", a.page(a.workspaceLogPage))
	p.GET("/workspaces/:id/open", a.openWorkspacePage)
	p.GET("/workspaces/stop", a.page(a.stopWorkspacesPage))
	p.POST("/workspaces/stop", a.submit(a.stopWorkspacesPage, a.stopWorkspaces))
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
			Environment: w.EnvironmentName, Owner: w.UserName, OwnerID: w.UserID, Demand: w.Demand, Devices: devices, Reason: w.Reason,
			Progress: w.Progress, Position: view.Position(w.HolderID), Simulated: anySimulated(devices),
			CanOpen: w.State == models.StateRunning && w.CanOpen, CanStop: w.CanStop, Idleness: idlenessView(w.Idleness),
			RequestedAt: w.RequestedAt, EndedAt: w.EndedAt}
	}
	return rows, nil
}

func (a *App) workspacesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.WorkspacesView{State: "active", Everybody: c.QueryParam("owner") == "all"}
	if state := c.QueryParam("state"); slices.Contains(web.WorkspaceStates(v.Everybody), state) {
		v.State = state
	}
	v.Form = web.Form{Values: map[string]string{"state": v.State}}
	for _, name := range web.WorkspaceFilters {
		v.Form.Values[name] = c.QueryParam(name)
	}
	actor := actorOf(ctx)
	q := WorkspacesQuery{State: v.State, UserID: actor.User.ID}
	if v.Everybody {
		q.UserID, q.Search = 0, v.Form.Value("q")
		q.ProjectID, _ = strconv.ParseInt(v.Form.Value("project_id"), 10, 64)
		q.ProviderID, _ = strconv.ParseInt(v.Form.Value("provider_id"), 10, 64)
		q.IdleHours, _ = strconv.ParseInt(v.Form.Value("idle_hours"), 10, 64)
		q.IdleHours = min(q.IdleHours, maxIdleHours)
	}
	var err error
	if v.Rows, err = a.workspaceRows(ctx, q.filter(a.Store.Now()), pageAfter(c)); err != nil {
		return nil, err
	}
	v.Next = nextPage(c, v.Rows, func(r web.WorkspaceRow) int64 { return r.ID })
	if v.Everybody {
		var chosen []int64
		if q.ProjectID > 0 {
			chosen = append(chosen, q.ProjectID)
		}
		v.Projects, v.MoreProjects, err = a.projectChoices(ctx, actor, chosen)
	}
	return web.WorkspacesPage(v), err
}

func (a *App) workspacePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	w, view, err := a.workspaceInPool(ctx, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.WorkspaceView{Workspace: w.WorkspaceView, Position: view.Position(w.HolderID), Events: w.Events,
		CanOpen: w.CanOpen && w.State == models.StateRunning,
		CanStop: w.CanStop, Idleness: idlenessView(w.Idleness), Devices: devicesOf(view, w.HolderID, actor.User.ID)}
	v.CanRun = w.CanLaunchAgain && !w.State.Ended()
	v.CanReadLog, v.CanRestart, v.OtherApps = w.CanOpen, w.CanRestart, w.OtherApps()
	if v.Runs, err = a.runsOfWorkspace(ctx, w.Workspace); err != nil {
		return nil, err
	}
	v.Simulated, v.Now = anySimulated(v.Devices), a.Store.Now()
	if v.Telemetry, err = a.Workspaces.Telemetry(ctx, actor, w.ID); err != nil {
		return nil, err
	}
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

func (a *App) renameFormPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	w, err := a.Workspaces.ForRename(ctx, actorOf(ctx), number(c, "id"))
	at := path("workspaces", w.ID)
	return renamePage(c, w.Name, at+"/rename", at), err
}

func (a *App) renameWorkspacePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	w, err := a.Workspaces.Rename(ctx, actorOf(ctx), number(c, "id"), workspaces.RenameInput{Name: f.text("name")})
	return redirect{path("workspaces", w.ID), models.Say("Workspace renamed to %s.", w.Name)}, err
}

func (a *App) confirmRestartPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	w, err := a.Workspaces.ForRestart(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	k, err := a.kernelsOf(ctx, w.ID)
	return confirmPage(c, web.ConfirmRestart(w, k)), err
}

func (a *App) restartWorkspacePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	w, err := a.Workspaces.Restart(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("workspaces", w.ID), models.Say("Restarting %s.", w.Name)}, err
}

func (a *App) workspaceLogPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	w, log, err := a.Workspaces.ReadLog(ctx, actorOf(ctx), number(c, "id"))
	return web.WorkspaceLogPage(web.WorkspaceLogView{ID: w.ID, Name: w.Name, Log: log, Live: !w.State.Ended()}), err
}

func (a *App) openWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	id := number(c, "id")
	in := workspaces.OpenInput{Path: c.QueryParam("path")}
	secret, err := a.Workspaces.Open(ctx, actorOf(ctx), id, in)
	if err != nil {
		if models.KindOf(err) == models.KindConflict { // its page shows why it does not open
			return c.Redirect(http.StatusSeeOther, path("workspaces", id))
		}
		return err
	}
	return c.Redirect(http.StatusSeeOther, a.openURL(c.Request(), id, secret, in.Path))
}

// maxIdleHours is the longest time without work by which workspaces can be found.
const maxIdleHours = 8760

// stopWorkspacesPage asks whether to stop the workspaces that are named by id.
func (a *App) stopWorkspacesPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	ids, err := workspaceIDs(c)
	if err != nil {
		return nil, err
	}
	var rows []web.WorkspaceRow
	if len(ids) > 0 {
		rows, err = a.workspaceRows(ctx, store.WorkspaceFilter{IDs: ids}, store.Page{Limit: len(ids)})
	}
	if err == nil && len(rows) < len(ids) {
		err = models.NotFound("workspace")
	}
	v := web.StopWorkspacesView{Rows: rows, Kernels: map[int64]web.Kernels{}, Form: submittedOr(c, formOf(0))}
	for _, w := range rows {
		if err == nil && w.State == models.StateRunning {
			v.Kernels[w.ID], err = a.kernelsOf(ctx, w.ID)
		}
	}
	return web.StopWorkspacesPage(v), err
}

// kernelsOf says which kernels of a workspace run, as far as that was measured just now.
func (a *App) kernelsOf(ctx context.Context, id int64) (k web.Kernels, err error) {
	list, err := a.Workspaces.Telemetry(ctx, actorOf(ctx), id)
	if n := len(list); n > 0 && a.Store.Now().Sub(list[n-1].At) < time.Minute {
		k = web.Kernels{Running: list[n-1].Kernels, Busy: list[n-1].BusyKernels}
	}
	return k, err
}

// workspaceIDs are the ids in the query or the form.
func workspaceIDs(c echo.Context) (ids []int64, err error) {
	values, err := c.FormParams()
	if err != nil {
		return nil, models.Invalid("id", "is required")
	}
	for _, text := range values["id"] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, models.NotFound("workspace")
		}
		ids = append(ids, n)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) > workspaces.MaxStopped {
		return nil, models.Invalid("ids", "must be at most %d workspaces; has %d", workspaces.MaxStopped, len(ids))
	}
	return ids, nil
}

func (a *App) stopWorkspaces(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	ids, err := workspaceIDs(c)
	if err != nil {
		return redirect{}, err
	}
	stopped, err := a.Workspaces.StopAll(ctx, actorOf(ctx), workspaces.StopInput{IDs: ids, Reason: f.text("reason")})
	if len(ids) == 1 && len(stopped.Workspaces) == 1 {
		return redirect{path("workspaces", ids[0]), stoppedMessage(stopped.Workspaces[0])}, err
	}
	return redirect{"/workspaces?owner=all", stoppedAllMessage(stopped)}, err
}

// stoppedMessage is what a workspace does once it is to stop: one that waits is gone at once.
func stoppedMessage(w models.Workspace) models.Text {
	if w.State.Ended() {
		return models.Say("Workspace %s has left the queue.", w.Name)
	}
	return models.Say("Workspace %s is stopping.", w.Name)
}

// stoppedAllMessage counts what stops, and names what could not be stopped.
func stoppedAllMessage(stopped workspaces.Stopped) models.Text {
	message := models.Say("%d workspaces are stopping.", len(stopped.Workspaces))
	for _, f := range stopped.Failed {
		message = models.Say("%s %s", message, models.Say("Workspace %d was not stopped: %s", f.ID, f.Reason))
	}
	return message
}

func (a *App) keepWorkspacePage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	w, err := a.Workspaces.Keep(ctx, actorOf(ctx), number(c, "id"))
	return redirect{path("workspaces", w.ID), models.Say("Workspace %s keeps running.", w.Name)}, err
}

func idlenessView(i *workspaces.Idleness) *web.Idleness {
	if i == nil {
		return nil
	}
	return &web.Idleness{Limit: time.Duration(i.Limit), Known: i.Known, WorkedAt: i.WorkedAt, Signal: string(i.Signal), Reminded: i.Reminded,
		StopsAt: i.StopsAt}
}

// scheduledStopOf is when and why a workspace stops, with the extension that its owner can
// request.
func (a *App) scheduledStopOf(ctx context.Context, w workspaces.View) (*web.ScheduledStop, error) {
	if w.ScheduledStop == nil {
		return nil, nil
	}
	s := &web.ScheduledStop{At: w.ScheduledStop.At, Reason: w.ScheduledStop.Reason(), ReservationID: w.ScheduledStop.ReservationID}
	if w.UserID != actorOf(ctx).User.ID || s.ReservationID != 0 {
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
		d := web.Directory{Path: m.Target, Purpose: storage.Purpose(m.Target, w.ProjectID, w.MemberID), Writable: !m.ReadOnly}
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
	v := web.WorkspaceErrorView{ErrorView: web.ErrorView{Status: status, Err: *err}, Portal: portal}
	if id, ok := a.Proxy.Host(r.Host); ok && status != http.StatusNotFound {
		v.Link = path("workspaces", id, "open") // the portal decides again, and says why not
		// Only admitted visitors learn that it does not run or respond.
		if status == http.StatusConflict || status == http.StatusBadGateway {
			a.showState(r.Context(), id, &v)
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

// showState shows a workspace and its state to an admitted visitor.
func (a *App) showState(ctx context.Context, id int64, v *web.WorkspaceErrorView) {
	w, err := a.Store.Read(ctx).Workspace(store.AllProjects, id)
	if err != nil {
		return // the error alone is shown
	}
	v.State, v.Name, v.Link = w.State, w.Name, path("workspaces", id)
	if w.State.Ended() || w.State == models.StateStopping {
		v.LaunchAgain = launchAgain(w)
	}
}
